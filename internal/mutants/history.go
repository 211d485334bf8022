package main

// historyMutants take away what a cursor does when its server changes.
var historyMutants = []mutant{
	{
		"epochs that a promotion may have lost are used again",
		[]change{{"cursor/identity.go", `max(r.Epoch+lostEpochs, Epoch(since/time.Second)*lostEpochs)`, `max(r.Epoch+1, Epoch(since/time.Hour)*0)`}},
		cursorPkg, "TestPromote_NoNumberAndNoHistoryIsThatOfBefore",
	},
	{
		"numbers that a promotion may have lost are used again",
		[]change{{"cursor/identity.go", `max(r.Sequence/HistoryGap+1, int64(since/historyEvery))*HistoryGap`, `max(r.Sequence/HistoryGap, int64(since/historyEvery)*0)*HistoryGap`}},
		cursorPkg, "TestPromote_NoNumberAndNoHistoryIsThatOfBefore",
	},
	{
		"a cursor that is lost in a promotion is made anew with its numbers",
		[]change{{"cursor/identity.go", `timelineSQL + ` + "` OPERATOR(pg_catalog.<>) 1 OR EXISTS (", "`EXISTS ("}},
		processorPkg, "TestRun_ACursorThatIsLostInAPromotionUsesNoNumberAndNoKeyTwice",
	},
	{
		"a cursor that is younger than the backup is made anew with its numbers",
		[]change{{"cursor/identity.go", `WHERE epoch >= `, `WHERE false AND epoch >= `}},
		cursorPkg, "TestCreate_BeginsPastTheNumbersOfACursorThatMayBeLost",
	},
	{
		"a later history of one row goes on below an earlier one",
		[]change{{"cursor/identity.go", `int64(since/historyEvery))`, `int64(since/historyEvery)%65536)`}},
		cursorPkg, "TestBegun_ALaterHistoryOfOneRowHasLargerNumbers",
	},
	{
		"a later history of one row has the epochs of an earlier one",
		[]change{{"cursor/identity.go", `Epoch(since/time.Second)*lostEpochs`, `Epoch(since/time.Second)%65536*lostEpochs`}},
		cursorPkg, "TestBegun_ALaterHistoryOfOneRowHasLargerNumbers",
	},
	{
		"a retry after a halt over the clock passes over rows of older transactions",
		[]change{{"cursor/promote.go", `e.Horizon = ""`, `e.Horizon += ""`}},
		processorPkg, "TestRetry_AfterAHaltOverTheClockOfTheServerThatDeliveredHaltsAgain",
	},
	{
		"a promotion uses numbers that its worker has seen",
		[]change{{"cursor/promote.go", `next = seen.passed(next)`, ``}},
		cursorPkg, "TestPromote_NothingThatAWorkerHasSeenComesAgain",
	},
	{
		"every history begins at the beginning",
		[]change{{"cursor/histories.go", `if p > all[i].After {`, `if p != "" {`}},
		cursorPkg, "TestPromote_EachHistoryHasAMarkOfItsOwn",
	},
	{
		"a row of a backup is taken for that of now",
		[]change{{"cursor/restored.go", `(row.Epoch < n.Epoch || row.Sequence < n.Sequence)`, `row.Epoch < n.Epoch`}},
		cursorPkg, "TestHaltRestored_HaltsWhereTheRowIsOlderThanWhatWasSeen",
	},
	{
		"a recovery to an earlier time is taken for a promotion",
		[]change{{"cursor/restored.go", `seen.At.Sub(has) < behindAtMost`, `true`}},
		cursorPkg, "TestHaltRestored_APromotionIsNone",
	},
	{
		"a process halts over the clock where its cursor has moved since",
		[]change{{"cursor/promote.go", `case row.Position != h.At:`, `case row.Position != h.At && row.Position == "":`}},
		cursorPkg, "TestHaltClock_HaltsAtThatPositionAlone",
	},
	{
		"a copy of the database within its cluster is taken for the database",
		[]change{{"cursor/identity.go", `r.stored.database != "" && r.stored.database`, `r.stored.database == "-" && r.stored.database`}},
		cursorPkg, "TestAcquire_HaltsInACopyWithinTheSameCluster",
	},
}
