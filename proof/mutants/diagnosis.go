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
		[]change{{"command/internal/daemon/holders.go", `*s.Lag.Age > longCall`, `*s.Lag.Age > 0`}, {"command/internal/daemon/holders.go", `l.Unchanged > longCall`, `l.Unchanged > 0`}},
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
		[]change{{"command/internal/daemon/renew_login.go", `if now.ConnConfig.User != l.user {`, `if now.ConnConfig.User == l.user {`}},
		daemonPkg, "TestRenew_StatusSeesAWorkerWhoseLoginIsAnotherUserByNow",
	},
	{
		"after a promotion status does not look whether workers may be at the old primary",
		[]change{{"command/internal/daemon/promoted.go", `return s.absent || s.deserted`, `return s.deserted`}},
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
		[]change{{"cursor/locker.go", `if l.Since.IsZero() {`, `if l.PID != 0 {`}},
		cursorPkg, "TestFix_EndsNoOtherTransactionOfTheSession",
	},
	{
		"a slow database is taken for the receiver",
		[]change{{"command/internal/daemon/status_hold.go", `return l.Running > min(l.Age/2, longCall)`, `return l.Running < 0`}},
		daemonPkg, "TestStatus_ADatabaseThatIsSlowIsNotTheReceiver",
	},
}
