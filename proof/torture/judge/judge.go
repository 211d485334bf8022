package judge

import (
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// Verdict is what a run amounts to.
type Verdict struct {
	Rows      int // in all tables
	Records   int // that had to be delivered: the rows, for each process; again where an operator sought back
	Delivered int // of these
	Attempts  int // received by the receiver
	TakeOvers int // epochs begun
	Halts     int
	Slowest   time.Duration // of the processes, from the last fault until it had caught up

	PutAside        int // as dead letters
	ReplayedLetters int // of these

	PassedBetween int // moves over nothing but rows that a condition leaves out

	PassedOver int // by operators' skips and seeks
	Replayed   int // applied again because an operator sought back
	Actions    int // of operators
	Lost       int
	OutOfOrder int
	Repeats    []Repeat
	Queued     int // messages that lay in a broker's queue again
	Stale      int // attempts
	Ahead      int // rows that these applied first

	Told          int // answers of status and metrics, of one process each
	ToldByStatus  int // halts and pauses
	ToldByMetrics int // halts and pauses
	Faults        []Tally
	Loads         []Load

	Cell CellVerdict

	// Violations are counted in full; of each invariant only the first few are kept.
	Violations []Violation
	Counts     map[string]int // by invariant
}

// Violation is a promise that was broken.
type Violation struct {
	Invariant, Process, Text string
}

func (v Violation) String() string { return fmt.Sprintf("%s %s: %s", v.Invariant, v.Process, v.Text) }

// Repeat is an application that was not the last one of its row.
type Repeat struct {
	Process, Key string
	Attempt      int          // at the receiver
	Cause        int          // a fault; 0 = unexplained
	Kind         history.Kind // of the cause
}

// Tally is what came of the faults of one kind.
type Tally struct {
	Kind    history.Kind
	Struck  int
	Missed  int
	Repeats int // that it caused
}

// Load is what came of one way to write.
type Load struct {
	Name             string
	Kept, RolledBack int // rows
}

// Good reports whether every promise was kept.
func (v *Verdict) Good() bool { return len(v.Violations) == 0 }

// Struck is how many faults took hold.
func (v *Verdict) Struck() int {
	n := 0
	for _, t := range v.Faults {
		n += t.Struck
	}
	return n
}

// Unexplained counts the repeats without a cause.
func (v *Verdict) Unexplained() int {
	n := 0
	for _, r := range v.Repeats {
		if r.Cause == 0 {
			n++
		}
	}
	return n
}

// kept bounds the violations of one invariant that are told.
const kept = 10

func (v *Verdict) broken(invariant, process, format string, args ...any) {
	v.Counts[invariant]++
	if v.Counts[invariant] <= kept {
		v.Violations = append(v.Violations, Violation{invariant, process, fmt.Sprintf(format, args...)})
	}
}

// slack is what a time of the database may be off beyond the drift of the clocks: it ends with a microsecond.
const slack = time.Millisecond

// Judge computes the verdict. It depends on nothing but the history.
func Judge(run *history.Run) *Verdict {
	v := &Verdict{Counts: map[string]int{}}
	v.checkPromotions(run)
	run = levelled(run)
	tables := newTables(run.Rows)
	faults := newFaults(run.Faults, run.Beats)
	v.Rows = len(run.Rows)
	v.checkWrites(run.Writes, tables)
	v.Loads = loads(run.Writes, tables)
	noteArrivals(run.Writes, tables)
	for _, f := range newFeeds(run, tables, v) {
		f.faults = faults.of(f.Process)
		v.Attempts += len(f.attempts)
		slack := abs(run.Setting.Drift) + slack
		v.putAside(f)
		v.checkLoss(f)
		v.checkOrder(f)
		v.checkSendAhead(f, slack)
		v.checkRepeats(f)
		v.checkKept(f)
		v.checkStale(f)
		v.checkStream(f)
		v.checkCursor(f, slack)
		v.checkIntegrity(f)
		v.checkHalts(f)
		v.checkActions(f)
		v.checkOnce(f)
		v.checkLetters(f)
		v.checkTold(f, slack)
		v.checkPace(f)
		v.checkEnd(f)
	}
	v.checkCell(run.Cell)
	v.Faults = faults.tally(v.Repeats)
	return v
}

func abs(d time.Duration) time.Duration { return max(d, -d) }
