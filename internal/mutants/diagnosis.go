package main

// diagnosisMutants have status and doctor blame the wrong one, or propose what does harm.
var diagnosisMutants = []mutant{
	{
		"a session whose COMMIT waits for a standby is to be ended",
		[]change{{"internal/daemon/status_hold.go", `	if w.Replicating {`, `	if w.Replicating && w.PID == 0 {`}},
		daemonPkg, "TestStatus_ACommitThatWaitsForAStandbyIsNotToBeEnded",
	},
	{
		"the advice about a COMMIT that waits for a standby begins with ending it",
		[]change{{"cursor/locker.go", `	case l.Replicating || l.HiddenFrom != "":
		return l.Fix()
	case l.Worker()`, `	case l.Worker()`}},
		daemonPkg, "TestStatus_AStrangersCommitThatWaitsForAStandbyIsNotToBeEnded",
	},
	{
		"a short transaction is taken for the one before it of its session where times are hidden",
		[]change{{"internal/daemon/status.go", ` && b.Transaction == w.Transaction`, ``}},
		daemonPkg, "TestStatus_LeavesOutTransactionsThatComeAndGoWhereTheirTimesAreHidden",
	},
	{
		"a writer is said before that there is no worker",
		[]change{{"internal/daemon/status_hold.go", `	case s.absent: // before`, `	case s.absent && len(s.Holding) == 0: // before`}},
		daemonPkg, "TestStatus_SaysThatThereIsNoWorkerBeforeItNamesAWriter",
	},
	{
		"a writer that began after what waits is to be ended",
		[]change{{"internal/daemon/status_hold.go", `	if beganAfter(w, s.Lag.begun) {`, `	if beganAfter(w, s.Lag.begun) && w.PID == 0 {`}},
		daemonPkg, "TestStatus_AWriterThatBeganAfterWhatWaitsIsNotToBeEnded",
	},
	{
		"a writer is the hold while a worker delivers",
		[]change{{"internal/daemon/status_hold.go", `len(s.Holding) > 0 && !s.moving`, `len(s.Holding) > 0`}},
		daemonPkg, "TestStatus_AWriterIsNoHoldWhileAWorkerDelivers",
	},
	{
		"a session that the role cannot see is taken for one that waits for no standby",
		[]change{{"sources/table/lag.go", `CASE WHEN a.pid IS NOT NULL AND`, `CASE WHEN a.pid IS NULL AND`}},
		daemonPkg, "TestStatus_ACommitThatTheRoleCannotSeeIsNotToBeEnded",
	},
	{
		"a locker that the role cannot see is taken for one that waits for no standby",
		[]change{{"cursor/locker.go", `CASE WHEN a.pid IS NOT NULL AND`, `CASE WHEN a.pid IS NULL AND`}},
		daemonPkg, "TestStatus_ALockersCommitThatTheRoleCannotSeeIsNotToBeEnded",
	},
	{
		"an operator's session that the role cannot see is left out",
		[]change{{"internal/daemon/status_hold.go", `		case l.HiddenFrom != "":
			hidden`, `		case l.HiddenFrom != "" && l.PID == 0:
			hidden`}},
		daemonPkg, "TestStatus_AnOperatorsCommitThatWaitsForAStandbyIsSaid",
	},
	{
		"the doctor does not say what a worker's COMMIT that waits for a standby means",
		[]change{{"internal/daemon/pinned.go", `visible.Line(l.String()), cursor.WhileReplicating)`, `visible.Line(l.String()), cursor.KeepReplicating)`}},
		daemonPkg, "TestStatus_ACommitThatWaitsForAStandbyIsNotToBeEnded",
	},
	{
		"a slow database is taken for the receiver",
		[]change{{"internal/daemon/status_hold.go", `return l.Running > min(l.Age/2, longCall)`, `return l.Running < 0`}},
		daemonPkg, "TestStatus_ADatabaseThatIsSlowIsNotTheReceiver",
	},
}
