package main

// processorMutants take away what protects the order of the loop.
var processorMutants = []mutant{
	{
		"records of one server go out under the lease of another",
		[]change{{"processor/server.go", `return p.config.Store.Elsewhere(lease.Server(), page.Server)`, `return nil`}},
		processorPkg, "TestRun_ReadsOneServerUnderTheLeaseOfAnotherDeliversNothing",
	},
	{
		"a worker forgets the numbers that it has seen",
		[]change{{"processor/server.go", `if !p.numbers.Before(row) {`, `if true {`}},
		processorPkg, "TestRun_ARowThatGoesBackHaltsTheProcess",
	},
	{
		"a dedup key is that of another history",
		[]change{{"processor/record.go", `case d.CreatedAt.IsZero() && d.History != "":`, `case d.CreatedAt.IsZero() && d.History == "-":`}},
		processorPkg, "TestRun_AnAsynchronousPromotionUsesNoNumberAndNoKeyTwice",
	},
	{
		"what a promoted server has stamped before the cursor is not looked for",
		[]change{{"processor/server.go", `if late.Reason != "" {`, `if false {`}},
		processorPkg, "TestRun_APromotedServerWhoseClockIsBehindHaltsTheProcess",
	},
	{
		"a promotion is noted only when there is something to deliver",
		[]change{{"processor/server.go", `if server == "" || server == p.server || !p.together() {`, `if true {`}},
		processorPkg, "TestRun_APromotedServerWhoseClockIsBehindHaltsTheProcess",
	},
	{
		"a skip makes a worker forget what else it sent",
		[]change{{"processor/sent.go", "== sequence && t.behind <= behind {", "== sequence && t.behind == behind {"}},
		processorPkg, "TestSequence_ASkipKeepsTheNumbersOfTheOthersOfItsCall",
	},
	{
		"a seek is undone by an advance that a worker owes",
		[]change{{"processor/deliver.go", `owed == nil || owed.epoch != s.lease.Epoch() || owed.from != s.lease.Position()`, `owed == nil || owed.from != s.lease.Position()`}},
		processorPkg, "TestSeek_IsNotUndoneByAnAdvanceThatIsOwed/to_where_it_stands",
	},
	{
		"a library without a logger is silent",
		[]change{{"processor/config.go", `		c.Logger = slog.Default()`, `		c.Logger = slog.New(slog.DiscardHandler)`}},
		processorPkg, "TestConfig_LogsByDefault",
	},
	{
		"an error that goes on is logged each time it comes",
		[]change{{"processor/report.go", `now.Sub(r.said) < repeatInterval`, `false`}},
		processorPkg, "TestLog_SamplesAnErrorThatGoesOnAndCountsIt",
	},
	{
		"an error that goes on is logged once",
		[]change{{"processor/report.go", `!isError || now.Sub(r.said) < repeatInterval`, `isError || now.Sub(r.said) < repeatInterval`}},
		processorPkg, "TestLog_SamplesAnErrorThatGoesOnAndCountsIt",
	},
	{
		"the times of a receiver are taken for those of the record",
		[]change{{"processor/redact.go", `		s.facts[fact] = true
`, `		s.facts[fact] = false
`}},
		processorPkg, "TestRedact_LeavesTimesAndLineNumbers",
	},
	{
		"a time of the record is quoted",
		[]change{{"processor/redact.go", `			delete(s.facts, fact)`, ``}},
		processorPkg, "TestRedact_LeavesTimesAndLineNumbers",
	},
	{
		"the cursor advances before the sink acknowledges",
		[]change{{"processor/deliver.go", `		n, failure := s.hand(ds)
`, `		early := advance{to: ds[n-1].Position, n: int64(n)}
		if err := s.advance(early); err != nil {
			return err
		}
		if _, failure := s.hand(ds); failure == nil {
			records = records[n:]
			continue
		}
		n, failure := 0, errors.New("too late")
`}},
		processorPkg, "TestHalt_NothingBehindAPoisonRecordIsSentUntilAnOperatorDecides",
	},
	{
		"nobody asks for the lease before a sink call",
		[]change{{"processor/shift.go", `	if err := s.lease.Held(); err != nil {
		return 0, err
	}
`, ``}},
		processorPkg, "TestLostLease_NoCallBeginsUnderIt/same_chunk",
	},
	{
		"what was read ahead outlives the lease (and nobody asks for that before a call)",
		[]change{{"processor/shift.go", `page, err = ahead(err)`, `page, err = ahead(nil)`},
			{"processor/shift.go", `	if err := s.lease.Held(); err != nil {
		return 0, err
	}
`, ``}},
		processorPkg, "TestLostLease_NoCallBeginsUnderIt/read_ahead",
	},
	{
		"what was read before the lease is delivered, although another worker did so since",
		[]change{{"processor/shift.go", `if seen.after != lease.Position() {`, `if false {`}},
		processorPkg, "TestAcquire_DropsWhatAnotherWorkerDeliveredSinceItWasRead",
	},
	{
		"after an unknown commit memory is believed, and not the row",
		[]change{{"processor/deliver.go", ` || owed.from != s.lease.Position() {`, ` {`}},
		processorPkg, "TestAdvance_WhoseCommitIsUnknownIsLookedUp/and_was_made",
	},
	{
		"what was acknowledged is forgotten when its advance fails",
		[]change{{"processor/deliver.go", `	owed := s.owed
	s.owed = nil
`, `	var owed *advance
	s.owed = nil
`}},
		processorPkg, "TestAdvance_IsTriedAgainAloneWhenTheSinkHadSucceeded",
	},
	{
		"an advance of an InTx process is made good without its effects",
		[]change{{"processor/deliver.go", `	if s.config.Dispatch.outlives {
		s.owed = &a`, `	if true {
		s.owed = &a`}},
		processorPkg, "TestAdvance_OfAnInTxProcessIsNeverMadeWithoutItsEffects",
	},
	{
		"the end of a process cancels the advance of its last record",
		[]change{{"processor/deliver.go", `s.lease.Advance(ctx, a.to, a.n)`, `s.lease.Advance(s.run, a.to, a.n)`}},
		processorPkg, "TestRun_OnShutdownFinishesTheCallInFlightAndAdvances",
	},
	{
		"a record whose outcome is unknown is put aside as a dead letter",
		[]change{{"processor/verdict.go", `if !s.config.DeadLetter || s.haltsOn(f) {`, `if !s.config.DeadLetter {`}},
		processorPkg, "TestDeadLetter_AnUnknownOutcomeHaltsAllTheSame",
	},
	{
		"a record is put aside because the receiver refuses us",
		[]change{{"processor/deliver.go", `	return f.Class == cursor.ClassRefused || s.config`, `	return s.config`}},
		processorPkg, "TestRefused_HaltsWhateverThePolicyAndPutsNothingAside",
	},
	{
		"a run of dead letters never ends",
		[]change{{"processor/verdict.go", `if s.letters >= s.config.DeadLetterRun {`, `if false {`}},
		processorPkg, "TestDeadLetter_ALongRunOfThemHalts",
	},
	{
		"a dead letter that cannot be written is tried for ever",
		[]change{{"processor/verdict.go", `if err != nil && cannotBeWritten(err) {`, `if false {`}},
		processorPkg, "TestDeadLetter_OfARecordThatIsTooLargeHalts",
	},
	{
		"a record is sent again because its dead letter could not be written yet",
		[]change{{"processor/verdict.go", `	v := s.verdict
	s.verdict = nil
`, `	var v *verdict
	s.verdict = nil
`}},
		processorPkg, "TestDeadLetter_IsWrittenLaterWithoutAnotherAttempt",
	},
	{
		"a verdict that was not written undoes what an operator decided since",
		[]change{{"processor/verdict.go", ` && v.delivery.Epoch == lease.Epoch()`, ``}},
		processorPkg, "TestVerdict_ThatIsNotWrittenIsVoidAfterASeek",
	},
	{
		"a loss that a sink says when the lease has ended is forgotten",
		[]change{{"processor/deliver.go", `		s.keepFinal(d, failure)
`, ``}},
		processorPkg, "TestLostLease_WhatASinkSaysOnceHaltsUnderTheNextOne",
	},
	{
		"a loss that could not be written is void under a later epoch",
		[]change{{"processor/verdict.go", `	if v.final {`, `	if false {`}},
		processorPkg, "TestLostLease_WhatASinkSaysOnceHaltsUnderTheNextOne",
	},
	{
		"a loss that stands in the row halts the process once more behind the decision",
		[]change{{"processor/process.go", `		p.verdict = p.verdict.unless(s.halt)
`, ``}},
		processorPkg, "TestLostLease_WhatASinkSaysOnceIsNotSaidAgainWhenItStandsInTheRow",
	},
	{
		"a loss behind records whose advance fails is forgotten",
		[]change{{"processor/deliver.go", `					s.keepFinal(ds[n], failure)
`, ``}},
		processorPkg, "TestLostLease_ALossBehindRecordsWhoseAdvanceFailsHalts",
	},
	{
		"a pool that is too small for its processes is taken",
		[]change{{"cursor/join.go", `if need := j.conns + conns; need > allowed {`, `if need := j.conns + conns; false {`}},
		processorPkg, "TestRun_RefusesAPoolThatIsTooSmallForItsProcesses",
	},
	{
		"a read that is not answered keeps the lease",
		[]change{{"processor/deadline.go", `{ return s.config.Store.LeaseTimeout() / overdueFraction }`, `{ return 10 * time.Minute }`}},
		processorPkg, "TestDrain_AReadThatIsNotAnsweredDoesNotKeepTheLease",
	},
	{
		"a look that is not answered has no deadline",
		[]change{{"processor/process.go", `context.WithTimeoutCause(ctx, p.patience, errOverdue)`, `context.WithTimeoutCause(ctx, time.Hour, errOverdue)`}},
		processorPkg, "TestDrain_ALookThatIsNotAnsweredIsGivenUp",
	},
	{
		"the server frees the lock of an InTx worker during its call",
		[]change{{"cursor/store.go", `	return max(s.config.Timeout, t.statementTimeout+silenceMargin)`, `	return s.config.Timeout`}},
		processorPkg, "TestInTx_ASinkMayWorkForLongerThanTheLeaseTimeoutWithoutSQL",
	},
	{
		"a back-off lasts until the database's clock says so",
		[]change{{"processor/retry.go", `	return min(f.Wait, time.Until(d.due))`, `	return f.Wait`}},
		processorPkg, "TestRetry_AClockThatIsSetBackDoesNotMakeTheWaitLonger",
	},
	{
		"an error of the database is counted against the record",
		[]change{{"processor/deliver.go", `case !s.config.Dispatch.outlives && isDatabase(err):`, `case false:`}},
		processorPkg, "TestInTx_ADatabaseErrorIsNotCountedAgainstTheRecord",
	},
	{
		"an advance that is owed undoes what an operator sought",
		[]change{{"processor/deliver.go", `if owed == nil || owed.epoch != s.lease.Epoch() || owed.from != s.lease.Position() {`, `if owed == nil {`}},
		processorPkg, "TestSeek_IsNotUndoneByAnAdvanceThatIsOwed",
	},
	{
		"a worker has no doubt about what the one before it sent",
		[]change{{"processor/doubt.go", `p.doubt = doubt{lease.Position(), max(p.config.Dispatch.chunk(p.config), int(min(lost, math.MaxInt32)))}`, `_ = min(lost, math.MaxInt32)`}},
		processorPkg, "TestUnknown_StandsAtWhatAnotherWorkerMayHaveSent",
	},
	{
		"the number of a record that was sent and is gone goes to the next one",
		[]change{{"processor/sent.go", `	if n == 0 {
		return nil
	}
	from, to`, `	if n >= 0 {
		return nil
	}
	from, to`}},
		processorPkg, "TestSequence_NoNumberStandsForTwoRecordsWhenARowIsDeleted",
	},
	{
		"a worker does not know which record another one has sent",
		[]change{{"processor/sent.go", `if f != nil && f.Position > behind &&`, `if f != nil && f.Position < behind &&`}},
		processorPkg, "TestSequence_TheNextWorkerKeepsTheNumberOfAFailingRecordThatIsGone",
	},
}
