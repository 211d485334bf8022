package main

import "slices"

// inCI are the mutants that CI runs: one for each invariant of a doc.go, the
// most likely one to be lost. All others run before a release (make soak).
var inCI = []string{
	// cursor
	"a worker that hears nothing gives up later than the server",
	"the epoch is not committed before the first delivery",
	"the advance does not check the epoch",
	"an operator does not wait for the lock of the row",
	"a seek uses numbers again that may have been sent",
	"what happened to the row between two transactions is not seen",
	// processor
	"the cursor advances before the sink acknowledges",
	"nobody asks for the lease before a sink call",
	"after an unknown commit memory is believed, and not the row",
	"what was acknowledged is forgotten when its advance fails",
	"a record whose outcome is unknown is put aside as a dead letter",
	// sources/table
	"the writers are looked for before the mark is taken",
	"the rows are read before the writers are looked for",
	"a writer does not keep its bound",
	"writers of partitions are not seen",
	"a record stamped with now() is not given a second",
	"positions are not compared as tuples",
	// sinks and the daemon
	"redirects are followed",
	"a statement may end the transaction that advances the cursor",
	"a message in a stream of NATS does not expect its worker's claim",
	"errors show what a reference stands for",
}

// among returns the mutants of the table; of CI alone, if that is asked for.
func among(ci bool) []mutant {
	if !ci {
		return table
	}
	return slices.DeleteFunc(slices.Clone(table), func(m mutant) bool { return !slices.Contains(inCI, m.protection) })
}
