package main

// sqlMutants take away what protects the effects of the sql sink, and its notes in a target above all.
var sqlMutants = []mutant{
	{
		"a statement may end the transaction that advances the cursor",
		[]change{{"sinks/sql/parse.go", `	switch words[0] {
	case "BEGIN",`, `	switch words[0] {
	case "",`}},
		sqlPkg, "TestParse_RefusesWhatWouldOutliveOrEndTheTransaction",
	},
	{
		"another database takes records from a worker of an older epoch",
		[]change{{"sinks/sql/applied.go", `if first.Epoch < a.epoch {`, `if false {`}},
		sqlPkg, "TestRemote_RefusesAWorkerOfAnOlderEpochAndWritesNothing",
	},
	{
		"another database takes records of any cursor that has the name of the process",
		[]change{{"sinks/sql/applied.go", `if a.isAnothers(first) {`, `if false {`}},
		sqlPkg, "TestRemote_RefusesAnotherCursorUnderTheNameOfAProcess",
	},
	{
		"another database does not note whose records it has",
		[]change{{"sinks/sql/applied.go", `cmp.Or(first.Origin, a.origin)`, `cmp.Or(a.origin)`}},
		sqlPkg, "TestRemote_OfTwoDatabasesWithOneProcessNameTheSecondIsRefused",
	},
	{
		"another database is not shown that records were written off",
		[]change{{"processor/sent.go", `from: before, to: to}`, `from: before}`}},
		sqlPkg, "TestRemote_GoesOnBehindRecordsThatAreWrittenOff",
	},
	{
		"another database applies records without a note of it",
		[]change{{"sinks/sql/note.go", `CASE WHEN a.rows OPERATOR(pg_catalog.=) 1 AND`, `CASE WHEN true AND`}},
		sqlPkg, "TestRemote_WhatTheTargetDoesNotNoteIsNotApplied",
	},
	{
		"a dead letter from before the notes of another database is taken for applied",
		[]change{{"sinks/sql/replay.go", `return d.Sequence > a.since && !another`, `return !another`}},
		sqlPkg, "TestRemote_ADeadLetterFromBeforeTheNotesBeginIsNotTakenForApplied",
	},
	{
		"another database notes nothing of numbers that it lost",
		[]change{{"sinks/sql/applied.go", `t.since = next.Sequence - 1`, `t.since += 0`}},
		sqlPkg, "TestRemote_ADeadLetterThatARestoreTookIsNotTakenForApplied",
	},
	{
		"another database need not note that a record failed",
		[]change{{"sinks/sql/note.go", `r.rows OPERATOR(pg_catalog.=) $10::pg_catalog.int8 THEN`, `r.rows OPERATOR(pg_catalog.>=) 0 AND $10::pg_catalog.int8 OPERATOR(pg_catalog.>=) 0 THEN`}},
		sqlPkg, "TestRemote_ARecordWhoseFailureTheTargetDoesNotNoteIsNotGivenUp",
	},
	{
		"what is wrong with another database is an attempt at the record",
		[]change{{"sinks/sql/applied.go", `return t, processor.Unreached(err)`, `return t, err`}},
		sqlPkg, "TestRemote_WhatIsWrongWithTheTargetIsNoVerdictOnTheRecord",
	},
	{
		"a statement of the sql sink that touches no row counts as applied where one is required",
		[]change{{"sinks/sql/sink.go", `s.requireRow && touchedNone(tag)`, `s.requireRow && tag.Insert() && touchedNone(tag)`}},
		sqlPkg, "TestDeliverTx_AStatementThatTouchesNoRowFailsForGoodWhereOneIsRequired",
	},
	{
		"what touches no row in another database is committed before its rows are counted",
		[]change{{"sinks/sql/remote.go", `if r.sink.requireRow {`, `if r.sink.requireRow && len(t.rest) == 0 {`}},
		sqlPkg, "TestRemote_AStatementThatTouchesNoRowFailsForGoodWhereOneIsRequired",
	},
	{
		"a connection to another database that ended while it was idle is a failure",
		[]change{{"sinks/sql/remote.go", `err == nil || !reused ||`, `err == nil || reused ||`}},
		sqlPkg, "TestRemote_AConnectionThatEndedWhileItWasIdleIsNoFailure",
	},
	{
		"another database takes the bytes of a record for its sessions' encoding",
		[]change{{"sinks/sql/remote_config.go", "	inUTF8(parsed)\n", ""}},
		sqlPkg, "TestRemote_TextsArriveAsTheyAreInADatabaseOfAnotherEncoding",
	},
	{
		"a record that another database cannot note is put aside",
		[]change{{"sinks/sql/remote.go", `case isUnencodable(err) && !processor.IsRefused(err):`, `case false:`}},
		sqlPkg, "TestRemote_ACharacterThatTheNotesCannotHoldHaltsTheProcess",
	},
	{
		"a sql target refuses the first record of a cursor whose numbers begin past others",
		[]change{{"sinks/sql/applied.go", `cursor.IsFirst(first.Sequence, first.Epoch)`, `first.Sequence == 1`}},
		sqlPkg, "TestRemote_BeginsWithTheFirstRecordOfACursor",
	},
	{
		"a sql target takes a promotion for a seek",
		[]change{{"sinks/sql/applied.go", `if a.isOfEarlierHistory(next) && !a.chained(next) {`, `if false {`}},
		sqlPkg, "TestRemote_RefusesWhereThePromotedSourceMayHaveLostWhatItHas",
	},
	{
		"a sql target that has lost more than a promoted source takes the source for the one that did",
		[]change{{"sinks/sql/applied.go", `case a.isBehind(next):`, `case false:`}},
		sqlPkg, "TestRemote_SaysWhatATargetLacksAfterAPromotion",
	},
	{
		"a sql target takes any record for the last one that it applied",
		[]change{{"sinks/sql/applied.go", `gap == -1 && a.dedupKey == d.DedupKey()`, `gap == -1`}},
		sqlPkg, "TestRemote_RefusesWhereThePromotedSourceMayHaveLostWhatItHas",
	},
	{
		"a sql target halts behind a dead letter after a promotion",
		[]change{{"sinks/sql/again.go", `if gap %= cursor.HistoryGap; gap > cursor.HistoryGap/2 {`, `if gap %= cursor.HistoryGap; gap > 0 {`}},
		sqlPkg, "TestRemote_GoesOnAfterAPromotionBehindWhatWasPassedOver",
	},
	{
		"a sql target goes on after a promotion behind more than it refused",
		[]change{{"sinks/sql/applied.go", `noted = all == gap`, `noted = all > 0`}},
		sqlPkg, "TestRemote_GoesOnAfterAPromotionBehindWhatWasPassedOver",
	},
	{
		"a sql target takes a record that it refused for applied",
		[]change{{"sinks/sql/again.go", `AND applied IS NOT TRUE`, `AND false`}},
		sqlPkg, "TestRemote_TakesNoRecordForAppliedThatItRefused",
	},
	{
		"a sql target takes a record for refused that a replay has applied since",
		[]change{{"sinks/sql/again.go", `AND applied IS NOT TRUE`, `AND true`}},
		sqlPkg, "TestRemote_ARecordThatAReplayAppliedComesAgain",
	},
	{
		"a sql target takes rows whose ids came again for those that it applied",
		[]change{{"sinks/sql/applied.go", `if a.recent.has(d, -gap) ||`, `if gap < -1 ||`}},
		sqlPkg, "TestRemote_IdsThatComeAgainForOtherRowsAreNotTakenForApplied",
	},
	{
		"a refusal is not noted where the connection is gone",
		[]change{{"sinks/sql/remote.go", "processor.IsRefused(failure) {", "processor.IsRefused(failure) || r.conn == nil {"}},
		sqlPkg, "TestRemote_ARefusalIsNotedAlsoIfTheTargetHangsThen",
	},
}
