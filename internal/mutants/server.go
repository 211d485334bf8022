package main

// serverMutants weaken what holds where servers are shared with others.
var serverMutants = []mutant{
	{
		"a migration stands in the queue for a table as long as a receiver takes",
		[]change{{"migrations/session.go", `			return lockTimeout(ctx, conn, queueTime)`, `			return lockTimeout(ctx, conn, c.waits.lock)`}},
		migrationsPkg, "TestUp_BehindASlowCallKeepsNoOneFromTheCursors",
	},
	{
		"a worker starts on a server that has not the connections for it",
		[]change{{"internal/daemon/capacity.go", `		if l.allowed < need {`, `		if false {`},
			{"internal/daemon/capacity.go", `		if l.lacks(need) > 0 {
			return fmt`, `		if false {
			return fmt`}},
		daemonPkg, "TestRun_RefusesWhatTheServerCannotBear",
	},
	{
		"a worker starts on a server whose connections others use",
		[]change{{"internal/daemon/capacity.go", `		if l.lacks(need) > 0 {
			return fmt`, `		if false {
			return fmt`}},
		daemonPkg, "TestRun_RefusesWhatTheServerCannotBearBesideOthers",
	},
	{
		"a worker is ready before its sources were inspected",
		[]change{{"internal/daemon/inspected.go", `		if !done.Load() && !ended(process) &&`, `		if false && !done.Load() && !ended(process) &&`}},
		daemonPkg, "TestReadyz_WaitsForEachSourceToBeInspected",
	},
	{
		"status does not say what holds records back",
		[]change{{"internal/daemon/status_print.go", `w.State + command(w) + ","`, `w.State + ","`}},
		daemonPkg, "TestStatus_NamesALongDelete",
	},
}
