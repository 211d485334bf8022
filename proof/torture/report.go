package main

import (
	"fmt"
	"io"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

// report prints the result as Markdown.
func report(w io.Writer, s history.Setting, v *judge.Verdict) {
	fmt.Fprintf(w, "Seed %d, %v: %d faults took hold; %d rows, to be delivered %d times by %d processes.\n\n",
		s.Seed, s.For.Round(time.Second), v.Struck(), v.Rows, v.Records, len(s.Processes))
	fmt.Fprintf(w, "| | |\n|---|---:|\n")
	for _, line := range []struct {
		name  string
		count int
	}{
		{"records delivered", v.Delivered},
		{"put aside as dead letters", v.PutAside},
		{"of these replayed", v.ReplayedLetters},
		{"**lost**", v.Lost},
		{"**out of order**", v.OutOfOrder},
		{"applied more than once", len(v.Repeats)},
		{"**of these without a fault for their cause**", v.Unexplained()},
		{"messages in the broker's queues more than once", v.Queued},
		{"requests at the receiver", v.Attempts},
		{"of these under an outdated epoch", v.Stale},
		{"records that were first applied so", v.Ahead},
		{"take-overs (epochs)", v.TakeOvers},
		{"halts", v.Halts},
		{"decisions of operators", v.Actions},
		{"records these passed over", v.PassedOver},
		{"moves of cursors over rows that no condition takes", v.PassedBetween},
		{"records these had applied again", v.Replayed},
		{"answers of `status` and `/metrics`, for a process each", v.Told},
		{"halts and pauses that `status` told of", v.ToldByStatus},
		{"halts and pauses that `/metrics` told of", v.ToldByMetrics},
		{"**broken invariants**", broken(v)},
	} {
		fmt.Fprintf(w, "| %s | %d |\n", line.name, line.count)
	}
	fmt.Fprintf(w, "| the slowest process had caught up after the last fault | %.1f s |\n", v.Slowest.Seconds())
	fmt.Fprintf(w, "\n| fault | struck | duplicates it caused | met nobody |\n|---|---:|---:|---:|\n")
	var struck, repeats, missed int
	for _, t := range v.Faults {
		fmt.Fprintf(w, "| %s | %d | %d | %d |\n", t.Kind, t.Struck, t.Repeats, t.Missed)
		struck, repeats, missed = struck+t.Struck, repeats+t.Repeats, missed+t.Missed
	}
	fmt.Fprintf(w, "| **all** | %d | %d | %d |\n", struck, repeats, missed)
	reportLoads(w, s, v)
	if v.Cell.Processes > 0 {
		reportCell(w, v.Cell)
	}
	if !v.Good() {
		fmt.Fprintf(w, "\nBroken:\n\n")
	}
	for _, violation := range v.Violations {
		fmt.Fprintf(w, "- %s\n", violation)
	}
	fmt.Fprintln(w)
}

// reportLoads prints how rows came, and as whom the daemons ran.
func reportLoads(w io.Writer, s history.Setting, v *judge.Verdict) {
	fmt.Fprintf(w, "\n| load | rows in the tables | rolled back |\n|---|---:|---:|\n")
	for _, l := range v.Loads {
		fmt.Fprintf(w, "| %s | %d | %d |\n", l.Name, l.Kept, l.RolledBack)
	}
	fmt.Fprintf(w, "\n| daemon | role | connections at most |\n|---|---|---:|\n")
	for _, slot := range s.Slots {
		role, pool := "superuser", "its own choice"
		if slot.Role != "" {
			role = "with what `grants` prints"
		}
		if slot.Pool > 0 {
			pool = fmt.Sprint(slot.Pool)
		}
		fmt.Fprintf(w, "| %s | %s | %s |\n", slot.Name, role, pool)
	}
}

func broken(v *judge.Verdict) int {
	n := 0
	for _, count := range v.Counts {
		n += count
	}
	return n
}
