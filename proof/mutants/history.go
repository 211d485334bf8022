package main

// historyMutants take away what a cursor does when its server changes.
var historyMutants = []mutant{
	{
		"a server that lacks what its disk had is taken for one that was started again",
		[]change{{"cursor/restored.go", `now.log < n.log`, `now.log < 0`}},
		processorPkg, "TestRestored_AnAttemptThatWasLostIsNotMadeOfAnotherRow",
	},
	{
		"a seek before any worker looks hides that the log went back",
		[]change{{"cursor/restored.go", `|| n.Lost(row)`, `|| false`}},
		cursorPkg, "TestSeen_AServerWhoseLogWentBack",
	},
	{
		"a process that reads nothing does not know how far the log was",
		[]change{{"cursor/restored.go", `n.log = max(n.log, now.log, now.kept)`, `n.log = max(n.log, 0)`}},
		cursorPkg, "TestSeen_AServerWhoseLogWentBack",
	},
	{
		"a server whose statistics are reset is taken for one that was restored",
		[]change{{"cursor/restored.go", `case now.began() == was.began():`, `case false:`}},
		cursorPkg, "TestSeen_AServerWhoseLogWentBack",
	},
	{
		"the sequence of another server's ids is said to be reset",
		[]change{{"processor/server.go", `cursor.ResetHalt{Server: sequence.Server, `, `cursor.ResetHalt{`}},
		processorPkg, "TestRun_TheSequenceOfAnotherServerIsNotSaidToBeReset",
	},
	{
		"a cursor that is halted as restored says nothing of others",
		[]change{{"cursor/identity.go", "failed_class IN (` + restoredClasses + `)", "failed_class = 'nothing'"}},
		cursorPkg, "TestCreate_BeginsPastTheNumbersOfACursorThatMayBeLost",
	},
	{
		"a halt on an old primary that comes back speaks of a backup alone",
		[]change{{"cursor/restored.go", `system == server.system && was > now`, `system == server.system && was < now`}},
		cursorPkg, "TestLost_NamesAnOldPrimaryThatComesBack",
	},
	{
		"the tables are upgraded after a promotion as if nothing had come since",
		[]change{{"migrations/00003_promises.sql", "AS xid) now\nWHERE timeline <> ('x'", "AS xid) now\nWHERE false AND timeline <> ('x'"}},
		processorPkg, "TestRun_AServerThatIsMetAfterItsClockWasCorrectedHaltsTheProcess",
	},
	{
		"the tables are upgraded after a promotion as if the pause was an advance",
		[]change{{"migrations/00003_promises.sql", "e.action IN ('pause', ", "e.action IN ("}},
		processorPkg, "TestRun_AServerThatIsMetAfterItsClockWasCorrectedHaltsTheProcess/ids_of_a_sequence,_upgraded_after_a_pause,_worker_down",
	},
	{
		"an upgrade that was undone has forgotten what came before it",
		[]change{{"migrations/00003_promises.sql", "e.action = 'downgrade'", "e.action = 'nothing'"}},
		processorPkg, "TestRun_AServerThatIsMetAfterItsClockWasCorrectedHaltsTheProcess/ids_of_a_sequence,_upgraded_twice,_worker_down",
	},
	{
		"a retry after ids have started again keeps the dedup keys",
		[]change{{"cursor/operate.go", "row, err = row.recounted(row.Position)", "row = row.sought(row.Position)"}},
		cursorPkg, "TestHaltReset_WhatAnOperatorDecidesThenBeginsAHistory/retry",
	},
	{
		"a seek after ids have started again keeps the dedup keys, once the sequence has come past the cursor",
		[]change{{"cursor/operate.go", "row, err = row.recounted(to)", "row = row.sought(to)"}},
		cursorPkg, "TestHaltReset_WhatAnOperatorDecidesThenBeginsAHistory/seek",
	},
	{
		"a cursor that gets its place after another was given up keeps the dedup keys",
		[]change{{"processor/start.go", "if anew {\n\t\treturn p.config.Store.PlaceAnew", "if anew && false {\n\t\treturn p.config.Store.PlaceAnew"}},
		daemonPkg, "TestForget_OfAProcessWithoutAStartNoKeyRepeats/a_worker_places_it",
	},
	{
		"a cursor without a place hides the one that was given up",
		[]change{{"cursor/past.go", "action = 'create' AND to_position IS DISTINCT FROM", "action = 'create' OR to_position IS NULL AND to_position IS DISTINCT FROM"}},
		daemonPkg, "TestForget_OfAProcessWithoutAStartNoKeyRepeats/an_operator_seeks",
	},
	{
		"a read under the lease takes the sequence of another server for one that was reset",
		[]change{{"processor/deadline.go", "return r.page, s.ofServer(r.err)", "return r.page, r.err"}},
		processorPkg, "TestRun_TheSequenceOfAnotherServerIsNotSaidToBeResetUnderTheLease",
	},
	{
		"a clock that is behind is taken for one that was right",
		[]change{{"sources/table/late.go", "\t\tif now.mark < c.mark {\n\t\t\treturn\n\t\t}\n", ""}},
		tablePkg, "TestClock_ThatStaysBehindKeepsTheTimeOfItsStep",
	},
	{
		"a worker that came when the process was halted says when the clock stepped back",
		[]change{{"sources/table/late.go", " || c.upTo < after {", " {"}},
		tablePkg, "TestClock_ThatStaysBehindKeepsTheTimeOfItsStep",
	},
	{
		"a cursor that is made anew after a restore is another one",
		[]change{{"cursor/restored.go", "	n = n.at(row.start.place,", "	if row.Epoch < n.Epoch {\n\t\tn.Epoch, n.Sequence = 0, 0\n\t}\n\tn = n.at(row.start.place,"}},
		processorPkg, "TestRun_ACursorThatIsMadeAnewAfterASnapshotWasPutBackHaltsTheProcess",
	},
	{
		"a new worker beside a halt as restored delivers",
		[]change{{"processor/server.go", "\tif other != \"\" {", "\tif other != \"\" && false {"}},
		processorPkg, "TestRun_BesideAProcessThatHaltedAsRestoredANewWorkerHaltsItsOwn",
	},
	{
		"a halt as restored concerns cursors that were moved since",
		[]change{{"cursor/restored.go", " AND e.at > c.updated_at", ""}},
		processorPkg, "TestRun_BesideAProcessThatHaltedAsRestoredANewWorkerHaltsItsOwn",
	},
	{
		"a reset that a read under the lease has found is forgotten",
		[]change{{"processor/process.go", "\tp.seesReset(err, todo.lease.Position())\n", ""}},
		processorPkg, "TestRun_ASequenceThatWasBeforeTheCursorUnderTheLeaseHaltsTheProcess",
	},
	{
		"a sequence is held against the position of another server",
		[]change{{"processor/server.go", "	err = p.ofServer(err)\n", ""}},
		processorPkg, "TestRun_ASequenceIsHeldAgainstThePositionOfItsOwnServer",
	},
	{
		"the setval that is printed sets a sequence back",
		[]change{{"sources/table/rows.go", " FROM %s WHERE last_value < %[2]d", " FROM %s"}},
		tablePkg, "TestInspectRows_CursorThatIsAheadIsNamed",
	},
	{
		"forget drops what a halt over the ids knows",
		[]change{{"cursor/forget.go", "(f.Restored() || f.Class == ClassReset)", "f.Restored()"}},
		cursorPkg, "TestHaltReset_WhatAnOperatorDecidesThenBeginsAHistory/retry",
	},
	{
		"a reset is forgotten where another worker has moved the cursor on",
		[]change{{"cursor/promote.go", "row.Position < h.At:", "row.Position != h.At:"}},
		cursorPkg, "TestHaltReset_HoldsUnlessAnOperatorMovedTheCursorBack",
	},
	{
		"a backup that is restored twice goes on under the same numbers, if the clock does not tell",
		[]change{{"cursor/identity.go", "rand.N[Epoch](lostEpochs/2)", "rand.N[Epoch](1)"}},
		cursorPkg, "TestRestored_TwiceFromOneBackupGivesNoNumberTwice",
	},
	{
		"a process whose cursor may be lost needs no partition",
		[]change{{"command/internal/daemon/retention.go", "\t\t\treader.idle = false\n", ""}},
		daemonPkg, "TestPartitions_AreNotSafeWhereACursorMayBeLost",
	},
	{
		"doctor proposes a start for a cursor that may be lost",
		[]change{{"command/internal/daemon/doctor_process.go", "err != nil || lost {\n\t\tif lost", "err != nil || lost && false {\n\t\tif lost"}},
		commandPkg, "TestRun_WhereACursorMayBeLostNobodyProposesAStartAlone",
	},
	{
		"a worker proposes a start for a cursor that may be lost",
		[]change{{"processor/start.go", "More: more, MayBeLost: lost}", "More: more, MayBeLost: lost && false}"}},
		commandPkg, "TestRun_WhereACursorMayBeLostNobodyProposesAStartAlone",
	},
	{
		"a cursor that was given up is made again with the dedup keys of former rows",
		[]change{{"processor/start.go", "\tcase anew:\n", "\tcase anew && false:\n"}},
		daemonPkg, "TestForget_WhereIDsHaveStartedAgainNoKeyRepeats",
	},
	{
		"a cursor that was given up is prepared with the dedup keys of former rows",
		[]change{{"command/internal/daemon/first_run.go", "if anew {", "if anew && false {"}},
		daemonPkg, "TestForget_WhereIDsHaveStartedAgainNoKeyRepeats",
	},
	{
		"what is known of a cursor that was given up is forgotten",
		[]change{{"cursor/decide.go", "AND $3 = 'forget'", "AND $3 = 'never'"}},
		daemonPkg, "TestForget_WhereIDsGrowKeepsTheKeys",
	},
	{
		"a process that reads nothing learns the log at checkpoints alone",
		[]change{{"cursor/restored.go", "now.log, now.kept)", "now.log)"}},
		cursorPkg, "TestSeen_APauseSinceTheSnapshotIsKnownByALook",
	},
	{
		"a sequence of ids before the cursor halts nothing",
		[]change{{"processor/server.go", "p.seesReset(err, row.Position) {", "p.seesReset(err, row.Position) && false {"}},
		processorPkg, "TestRun_ASequenceBeforeTheCursorHaltsTheProcess",
	},
	{
		"a sequence that is no longer the table's is held against the position",
		[]change{{"sources/table/read.go", "anew, s.layout = true, nil", "anew = true"}},
		tablePkg, "TestRead_ASequenceThatIsNoLongerTheTablesIsNotHeldAgainstThePosition",
	},
	{
		"a seek that makes a cursor lists nothing that it passes over",
		[]change{{"command/internal/daemon/first_run.go", `if change.After.Position == "" {`, `if change.After.Position <= "~" {`}},
		commandPkg, "TestDecide_BeforeTheFirstRun",
	},
	{
		"a pause says nothing of a cursor that may be lost",
		[]change{{"command/internal/daemon/first_run.go", "outcome.Text, visible.Shell(o.process), warning)", "outcome.Text, visible.Shell(o.process), warning[:0])"}},
		commandPkg, "TestPause_OfACursorThatMayBeLostSaysSo",
	},
	{
		"a worker is announced once, whatever becomes of the server",
		[]change{{"command/internal/daemon/configured.go", "err != nil || run == c.serverRun", "err != nil || run != \"\""}},
		daemonPkg, "TestStatus_SeesAWorkerWhoseAnnouncementWasLostWithTheServer",
	},
	{
		"a history begins with the next range, however near that is",
		[]change{{"cursor/identity.go", "(e + 2*lostEpochs - 1) / lostEpochs * lostEpochs", "(e/lostEpochs + 1) * lostEpochs"}},
		cursorPkg, "TestBegun_IsPastAllEpochsOfALostServer",
	},
	{
		"a halt on an old primary has an operator decide",
		[]change{{"cursor/restored.go", "return back + \". The process has run on a later timeline", "back += \". The process has run on a later timeline"}},
		cursorPkg, "TestLost_NamesAnOldPrimaryThatComesBack",
	},
	{
		"a lease on a new primary leaves a worker where it was",
		[]change{{"cursor/restored.go", "return n.at(l.place, l.Epoch(), l.Sequence())", "return n.at(\"\", l.Epoch(), l.Sequence())"}},
		processorPkg, "TestRun_OnAnOldPrimaryNothingIsDecidedByMistake",
	},
	{
		"a decision on an old primary is taken",
		[]change{{"cursor/operate.go", "row.haltedAs(ClassOldPrimary) && after.Failure == nil && !d.Fenced", "false && !d.Fenced"}},
		processorPkg, "TestRun_OnAnOldPrimaryNothingIsDecidedByMistake",
	},
	{
		"a halt beside one on an old primary is one as restored",
		[]change{{"cursor/restored.go", "return s.stop(ctx, conn, row, class, row.Position, row.before(reason))", "return s.stop(ctx, conn, row, ClassRestored, row.Position, row.before(reason))"}},
		processorPkg, "TestRun_OnAnOldPrimaryNothingIsDecidedByMistake",
	},
	{
		"doctor has all processes go on at an old primary",
		[]change{{"command/internal/daemon/doctor_process.go", "case f.Class == cursor.ClassOldPrimary:", "case f.Class == cursor.ClassOldPrimary && false:"}},
		daemonPkg, "TestDoctor_OnAnOldPrimaryProposesNoDecision",
	},
	{
		"restored of all processes looks at none that halted on an old primary",
		[]change{{"command/internal/daemon/restored.go", "f.Class == cursor.ClassOldPrimary && !d.Fenced", "false && !d.Fenced"}},
		commandPkg, "TestRestored_OnWhatMayBeAnOldPrimaryNeedsFenced",
	},
	{
		"status has a worker started for a cursor that may be lost",
		[]change{{"command/internal/daemon/status.go", "\tcase lost:\n", "\tcase lost && false:\n"}},
		daemonPkg, "TestStatus_OfACursorThatMayBeLostProposesNoWorker",
	},
	{
		"an error of a sql target with several hosts names the first",
		[]change{{"sinks/sql/remote_config.go", `!slices.Contains(hosts, host)`, `!slices.Contains(hosts, host) && false`}},
		sqlPkg, "TestRemoteConfig_NamesEveryHost",
	},
	{
		"a worker that has seen less delivers before the others have looked",
		[]change{{"processor/server.go", `p.run.others = now.Add(delay)`, `p.run.others = now`}},
		processorPkg, "TestRestored_AWorkerThatSawLessLetsTheOthersLookFirst",
	},
	{
		"a snapshot from before the first look after a restore is taken for a promotion",
		[]change{{"cursor/restored.go", `row.promoted() && !seen.undone(row)`, `row.promoted()`}},
		processorPkg, "TestRestored_ASnapshotFromBeforeTheFirstLookHaltsTheProcess",
	},
	{
		"a promotion after which no lost advance was noted is taken for a restore",
		[]change{{"cursor/restored.go", `row.Epoch < n.Epoch && n.place == row.server.place()`, `row.Epoch < n.Epoch`}},
		cursorPkg, "TestUndone_IsOfOneTimeline",
	},
	{
		"a function of the control file that was revoked is not looked for",
		[]change{{"cursor/doctor.go", `privilege.Missing(ctx, d.conn, controlFile)`, `privilege.Missing(ctx, d.conn, nil)`}},
		cursorPkg, "TestDoctor_NamesAFunctionThatASuperuserHasRevoked",
	},
	{
		"a paused process is not told that its database went back",
		[]change{{"processor/process.go", `if row.State == cursor.Paused && p.numbers.Lost(row)`, `if row.State == cursor.Running && p.numbers.Lost(row)`}},
		processorPkg, "TestRestored_APausedProcessIsToldOf",
	},
	{
		"epochs that a promotion may have lost are used again",
		[]change{{"cursor/identity.go", `; at > next {`, `; at < 0 {`}, {"cursor/identity.go", `return next + rand.N[Epoch](lostEpochs/2)`, `return e + Epoch(1+rand.N(1))`}},
		cursorPkg, "TestPromote_NoNumberAndNoHistoryIsThatOfBefore",
	},
	{
		"numbers that a promotion may have lost are used again",
		[]change{{"cursor/identity.go", `max(r.Sequence/HistoryGap+1, int64(r.Epoch/lostEpochs))*HistoryGap`, `max(r.Sequence/HistoryGap, int64(r.Epoch/lostEpochs)*0)*HistoryGap`}},
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
		[]change{{"cursor/identity.go", `int64(r.Epoch/lostEpochs))*`, `int64(r.Epoch/lostEpochs)%65536)*`}},
		cursorPkg, "TestBegun_ALaterHistoryOfOneRowHasLargerNumbers",
	},
	{
		"a later history of one row has the epochs of an earlier one",
		[]change{{"cursor/identity.go", `historyEvery) * lostEpochs;`, `historyEvery) % 65536 * lostEpochs;`}},
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
		"a seek to where ids have started again keeps the dedup keys",
		[]change{{"command/internal/daemon/operator.go", "	if !repeat {", "	if !repeat || true {"}},
		daemonPkg, "TestSeek_WhereIDsHaveStartedAgainNoKeyRepeats",
	},
	{
		"a sequence below the cursor has a seek keep the dedup keys",
		[]change{{"sources/table/recount.go", "repeat = behind != nil ||", "repeat = behind != nil && false ||"}},
		daemonPkg, "TestSeek_WhereIDsHaveStartedAgainNoKeyRepeats/set_back",
	},
	{
		"where ids have started again, a later seek back finds the former dedup keys",
		[]change{{"cursor/anew.go", `r.Histories.begin("")`, `r.Histories.begin(r.Position)`}},
		cursorPkg, "TestSeekAnew_BeginsAHistoryBeforeAllRecords/forward",
	},
	{
		"a history that a seek begins hides a promotion",
		[]change{{"cursor/decide.go", "return c.After.Sequence >= c.Before.Sequence+HistoryGap", "return c.After.Histories != c.Before.Histories"}},
		cursorPkg, "TestSeekAnew_LeavesAPromotionToBeNoted",
	},
	{
		"a decision before a promotion is noted gives out an epoch of the lost server",
		[]change{{"cursor/operate.go", `if row.unnoted && after`, `if false && after`}},
		cursorPkg, "TestDecision_BeforeTheServerIsNotedGivesOutNoEpochOfTheLostOne",
	},
	{
		"a decision before a restore is noted gives out an epoch of the other server",
		[]change{{"cursor/identity.go", "system_identifier <> ` + systemSQL + ` OR database_oid <> ` + databaseSQL + ` OR timeline", "timeline"}},
		cursorPkg, "TestDecision_BeforeTheServerIsNotedGivesOutNoEpochOfTheLostOne",
	},
	{
		"a decision before a promotion is noted hides it",
		[]change{{"cursor/decide.go", "return c.After.Sequence >= c.Before.Sequence+HistoryGap", "return c.After.Epoch >= c.Before.Epoch+lostEpochs"}},
		cursorPkg, "TestDecision_BeforeTheServerIsNotedGivesOutNoEpochOfTheLostOne",
	},
	{
		"the first number of a history is not known by its epoch after a decision",
		[]change{{"cursor/identity.go", `int64(r.Epoch/lostEpochs))*`, `int64(now.Sub(firstHistory)/historyEvery))*`}},
		cursorPkg, "TestBegun_TheSequenceIsThatOfTheEpoch",
	},
	{
		"a row of a backup is taken for that of now",
		[]change{{"cursor/restored.go", `row.Epoch < n.Epoch || row.Sequence < n.Sequence ||`, `row.Epoch < n.Epoch ||`}},
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
