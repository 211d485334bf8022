package main

// readingMutants take away what keeps a page's rows from being lost or stuck.
var readingMutants = []mutant{
	{
		"a page may hold a position that does not grow",
		[]change{{"processor/page.go", `if r.Position <= after {`, `if r.Position < "" {`}},
		processorPkg, "TestRead_APositionThatDoesNotGrowIsNamed",
	},
	{
		"an advance that changed no row is owed again",
		[]change{{"processor/deliver.go", `if errors.Is(err, cursor.ErrUnmoved) {`, `if false {`}},
		processorPkg, "TestAdvance_ThatChangedNoRowIsNeverOwed",
	},
	{
		"rows that are passed over take a number",
		[]change{{"processor/page.go", `Advance(context.WithoutCancel(s.run), to, 0)`, `Advance(context.WithoutCancel(s.run), to, 1)`}},
		processorPkg, "TestPass_TheCursorMovesOverWhatTheSourceLeavesOut",
	},
	{
		"a receiver cannot tell rows that were passed over from missing ones",
		[]change{{"processor/page.go", `if position := lease.Position(); b.to != position ||`, `if position := lease.Position(); true ||`}},
		processorPkg, "TestPass_TheCursorMovesOverWhatTheSourceLeavesOut",
	},
	{
		"a record that cannot be read goes to the sink",
		[]change{{"processor/deliver.go", `if fault := ds[0].Fault; fault != nil {`, `if fault := ds[0].Fault; false {`}},
		processorPkg, "TestFault_ARecordThatCannotBeReadHaltsAtItsPlace",
	},
}
