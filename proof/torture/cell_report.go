package main

import (
	"fmt"
	"io"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

// reportCell prints what became of the database whose servers are replaced.
func reportCell(w io.Writer, c judge.CellVerdict) {
	fmt.Fprintf(w, "\nThe cell: %d processes, and %d servers that were the primary, one after another.\n\n| | |\n|---|---:|\n", c.Processes, c.Servers)
	for _, line := range []struct {
		name  string
		count int
	}{
		{"records of the last server, to be delivered", c.Records},
		{"**lost**", c.Lost},
		{"rows that were committed and are gone with their server", c.Gone},
		{"records that receivers have", c.Receipts},
		{"**sequence numbers with two meanings**", c.Numbers},
		{"**dedup keys with two meanings**", c.Keys},
		{"**records under epochs below one that had come, and no others**", c.Outdated},
		{"**records of one server under an epoch of another**", c.Strangers},
	} {
		fmt.Fprintf(w, "| %s | %d |\n", line.name, line.count)
	}
	fmt.Fprintf(w, "\n| fault of the cell | times | the slowest process had caught up | had not in time |\n|---|---:|---:|---:|\n")
	for _, t := range c.Changes {
		fmt.Fprintf(w, "| %s | %d | %.1f s | %d |\n", t.Kind, t.Count, t.Slowest.Seconds(), t.Stuck)
	}
}
