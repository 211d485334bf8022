package main

// cursorMutants take away what protects the lease and the cursor.
var cursorMutants = []mutant{
	{
		"the advance does not check the epoch",
		[]change{{"cursor/lease.go", `AND epoch OPERATOR(pg_catalog.=) $4`, `AND $4::bigint IS NOT NULL`},
			{"cursor/lease.go", "`epoch OPERATOR(pg_catalog.=) $4\n", "`$4::bigint IS NOT NULL\n"}},
		cursorPkg, "TestAdvance_RefusesSupersededEpoch",
	},
	{
		"the advance does not check that the position grows",
		[]change{{"cursor/lease.go", `
		AND position OPERATOR(pg_catalog.<) $2`, ``}},
		cursorPkg, "TestAdvance_RefusesToGoBackOrNowhere",
	},
	{
		"an advance looks through all versions of the row",
		[]change{{"cursor/version.go", `AND ctid OPERATOR(pg_catalog.=) $6`, `AND $6::pg_catalog.tid IS NOT NULL`}},
		cursorPkg, "TestAdvance_LooksThroughNoVersionsThatAStrangersSnapshotKeeps",
	},
	{
		"the lock behind an advance looks through all versions of the row",
		[]change{{"cursor/store.go", `WHERE ctid OPERATOR(pg_catalog.=) ` + "` + notedVersion + `", `WHERE ` + "` + notedVersion + `" + ` IS NOT NULL`}},
		cursorPkg, "TestAdvance_LooksThroughNoVersionsThatAStrangersSnapshotKeeps",
	},
	{
		"a plan for one page is kept while the table grows",
		[]change{{"cursor/version.go", `prepared.Again(ctx, l.conn.Conn(), s.relockSQL, s.advanceSQL, s.advanceWithSQL)`, `prepared.Again(ctx, l.conn.Conn(), s.lookSQL)`}},
		cursorPkg, "TestAdvance_LooksThroughNoVersionsThatAStrangersSnapshotKeeps",
	},
	{
		"a row that is not where its version was noted ends the lease",
		[]change{{"cursor/lease.go", `return l.asLeft(results[0])
	}`, `return errors.Join(ErrStoodAside, l.asLeft(results[0]))
	}`}},
		cursorPkg, "TestAdvance_GoesOnWhereTheVersionIsNotTheOneThatWasNoted",
	},
	{
		"an advance of no row is taken for one, and what was done with it commits",
		[]change{{"cursor/onerow.go", `OPERATOR(pg_catalog.=) 1 THEN 1`, `OPERATOR(pg_catalog.<) 2 THEN 1`}},
		cursorPkg, "TestOneRow_WhatChangesNoRowCommitsNothing/advance",
	},
	{
		"an advance of no row, with nothing beside it, is taken for one",
		[]change{{"cursor/onerow.go", `result.CommandTag.RowsAffected() == 1`, `result.CommandTag.RowsAffected() < 2`}},
		cursorPkg, "TestAdvance_RefusesSupersededEpoch/nothing_beside_it",
	},
	{
		"a record is passed over whose dead letter a trigger of others did not keep",
		[]change{{"cursor/deadletter.go", "WITH changed AS (", "WITH kept AS ("}, {"cursor/deadletter.go", `	RETURNING 1
)`, `	RETURNING 1
), changed AS (SELECT 1)`}},
		cursorPkg, "TestPutAside_KeepsTheDeadLetterOrTheCursorStays/no_dead_letter",
	},
	{
		"the settings of a role have a say in the times and bytes of a dead letter",
		[]change{{"cursor/letter.go", "const binary = pgx.QueryExecModeDescribeExec", "const binary = pgx.QueryExecModeExec"}},
		commandPkg, "TestCommands_TakeNoNoticeOfTheSettingsOfARole",
	},
	{
		"an operator's command goes through of which a trigger of others keeps no event",
		[]change{{"cursor/decide.go", "WITH changed AS (\n\tINSERT INTO", "WITH kept AS (\n\tINSERT INTO"},
			{"cursor/decide.go", "\tRETURNING 1\n)` + unlessOne", "\tRETURNING 1\n), changed AS (SELECT 1)` + unlessOne"}},
		cursorPkg, "TestDecision_WithoutAnEventChangesNothing/pause",
	},
	{
		"a worker that waits for a lock of others does not say so",
		[]change{{"processor/locked.go", "time.AfterFunc(lockedAfter,", "time.AfterFunc(1000*lockedAfter,"}},
		processorPkg, "TestWrite_NamesTheSessionThatItWaitsFor",
	},
	{
		"`status` blames the receiver while the worker waits for a lock",
		[]change{{"command/internal/daemon/status_hold.go", "case len(s.blockers) > 0:", "case len(s.blockers) > 1000:"}},
		daemonPkg, "TestStatus_NamesWhatHoldsDeliveryUp/a_stranger_at_the_dead_letters",
	},
	{
		"a command does not name the session that lets no one read",
		[]change{{"cursor/blocker.go", "if !errors.Is(err, ErrNoAnswer) ||", "if errors.Is(err, ErrNoAnswer) ||"}},
		cursorPkg, "TestRead_NamesASessionThatLetsNoOneRead/rows",
	},
	{
		"a decision whose commit was not answered looks like one that was refused",
		[]change{{"cursor/operate.go", `	return fmt.Errorf("%w: %w", ErrUncertain, err)`, `	return err`}},
		cursorPkg, "TestDecision_WhoseCommitIsNotAnsweredMayHaveBeenMade/skip",
	},
	{
		"any session that has the row is taken for a worker",
		[]change{{"cursor/torn.go", `keep(process, &StrangerError{*again})`, `keep(process, ErrHeld)`}},
		cursorPkg, "TestAcquire_NamesAStrangerThatHasTheRow",
	},
	{
		"a COMMIT that is answered with ROLLBACK is taken for one",
		[]change{{"cursor/onerow.go", `results[at].CommandTag.String() == "COMMIT"`, `results[at].CommandTag.String() != "" `}},
		cursorPkg, "TestCommitted_TakesNothingButACommit",
	},
	{
		"a COMMIT whose outcome is unknown is taken for one",
		[]change{{"cursor/lease.go", `if !committed(results, len(updates)) ||`, `if err == nil && !committed(results, len(updates)) || err == nil &&`},
			{"cursor/lease.go", `l.relocked(ctx, next, results[len(updates)+1:], err)`, `l.row = next`}},
		cursorPkg, "TestAdvance_WhoseCommitIsUnknownIsTruthfulAboutIt",
	},
	{
		"the epoch is not committed before the first delivery",
		[]change{{"cursor/acquire.go", `[]statement{commit, begin, s.lock(`, `[]statement{{sql: "SELECT 1"}, {sql: "SELECT 1"}, s.lock(`}},
		cursorPkg, "TestAcquire_CommitsTheEpochBeforeTheFirstDelivery",
	},
	{
		"the epoch does not grow with a change of worker",
		[]change{{"cursor/acquire.go", `SET epoch = epoch + 1,`, `SET epoch = greatest(epoch, $4::bigint),`}},
		cursorPkg, "TestAcquire_EpochGrowsAtEveryChangeOfWorkerAndOnlyThen",
	},
	{
		"a worker that hears nothing gives up later than the server",
		[]change{{"cursor/keep.go", `timeout := max(l.store.config.Timeout/giveUpFraction-l.silence(), `, `timeout := max(2*l.store.config.Timeout, `}},
		cursorPkg, "TestLease_EndsBeforeTheServerGivesTheLockAway",
	},
	{
		"a worker that was stopped does not ask before it sends",
		[]change{{"cursor/keep.go", `for l.silence() >= l.store.config.Timeout/giveUpFraction ||`, `for l.silence() >= 1000*l.store.config.Timeout ||`}},
		cursorPkg, "TestHeld_TellsAWorkerThatWasStopped",
	},
	{
		"a worker does not look for its session's end before it sends",
		[]change{{"cursor/keep.go", `giveUpFraction || !l.undisturbed() {`, `giveUpFraction {`}},
		cursorPkg, "TestHeld_TellsAtOnceOfASessionThatWasEnded",
	},
	{
		"a worker does not look for its session's end during a call",
		[]change{{"cursor/keep.go", `if !l.undisturbed() {
				_ = l.pingAlone()`, `if l.conn == nil {
				_ = l.pingAlone()`}},
		cursorPkg, "TestLease_EndsAtOnceWithItsSession",
	},
	{
		"a lease is as young as the answer to its lock, not as the question (and nobody looks for the session's end)",
		[]change{{"cursor/acquire.go", `row, t, asked), nil`, `row, t, asked.Add(time.Since(asked))), nil`},
			{"cursor/keep.go", `giveUpFraction || !l.undisturbed() {`, `giveUpFraction {`}},
		cursorPkg, "TestHeld_DoesNotTrustALockWhoseAnswerCameLate",
	},
	{
		"a worker takes an old answer of its server for news",
		[]change{{"cursor/keep.go", `for l.silence()`, `if l.silence()`}},
		cursorPkg, "TestHeld_AsksAgainWhenTheAnswerIsOld",
	},
	{
		"a lease is not kept alive during a sink call",
		[]change{{"cursor/keep.go", `_ = l.ping()`, `_ = l.over()`}},
		cursorPkg, "TestLease_IsKeptWhileASinkCallRuns",
	},
	{
		"what happened to the row between two transactions is not seen",
		[]change{{"cursor/store.go", `	AND epoch OPERATOR(pg_catalog.=) $5
	AND position OPERATOR(pg_catalog.=) $6
	AND sequence OPERATOR(pg_catalog.=) $7
	AND state OPERATOR(pg_catalog.=) 'running'`,
			`AND $5::bigint + length($6::text) + $7::bigint IS NOT NULL`},
			{"cursor/lease.go", `(row.Epoch != l.row.Epoch || row.Position != l.row.Position || row.Sequence != l.row.Sequence)`, `row.Process == ""`}},
		cursorPkg, "TestAdvance_GoesOnWithNothingButTheRowItLeft/seek",
	},
	{
		"a busy worker does not give way to a session that waits for the row",
		[]change{{"cursor/lease.go", `if time.Since(l.yielded) >= yieldInterval {`, `if l.yielded.Equal(l.began.Add(-time.Hour)) {`}},
		cursorPkg, "TestAdvance_StandsAsideForASessionThatWaits",
	},
	{
		"an advance is not durable where the role's commits are not",
		[]change{{"cursor/store.go", `OPERATOR(pg_catalog.=) 'off' THEN`, `OPERATOR(pg_catalog.=) 'never' THEN`}},
		cursorPkg, "TestAcquire_MakesCommitsDurableWhereTheRoleDoesNot",
	},
	{
		"an operator's decision does not ask where the cursor stands",
		[]change{{"cursor/operate.go", `case *d.Expect == a.expect(row):`, `case *d.Expect != "" || a.expect(row) != "":`}},
		cursorPkg, "TestDecision_IsRefusedWhenTheCursorMoved/skip",
	},
	{
		"an operator does not wait for the lock of the row",
		[]change{{"cursor/operate.go", `WHERE process_name = $1
FOR UPDATE`, `WHERE process_name = $1`}},
		cursorPkg, "TestSkip_ByTwoOperatorsAtOncePassesOverOneRecord",
	},
	{
		"a skip gives the number of its record to the next one",
		[]change{{"cursor/operate.go", `		row.Sequence++
`, ``}},
		cursorPkg, "TestSkipAndSeek_NoNumberEverStandsForTwoRecords",
	},
	{
		"a seek uses numbers again that may have been sent",
		[]change{{"cursor/operate.go", `	r.Sequence += SeekGap
`, ``}},
		cursorPkg, "TestSkipAndSeek_NoNumberEverStandsForTwoRecords",
	},
	{
		"a skip ends a pause",
		[]change{{"cursor/operate.go", `	if row.State == Halted {
		row.State = Running
	}
	return row
`, `	row.State = Running
	return row
`}},
		cursorPkg, "TestDecision_InEachState/paused_and_failing:_skip",
	},
	{
		"a cursor that was deleted is made again",
		[]change{{"cursor/store.go", `return s.create(ctx, process, at, "false", false)`, `return s.create(ctx, process, at, "true", false)`}},
		cursorPkg, "TestCreate_RefusesToStartADeletedCursorOver",
	},
	{
		"a process goes on in a database that was restored",
		[]change{{"cursor/acquire.go", `case row.elsewhere():`, `case false:`}},
		cursorPkg, "TestAcquire_HaltsWhereTheDatabaseWasRestored",
	},
	{
		"what an operator decides hides what a promoted server has stamped before",
		[]change{{"cursor/decide.go", "position <> $2 AND timeline = ` + timelineSQL + ` THEN", "position <> $2 THEN"}},
		cursorPkg, "TestSeek_BeforeAPromotionIsNotedKeepsTheHorizon",
	},
	{
		"a seek forward after a restore begins the history behind what it passes over",
		[]change{{"cursor/operate.go", `row.Position = min(row.Position, to)`, `row.Position = max(row.Position, to)`}},
		cursorPkg, "TestSeek_ForwardBeginsTheHistoryWhereTheServerWentBack",
	},
	{
		"restored has a paused process pass over what the server has stamped before its cursor",
		[]change{{"cursor/decide.go", `return a.name == "restored" || a.name`, `return a.name`}},
		processorPkg, "TestRestored_OfAPausedProcessLooksForWhatWasStampedSince/a_snapshot_is_put_back",
	},
	{
		"what was inserted between a restore and `restored` is taken for delivered",
		[]change{{"cursor/decide.go", "` + horizonHoldsSQL + ` THEN horizon ELSE", "false THEN horizon ELSE"}},
		processorPkg, "TestRestored_LooksForWhatWasStampedBeforeItWasSaid",
	},
	{
		"the transactions of another database say which rows of this one are new",
		[]change{{"cursor/decide.go", "` + horizonHoldsSQL + ` THEN horizon ELSE", "horizon IS NOT NULL THEN horizon ELSE"}},
		processorPkg, "TestRestored_OfAPausedProcessLooksForWhatWasStampedSince/a_copy_in_another_cluster",
	},
	{
		"the transactions of before a dump was loaded say which rows are new",
		[]change{{"cursor/decide.go", "AND horizon::text::bigint > (", "OR horizon::text::bigint > ("}},
		processorPkg, "TestRestored_OfTablesThatWereLoadedHaltsOverNothingOfThem",
	},
	{
		"a copy of the tables ends a look that was owed",
		[]change{{"cursor/decide.go", "AND NOT ` + horizonHoldsSQL + ` THEN 0", "AND NOT ` + horizonHoldsSQL + ` THEN ` + restoredTimeline + `"}},
		processorPkg, "TestRestored_OfTablesThatWereCopiedForgetsNoLookThatIsOwed",
	},
	{
		"maintenance of the tables is taken for a copy of them",
		[]change{{"cursor/decide.go", "FROM pg_attribute made,", "FROM pg_constraint made,"}, {"cursor/decide.go", "made.attrelid = cursor.tableoid AND made.attnum = -1", "made.conrelid = cursor.tableoid AND made.contype = 'p'"}},
		processorPkg, "TestRetry_AfterMaintenanceOfTheTablesPassesOverNothing",
	},
	{
		"the rows of a table that was rewritten are taken for new",
		[]change{{"sources/table/late.go", "if row.rewritten {", "if row.rewritten && row.id == \"\" {"}},
		processorPkg, "TestRestored_OfATableThatWasRewrittenProposesNoSeekBack",
	},
	{
		"what an operator passes over after a restore is taken for stamped by a clock that was behind",
		[]change{{"cursor/decide.go", `a.name == "seek" && c.Before.restored && c.After`, `a.name == "sought" && c.Before.restored && c.After`}},
		processorPkg, "TestSeek_AfterARestorePassesOverWhatThereIs",
	},
	{
		"a skip after a restore passes over what is stamped before its record",
		[]change{{"cursor/decide.go", `a.name == "seek" && c.Before.restored && c.After`, `c.Before.restored && c.After`}},
		processorPkg, "TestSkip_AfterARestorePassesOverOneRecord",
	},
	{
		"an idle process does not look after a restore",
		[]change{{"processor/process.go", `p.reign, p.server = epoch, ""`, `p.reign = epoch`}},
		processorPkg, "TestRestored_OfAnIdleProcessLooksAlthoughNothingFollows",
	},
	{
		"a retry after a halt over the clock goes on from where the cursor stands",
		[]change{{"cursor/decide.go", `return (behind || c.Before.unsettled)`, `return false && (behind || c.Before.unsettled)`}},
		processorPkg, "TestRetry_AfterAHaltOverTheClockOfTheServerThatDeliveredHaltsAgain",
	},
	{
		"any seek after a halt over the clock ends the look",
		[]change{{"cursor/decide.go", `!(a.name == "seek" && c.answers(behind))`, `!(a.name == "seek" && (c.answers(behind) || behind))`}},
		cursorPkg, "TestSeek_AfterAHaltOverTheClock",
	},
	{
		"a process that is paused resumes although its server's clock was behind",
		[]change{{"cursor/operate.go", `row.State == Halted || displaced(row) {`, `row.State == Halted {`}},
		cursorPkg, "TestHaltClock_OfAPausedProcessRefusesItsResume",
	},
	{
		"of two places of a clock that stepped back the last one counts",
		[]change{{"cursor/promote.go", `f.Position <= h.From)`, `h.From < "")`}},
		cursorPkg, "TestHaltClock_OfAHaltedProcess",
	},
	{
		"a page under way is delivered to its end although the clock stepped back",
		[]change{{"processor/shift.go", `s.run.Err() != nil || s.clock.noticed()`, `s.run.Err() != nil`}},
		processorPkg, "TestRun_AClockThatSteppedBackWhileNothingWasReadHaltsTheProcess",
	},
	{
		"a worker that has read nothing does not look at the clock",
		[]change{{"processor/clock.go", `resting || w.at == ""`, `resting && w.at == "x"`}},
		processorPkg, "TestRun_AWorkerThatHasReadNothingLooksAtTheClock",
	},
	{
		"a worker that ends forgets a step of the clock",
		[]change{{"processor/process.go", "p.leaveStep(ctx)\n", "\n"}},
		processorPkg, "TestRun_AStepOfTheClockOutlivesItsWorker",
	},
	{
		"an idle worker does not look after a retry",
		[]change{{"processor/process.go", `p.reign, p.server = epoch, ""`, `p.reign = epoch`}},
		processorPkg, "TestRetry_AfterAHaltOverTheClockLooksAlthoughNothingFollows",
	},
	{
		"a retry after a halt as restored notes another timeline without a look",
		[]change{{"cursor/decide.go", `f.Restored() && c.After.Failure == nil`, `f.Class == ClassClock && c.After.Failure == nil`}},
		processorPkg, "TestRetry_AfterAHaltAsRestoredLooksForWhatAnotherTimelineStamped",
	},
	{
		"restored has a process go on that halted over its clock",
		[]change{{"cursor/decide.go", `return (behind || c.Before.unsettled)`, `return a.name == "retry" && (behind || c.Before.unsettled)`}},
		processorPkg, "TestRetry_AfterAHaltOverTheClockOfTheServerThatDeliveredHaltsAgain",
	},
	{
		"a seek leaves a look for late rows open",
		[]change{{"cursor/operate.go", `displaced(row) || row.unsettled`, `displaced(row)`}},
		processorPkg, "TestSeek_AfterAHaltOverTheClockEndsALookThatCannotEnd",
	},
	{
		"a retry after a halt over the clock looks back for ten minutes",
		[]change{{"processor/server.go", `promoted.Horizon, promoted.Retried())`, `promoted.Horizon, false)`}},
		processorPkg, "TestRetry_AfterAHaltOverTheClockPassesOverNothing",
	},
	{
		"a cursor that is forgotten loses its histories",
		[]change{{"migrations/00003_promises.sql", `NEW.histories := coalesce(last.histories, NEW.histories);`, ``}},
		cursorPkg, "TestForget_KeepsTheHistories",
	},
	{
		"a promotion is noted with the take-over, whatever the source finds",
		[]change{{"cursor/acquire.go", `case row.promoted():`, `case row.promoted() && row.stored.system == "":`}},
		cursorPkg, "TestPromote_NoNumberAndNoHistoryIsThatOfBefore",
	},
	{
		"a seek begins no epoch",
		[]change{{"cursor/operate.go", `	r.Sequence += SeekGap
	r.Epoch++
`, `	r.Sequence += SeekGap
`}},
		cursorPkg, "TestSkipAndSeek_NoNumberEverStandsForTwoRecords",
	},
	{
		"the advance of every checkpoint looks its operators up in the search_path of the role",
		[]change{{"cursor/lease.go", `position OPERATOR(pg_catalog.<) $2`, `position < $2`}},
		cursorPkg, "TestPath_NoStatementCallsAnOperatorOrFunctionOfAStranger",
	},
	{
		"what a lease writes beside its advance runs under the search_path of the role",
		[]change{{"cursor/failure.go", `next, pin, l.failed(`, `next, l.failed(`}},
		cursorPkg, "TestPath_NoStatementCallsAnOperatorOrFunctionOfAStranger",
	},
	{
		"a call waits for a connection for as long as its caller does",
		[]change{{"cursor/config.go", `return max(c.Timeout, shortestAnswer)`, `return max(c.Timeout, 1000*shortestAnswer)`}},
		cursorPkg, "TestAnswer_NoCallWaitsForEver/look",
	},
	{
		"a standby that refuses to begin a transaction is not known for one",
		[]change{{"cursor/flush.go", `pgErr.Code == "0A000" &&`, `pgErr.Code == readOnly &&`}},
		cursorPkg, "TestStandby_IsNamedAndEveryConnectionIsMadeAnew",
	},
	{
		"a clock that is set back prolongs a back-off",
		[]change{{"cursor/row.go", `extract(epoch FROM least(`, `extract(epoch FROM greatest(`}},
		cursorPkg, "TestFailure_AClockThatIsSetBackDoesNotProlongTheWait",
	},
	{
		"a wait for the lease is isolated as the role's transactions are",
		[]change{{"cursor/flush.go", `"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"`, `"BEGIN"`}},
		cursorPkg, "TestAwait_WhereTheRoleIsolatesItsTransactions",
	},
	{
		"a statement is prepared with a ROLLBACK where no transaction was begun",
		[]change{{"internal/prepared/prepared.go", `if conn.PgConn().TxStatus() == 'I' {`, `if conn.IsClosed() {`}},
		cursorPkg, "TestReady_LeavesNoWarningInTheServersLog",
	},
	{
		"a dead letter is sent as it was before the lease was taken",
		[]change{{"processor/deadletter.go", `letter, err = lease.Letter(ctx, id, d); err != nil {`, `err != nil {`}},
		processorPkg, "TestReplay_ByTwoOperatorsAtOnceDeliversEachLetterOnce",
	},
	{
		"a dead letter is not locked while it is replayed",
		[]change{{"cursor/resolve.go", `= oneDeadLetterSQL + ` + "`\nFOR UPDATE`", `= oneDeadLetterSQL`}},
		processorPkg, "TestReplay_OfALetterThatIsDiscardedMeanwhileSendsNothing",
	},
	{
		"a cursor that is made anew uses the epochs of the one before",
		[]change{{"migrations/00003_promises.sql", `greatest(NEW.epoch, last.epoch + 1)`, `greatest(NEW.epoch, 0)`}},
		cursorPkg, "TestRecreate_GoesOnPastTheNumbersOfTheCursorThatIsGone/deleted",
	},
	{
		"retention removes what keeps a deleted cursor from being made anew",
		[]change{{"migrations/00003_promises.sql", `e.id > OLD.id`, `e.id >= OLD.id`}},
		cursorPkg, "TestHistory_RetentionKeepsWhatBecameOfAName",
	},
	{
		"a session that never finishes its command holds the lease for ever",
		[]change{{"cursor/torn.go", `holder.Worker() && holder.Unfinished > after`, `holder.Worker() && holder.Unfinished > 1000*after`}},
		cursorPkg, "TestAcquire_EndsASessionThatNeverFinishesItsCommand",
	},
	{
		"a session is ended in the middle of a call",
		[]change{{"cursor/torn.go", `holder.Worker() && holder.Unfinished > after`, `holder.Worker() && holder.Age > after`},
			{"cursor/torn.go", ` AND state = 'active' AND wait_event_type = 'Client'`, ``}},
		cursorPkg, "TestAcquire_EndsNoSessionInACall",
	},
	{
		"a skip expects a position of the cursor, whichever record fails",
		[]change{{"cursor/operate.go", `if a.ofRecord && row.Failure != nil && !displaced(row) {`, `if a.ofRecord && row.Failure == nil {`}},
		cursorPkg, "TestSkip_IsRefusedWhenAnotherRecordFailsByThen",
	},
	{
		"a dead letter keeps a time of about when its record was made",
		[]change{{"cursor/deadletter.go", `timestamptz 'epoch' + ($8::bigint / 3600000000) * interval '1 hour' + ($8 % 3600000000) * interval '1 microsecond'`, `to_timestamp($8::numeric / 1000000)`}},
		cursorPkg, "TestPutAside_KeepsTheTimeOfTheRecordToTheMicrosecond",
	},
	{
		"a rename says the numbers that it asked for, not those of the row",
		[]change{{"cursor/rename.go", `renamed.Epoch, renamed.Sequence = Epoch(p.int(0)), p.int(1)`, `_, _ = p.int(0), p.int(1)`}},
		cursorPkg, "TestRename_ToANameThatWasUsedSaysWhatTheRowHas",
	},
	{
		"a row that is counted as changed is taken for changed as asked",
		[]change{{"cursor/onerow.go", "`CASE WHEN ` + condition + `", "`CASE WHEN true OR ` + condition + `"}},
		cursorPkg, "TestLease_AChangeThatTheRowDoesNotTakeIsAnError",
	},
	{
		"an advance is believed where a trigger changed its number",
		[]change{{"cursor/lease.go", "AND sequence OPERATOR(pg_catalog.=) $5`", "AND sequence OPERATOR(pg_catalog.<=) $5`"}},
		cursorPkg, "TestAdvance_WithOtherNumbersThanItsOwnCommitsNoEffects",
	},
	{
		"a new epoch sends before the row has shown that it takes an advance",
		[]change{{"cursor/acquire.go", "slices.Concat(before, rehearsal, []statement{commit,", "slices.Concat(before, []statement{commit,"}},
		processorPkg, "TestAdvance_ThatIsKeptFromTheRowOfTwoWorkersSendsNothing",
	},
	{
		"an advance that a trigger undid is taken for that of another session",
		[]change{{"cursor/lease.go", "if err == nil && row.Epoch == l.row.Epoch && row.Position < l.row.Position {", "if false {"}},
		cursorPkg, "TestAdvance_ThatATriggerUndoesIsAnError",
	},
	{
		"effects beside an advance that a trigger undid are made again",
		[]change{{"processor/deliver.go", "if errors.Is(err, cursor.ErrUndone) {", "if false {"}},
		processorPkg, "TestAdvance_ThatIsUndoneSendsNothingAgain",
	},
	{
		"a worker that was restarted under its name rehearses nothing",
		[]change{{"cursor/acquire.go", "if _, ok := s.takers.Load(process); !ok {", "if false {"}},
		cursorPkg, "TestAcquire_NoLeaseOfARowThatTakesNoAdvance",
	},
	{
		"a rehearsed advance is not read back",
		[]change{{"cursor/acquire.go", `		{sql: s.sql(takenSQL), args: []string{row.Process, epoch, to, sequence}},
`, ""}},
		cursorPkg, "TestAcquire_NoLeaseOfARowThatTakesNoAdvance",
	},
	{
		"a rename leaves dead letters behind",
		[]change{{"cursor/rename.go", "SELECT CASE WHEN count(*) = 0 THEN", "SELECT CASE WHEN true THEN"}},
		cursorPkg, "TestDeadLetter_ThatDoesNotTakeItsResolutionIsNotResolved",
	},
	{
		"the audit can be truncated",
		[]change{{"migrations/00003_promises.sql", "CREATE TRIGGER keep_all BEFORE TRUNCATE ON cursor_event FOR EACH STATEMENT EXECUTE FUNCTION cursor_event_keep();", ""}},
		cursorPkg, "TestHistory_RetentionKeepsWhatBecameOfAName",
	},
	{
		"what a deferred constraint says does not go through the sink",
		[]change{{"processor/dispatch.go", "sink.(constraintSink); ok {", "sink.(constraintSink); ok && s == nil {"}},
		daemonPkg, "TestDrain_ADeferredConstraintIsAWordOnTheRecordWithoutItsData",
	},
}
