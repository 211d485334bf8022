package main

// serverMutants weaken what holds where servers are shared with others.
var serverMutants = []mutant{
	{
		"a migration stands in the queue for a table as long as a receiver takes",
		[]change{{"migrations/session.go", `			return lockTimeout(ctx, conn, queueTime)`, `			return lockTimeout(ctx, conn, c.waits.lock)`}},
		migrationsPkg, "TestUp_BehindASlowCallKeepsNoOneFromTheCursors",
	},
}
