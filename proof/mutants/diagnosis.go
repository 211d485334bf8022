package main

// diagnosisMutants have status and doctor blame the wrong one, or propose what does harm.
var diagnosisMutants = []mutant{
	{
		"a session whose COMMIT waits for a standby is to be ended",
		[]change{{"command/internal/daemon/held.go", `	case w.Replicating:`, `	case w.Replicating && w.PID == 0:`}},
		daemonPkg, "TestStatus_ACommitThatWaitsForAStandbyIsNotToBeEnded",
	},
	{
		"the advice about a COMMIT that waits for a standby begins with ending it",
		[]change{{"cursor/locker.go", `	case l.Replicating || l.HiddenFrom != "" || l.MayBeCommitted:
		return l.Fix()
	case l.Worker()`, `	case l.Worker()`}},
		daemonPkg, "TestStatus_AStrangersCommitThatWaitsForAStandbyIsNotToBeEnded",
	},
	{
		"a short transaction is taken for the one before it of its session where times are hidden",
		[]change{{"command/internal/daemon/status.go", ` && b.Transaction == w.Transaction`, ``}},
		daemonPkg, "TestStatus_LeavesOutTransactionsThatComeAndGoWhereTheirTimesAreHidden",
	},
	{
		"a writer is said before that there is no worker",
		[]change{{"command/internal/daemon/status_hold.go", `	case s.absent: // before`, `	case s.absent && len(s.Holding) == 0: // before`}},
		daemonPkg, "TestStatus_SaysThatThereIsNoWorkerBeforeItNamesAWriter",
	},
	{
		"a writer that began after what waits is to be ended",
		[]change{{"command/internal/daemon/held.go", `	case beganAfter(w, s.Lag.begun):`, `	case beganAfter(w, s.Lag.begun) && w.PID == 0:`}},
		daemonPkg, "TestStatus_AWriterThatBeganAfterWhatWaitsIsNotToBeEnded",
	},
	{
		"a writer is the hold while a worker delivers",
		[]change{{"command/internal/daemon/status_hold.go", `len(s.Holding) > 0 && !s.moving`, `len(s.Holding) > 0`}},
		daemonPkg, "TestStatus_AWriterIsNoHoldWhileAWorkerDelivers",
	},
	{
		"a session that the role cannot see is taken for one that waits for no standby",
		[]change{{"sources/table/lag.go", `CASE WHEN a.pid IS NOT NULL AND a.backend_type IS NULL AND`, `CASE WHEN a.pid IS NULL AND a.backend_type IS NULL AND`}},
		daemonPkg, "TestStatus_ACommitThatTheRoleCannotSeeIsNotToBeEnded",
	},
	{
		"a locker that the role cannot see is taken for one that waits for no standby",
		[]change{{"cursor/locker.go", `CASE WHEN a.pid IS NOT NULL AND a.backend_type IS NULL AND`, `CASE WHEN a.pid IS NULL AND a.backend_type IS NULL AND`}},
		daemonPkg, "TestStatus_ALockersCommitThatTheRoleCannotSeeIsNotToBeEnded",
	},
	{
		"an operator's session that the role cannot see is left out",
		[]change{{"command/internal/daemon/holders.go", `		case l.Operator():`, `		case l.Operator() && l.PID == 0:`}},
		daemonPkg, "TestStatus_AnOperatorsCommitThatWaitsForAStandbyIsSaid",
	},
	{
		"the doctor does not say what a worker's COMMIT that waits for a standby means",
		[]change{{"command/internal/daemon/pinned.go", `visible.Line(l.String()), cursor.WhileReplicating)`, `visible.Line(l.String()), cursor.KeepReplicating)`}},
		daemonPkg, "TestStatus_ACommitThatWaitsForAStandbyIsNotToBeEnded",
	},
	{
		"the doctor does not look whose lock a check waited for",
		[]change{{"command/internal/daemon/excluded.go", `	if err != nil || len(all) == 0 {
		return nil
	}
	return &all[0]`, `	if err == nil || len(all) == 0 {
		return nil
	}
	return &all[0]`}},
		daemonPkg, "TestDoctor_AMigrationWhoseCommitWaitsForAStandbyIsNotToBeEnded",
	},
	{
		"a migration that waits does not say that a session is a COMMIT which waits for a standby",
		[]change{{"migrations/queue.go", `WHEN a.wait_event OPERATOR(pg_catalog.=) 'SyncRep'`, `WHEN a.wait_event OPERATOR(pg_catalog.=) 'none'`}},
		"./migrations", "TestUp_SaysThatASessionWaitsForAStandby",
	},
	{
		"a worker that hangs is not said to a role that does not see since when",
		[]change{{"command/internal/daemon/holders.go", `(l.Operator() || l.Unchanged > longCall)`, `l.Operator()`}},
		daemonPkg, "TestStatus_AHangThatTheRoleCannotSeeIsSaid",
	},
	{
		"a call of a moment is said to be long to a role that does not see since when",
		[]change{{"command/internal/daemon/holders.go", `*s.Lag.Age > longCall`, `*s.Lag.Age > 0`}, {"command/internal/daemon/holders.go", `l.Unchanged > longCall`, `l.Unchanged > 0`},
			{"command/internal/daemon/holders.go", `s.veiled.Unchanged <= min(`, `s.veiled.Unchanged < min(0, `}},
		daemonPkg, "TestStatus_AHangThatTheRoleCannotSeeIsSaid",
	},
	{
		"what a worker waits for is not looked up for a role that does not see since when",
		[]change{{"command/internal/daemon/status_hold.go", `s.operator != nil || s.veiled != nil ||`, `s.operator != nil ||`}},
		daemonPkg, "TestStatus_AWorkerThatWaitsForALockIsSaidToARoleThatCannotSeeIt",
	},
	{
		"an operator's session of which the time is hidden is to be ended",
		[]change{{"command/internal/daemon/holders.go", `if l.TimesHiddenFrom == "" || l.HiddenFrom != "" {`, `if l.TimesHiddenFrom != "" || l.HiddenFrom != "" {`}},
		daemonPkg, "TestStatus_AnOperatorsSessionOfWhichTheTimeIsHiddenIsNotToBeEnded",
	},
	{
		"a session whose lock is in nobody's way is said to have locked rows",
		[]change{{"cursor/locker.go", `rowLocking = "RowShareLock,`, `rowLocking = "ShareUpdateExclusiveLock,RowShareLock,`}},
		daemonPkg, "TestStatus_NamesWhatHoldsDeliveryUp/an_innocent_session",
	},
	{
		"a session that may have locked the row is said to have locked it",
		[]change{{"cursor/locker.go", `(l.mode IN ('ExclusiveLock', 'AccessExclusiveLock'))::int`, `1`}},
		daemonPkg, "TestStatus_NamesWhatHoldsDeliveryUp/strangers_who_share_the_row",
	},
	{
		"a worker is known by the user of its start alone",
		[]change{{"command/internal/daemon/renew_login.go", `if user == l.user && user != l.noted {`, `if user == l.user && user == l.noted {`}},
		daemonPkg, "TestRenew_StatusSeesAWorkerWhoseLoginIsAnotherUserByNow",
	},
	{
		"a user that cannot log in is announced, and looked for without an end",
		[]change{{"command/internal/daemon/configured.go", `case user = <-c.config.renewal.newUsers():`, `case user = <-(chan string)(nil):`},
			{"command/internal/daemon/renew_login.go", `	l.files, l.user, l.password, l.warned = texts`, `	l.renewal.noteUser(now.ConnConfig.User)
	l.files, l.user, l.password, l.warned = texts`}},
		daemonPkg, "TestRenew_AUserThatCannotLogInIsGivenUp",
	},
	{
		"the log says to end who has a row for a moment",
		[]change{{"cursor/torn.go", ` || again.Transaction != holder.Transaction`, ``}},
		cursorPkg, "TestAcquire_ASessionThatHasTheRowForAMomentIsNoStranger",
	},
	{
		"status says to end who has a row for a moment",
		[]change{{"command/internal/daemon/holders.go", ` && n.Transaction == l.Transaction`, ``}},
		daemonPkg, "TestStatus_ASessionThatHasTheRowForAMomentIsNotToBeEnded",
	},
	{
		"who waits in line for a row is in the way, and not who has it",
		[]change{{"cursor/blocker.go", `w.locktype = 'tuple' AND NOT w.granted`, `w.locktype = 'none' AND NOT w.granted`}},
		cursorPkg, "TestBlockers_AreInTheWay",
	},
	{
		"a prepared transaction is in the way by any lock of a table",
		[]change{{"cursor/blocker.go", `		AND h.mode = ANY (w.conflicting)`, `		AND w.conflicting IS NOT NULL`}},
		cursorPkg, "TestBlockers_AreInTheWay",
	},
	{
		"a table that a statement does not read is said to be in its way",
		[]change{{"cursor/blocker.go", `s.nameExcluder(ctx, err, s.tablesOf(statements)...)`, `s.nameExcluder(ctx, err, append(s.tablesOf(statements), ownTables...)...)`}},
		cursorPkg, "TestRead_NamesTheSessionThatIsInItsWay",
	},
	{
		"who is first in line to lock a table is not looked for",
		[]change{{"cursor/blocker.go", `"{" + allLocking + "}", "true"`, `"{" + allLocking + "}", "false"`}},
		daemonPkg, "TestStatus_NamesWhoIsInLineToLockTheTable",
	},
	{
		"after a promotion status does not look whether workers may be at the old primary",
		[]change{{"command/internal/daemon/promoted.go", `WHERE c.timeline > 0 AND`, `WHERE c.timeline < 0 AND`}},
		daemonPkg, "TestStatus_AfterAPromotionSaysThatWorkersMayBeAtTheOldPrimary",
	},
	{
		"a producer is to be ended though no record waits",
		[]change{{"command/internal/daemon/held.go", `case s.moving || s.Lag.Records == 0:`, `case s.moving:`}},
		daemonPkg, "TestDoctor_EndsNoWriterForWhichNothingWaits",
	},
	{
		"a writer of which the time is hidden is to be ended",
		[]change{{"command/internal/daemon/held.go", `	case w.TimesHiddenFrom != "":`, `	case w.TimesHiddenFrom != "" && w.PID == 0:`}},
		daemonPkg, "TestDoctor_AWriterOfWhichTheTimeIsHiddenIsNotToBeEnded",
	},
	{
		"a prepared transaction that may be committed is to be rolled back",
		[]change{{"command/internal/daemon/held.go", `	case w.MayBeCommitted:`, `	case w.MayBeCommitted && w.PID != 0:`}},
		daemonPkg, "TestStatus_APreparedTransactionMayBeCommitted",
	},
	{
		"the SQL that ends a transaction ends the next one of its session",
		[]change{{"internal/ending/sql.go", `which = "pid IN (SELECT pid FROM pg_locks WHERE virtualtransaction = " + visible.Literal(t.Virtual) + ")"`, `which = "true" + visible.Literal("")[:0]`}},
		cursorPkg, "TestFix_EndsNoOtherTransactionOfTheSession",
	},
	{
		"the SQL that ends what holds the fence of now() ends what its session does next",
		[]change{{"internal/ending/sql.go", `"least(xact_start, query_start) = '" + t.Since.UTC().Format(asSQL) + "' AND state <> 'idle'"`, `"true"`}},
		daemonPkg, "TestDoctor_EndsNoOtherTransactionThanThatWhichHoldsTheFenceOfNow",
	},
	{
		"the SQL that ends a transaction ends its COMMIT that has come to wait for a standby",
		[]change{{"internal/ending/sql.go", `'syncrep', `, ``}},
		"./internal/ending", "TestSQL_EndsNoOtherTransactionAndNoCommitThatWaitsForAStandby",
	},
	{
		"the SQL that ends a transaction ends its COMMIT just before that waits for a standby",
		[]change{{"internal/ending/sql.go", `, 'walwrite', 'walsync'`, ``}},
		"./internal/ending", "TestSQL_EndsNoCommitThatIsWritten",
	},
	{
		"a migration proposes to end a worker that delivers",
		[]change{{"migrations/queue.go", "AND NOT pg_catalog.starts_with(a.application_name, 'ordered-dispatcher ')", "AND NOT pg_catalog.starts_with(a.application_name, 'none ')"}},
		"./migrations", "TestUp_EndsNoOtherTransactionOfASession",
	},
	{
		"a slow database is taken for the receiver",
		[]change{{"command/internal/daemon/status_hold.go", `return l.Running > min(l.Age/2, longCall)`, `return l.Running < 0`}},
		daemonPkg, "TestStatus_ADatabaseThatIsSlowIsNotTheReceiver",
	},
	{
		"a promotion is not said beside what holds a process up",
		[]change{{"command/internal/daemon/status_also.go", `case s.promoted != "":`, `case s.promoted != "" && s.New:`}},
		daemonPkg, "TestStatus_SaysOfEachProcessThatWorkersMayBeAtTheOldPrimary",
	},
	{
		"a promotion is not said where nothing holds the process up",
		[]change{{"command/internal/daemon/status_also.go", `s.Hold != nil && s.Hold.Kind == HoldNobody`, `s.Hold == nil || s.Hold.Kind == HoldNobody`}},
		daemonPkg, "TestStatus_SaysOfEachProcessThatWorkersMayBeAtTheOldPrimary",
	},
	{
		"a hang behind many calls is not said for as long as they may take",
		[]change{{"command/internal/daemon/holders.go", `, longBound)`, `, 1000*longBound)`}},
		daemonPkg, "TestStatus_AHangBehindManyCallsIsSaidAfterMinutes",
	},
	{
		"a skip of a halt over the database is held against a record",
		[]change{{"command/internal/daemon/operator.go", `row.Failure != nil && !row.Failure.OfServer() {`, `row.Failure != nil {`}},
		daemonPkg, "TestSkip_OfAHaltOverTheDatabaseSaysWhatItIs",
	},
	{
		"a halt over the database is said to be a record that fails",
		[]change{{"command/internal/daemon/status_print.go", `f != nil && !f.OfServer() && kind`, `f != nil && kind`}},
		daemonPkg, "TestSkip_OfAHaltOverTheDatabaseSaysWhatItIs/paused_as_clock",
	},
	{
		"the doctor takes a pooler's connections that are in use for a lock",
		[]change{{"command/internal/daemon/excluded.go", `		if !waitedForLock(err) {`, `		if waitedForLock(err) {`}},
		daemonPkg, "TestDoctor_ACheckThatFindsAPoolersConnectionsInUseSaysSo",
	},
	{
		"who has locked the cursor table is said not to be found",
		[]change{{"cursor/locker.go", `if errors.As(lookErr, &excluded) {`, `if errors.As(err, &excluded) {`}},
		cursorPkg, "TestDecision_NamesTheSessionThatHasLockedTheTable",
	},
	{
		"a prepared transaction is taken to have begun when it was prepared",
		[]change{{"command/internal/daemon/status.go", `return w.GID == "" && !begun.IsZero()`, `return !begun.IsZero()`}},
		daemonPkg, "TestStatus_APreparedTransactionMayHaveBegunBeforeWhatWaits",
	},
	{
		"the next attempt is said to come although no worker makes it",
		[]change{{"command/internal/daemon/status_hold.go", `case s.Failure != nil && s.absent:`, `case s.Failure != nil && s.absent && s.Failure.Wait == 0:`}},
		daemonPkg, "TestStatus_SaysThatNoWorkerRunsBeforeABackOff",
	},
	{
		"a session that has locked the row counts as a worker",
		[]change{{"command/internal/daemon/status.go", `!slices.ContainsFunc(all[i].lockers, all[i].leads)`, `len(all[i].lockers) == 0`}},
		daemonPkg, "TestStatus_SaysThatNoWorkerRunsBesideAStrangersLock",
	},
	{
		"the time since the last checkpoint is taken for one call of the receiver",
		[]change{{"command/internal/daemon/pinned.go", `return max(min(l.Call, l.Age), l.Age/time.Duration(max(b.calls, 1)))`, `return l.Age`}},
		daemonPkg, "TestStatus_SeveralCallsOfOneLeaseAreNoLongCall",
	},
	{
		"many calls with one checkpoint are a hang to a role that does not see since when",
		[]change{{"command/internal/daemon/holders.go", `longCall*time.Duration(max(s.bounds.calls, 1))`, `longCall`}},
		daemonPkg, "TestStatus_SeveralCallsOfOneLeaseAreNoLongCall",
	},
	{
		"what a worker says of its open call is not read",
		[]change{{"command/internal/daemon/pinned.go", `max(min(l.Call, l.Age), `, `max(0, `}},
		daemonPkg, "TestStatus_SeveralCallsOfOneLeaseAreNoLongCall",
	},
	{
		"status looks at one table after another",
		[]change{{"command/internal/daemon/status_also.go", `min(maxLooks, r.pool.Config().MaxConns)`, `min(1, r.pool.Config().MaxConns)`}},
		daemonPkg, "TestStatus_LooksAtManyTablesAtOnce",
	},
	{
		"status sleeps for a latency that records without a time do not have",
		[]change{{"command/internal/daemon/status.go", `		return stays + min(p.Poll, maxDueWait)
	case len(`, `		return stays + min(p.Poll, maxDueWait) + p.Source.Latency
	case len(`}},
		daemonPkg, "TestStatus_WaitsForNoLatencyWhereRecordsHaveNoTime",
	},
}
