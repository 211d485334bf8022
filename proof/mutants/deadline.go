package main

// deadlineMutants let a question to a database wait for ever.
var deadlineMutants = []mutant{
	{
		"what a source asks has no deadline",
		[]change{{"internal/answer/answer.go", `	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return Overdue(`, `	within, cancel := context.WithCancel(ctx)
	defer cancel()
	return Overdue(`}},
		tablePkg, "TestSource_NoQuestionToASilentDatabaseWaitsForEver",
	},
	{
		"a connection of the pool is waited for without a deadline",
		[]change{{"internal/answer/answer.go", `	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err`, `	within, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err`}},
		tablePkg, "TestSource_NoQuestionWaitsForAConnectionForEver",
	},
	{
		"a read that waits for a connection keeps the lease",
		[]change{{"processor/deadline.go", `	case <-timer.C:
	}`, `	case <-time.After(time.Hour):
	}`}},
		processorPkg, "TestDrain_ReadsThatWaitForAConnectionLetGoOfTheLease",
	},
	{
		"a limit on connections of RabbitMQ is a refusal of us",
		[]change{{"sinks/rabbitmq/errors.go", `		return !limited(err)`, `		return true`}},
		rabbitmqPkg, "TestDeliverBatch_ALimitOnConnectionsPassesByItself",
	},
	{
		"a limit on channels of RabbitMQ is a refusal of us",
		[]change{{"sinks/rabbitmq/errors.go", `|of \(\d+\))$`, `)$`}},
		rabbitmqPkg, "TestDeliverBatch_ALimitOnConnectionsPassesByItself",
	},
	{
		"a topic that a broker of Kafka does not know yet is not waited for",
		[]change{{"sinks/kafka/link.go", `		kgo.UnknownTopicRetries(tries),
`, `		kgo.UnknownTopicRetries(4),
`}},
		kafkaPkg, "TestDeliverBatch_ATopicThatABrokerDoesNotKnowYetIsWaitedFor",
	},
	{
		"an inspection reads the rules of all views",
		[]change{{"sources/table/view.go", `		OFFSET 0
`, ``}},
		tablePkg, "TestInspect_CostIsThatOfItsOwnTableWhateverElseIsThere",
	},
	{
		"what the daemon asks has no deadline",
		[]change{{"command/internal/daemon/ask.go", `	return answer.OnConn(ctx, pool, answer.Wait{Connection: connWait, Answer: askTimeout}, f)`,
			`	return answer.OnConn(ctx, pool, answer.Wait{Connection: time.Hour, Answer: time.Hour}, f)`}},
		daemonPkg, "TestRun_ANoteThatIsNotAnsweredKeepsNoProcessFromRunning",
	},
	{
		"what comes before a migration has no deadline",
		[]change{{"migrations/session.go", `answer.Within(ctx, step.within,`, `answer.Within(ctx, time.Hour,`}},
		migrationsPkg, "TestMigrate_NothingBeforeAMigrationWaitsForEver",
	},
	{
		"what a target is asked before deliveries has no deadline",
		[]change{{"sinks/sql/remote_check.go", `answer.Within(ctx, r.config.Timeout,`, `answer.Within(ctx, time.Hour,`},
			{"sinks/sql/remote_check.go", "	\"fmt\"\n", "	\"fmt\"\n	\"time\"\n"}},
		sqlPkg, "TestCheck_NoQuestionWaitsForEver",
	},
	{
		"a server that hangs is waited for as long as a slow statement",
		[]change{{"internal/answer/silence.go", `	defer Listen(heard, conn, cancel).Stop()
`, ``}},
		answerPkg, "TestOnConn_ASilentServerIsNotWaitedFor",
	},
	{
		"a slow statement is taken for a server that hangs",
		[]change{{"internal/answer/silence.go", `	return timedOut(err) && ctx.Err() == nil`, `	return ctx.Err() == nil`}},
		answerPkg, "TestOnConn_ASlowStatementIsWaitedFor",
	},
	{
		"a sink's transaction waits for a server that hangs",
		[]change{{"cursor/lease.go", `	defer answer.Listen(listening, l.conn.Conn(), func(err error) { _ = l.lose(err) }).Stop()
`, `	defer answer.Listen(listening, l.conn.Conn(), func(error) {}).Stop()
`}},
		cursorPkg, "TestWithTx_ASilentServerEndsTheLease",
	},
	{
		"idle connections to a server that hangs are asked one after the other",
		[]change{{"command/internal/daemon/dial.go", `			open().Reset()
`, `			_ = open
`}},
		daemonPkg, "TestPool_IdleConnectionsToASilentServerAreGivenUpTogether",
	},
	{
		"a connection to a server that hangs keeps its place in the pool",
		[]change{{"command/internal/daemon/dial.go", `	if latest := time.Now().Add(farewell); t.After(latest) {`, `	if latest := time.Now().Add(farewell); false {`}},
		daemonPkg, "TestPool_AClosedConnectionToASilentServerMakesRoom",
	},
	{
		"one of several hosts may use up the whole wait for a connection",
		[]change{{"command/internal/daemon/pool.go", `		c.ConnectTimeout = hostTimeout`, `		c.ConnectTimeout = 10 * hostTimeout`}},
		daemonPkg, "TestPool_ASilentHostLeavesTimeForTheNext",
	},
	{
		"one of a target's several hosts may use up the whole wait for a connection",
		[]change{{"sinks/sql/remote_config.go", `min(hostTimeout, c.Timeout/2)`, `max(hostTimeout, c.Timeout)`}},
		sqlPkg, "TestRemote_ASilentHostLeavesTimeForTheNext",
	},
	{
		"a worker is ready while no process can read",
		[]change{{"command/internal/daemon/monitor.go", `	if err := m.rounds.fault(m.looker.failed()); err != nil {`, `	if err := error(nil); err != nil {`}},
		daemonPkg, "TestReadyz_WaitsForAProcessThatCanRead",
	},
	{
		"a round that ended before the database was away makes a worker ready",
		[]change{{"command/internal/daemon/rounds.go", `	if time.Since(failedLook) > readyTime {`, `	if time.Since(failedLook) > 0 {`}},
		daemonPkg, "TestRounds_AfterALookThatFailedOneMustHaveRead",
	},
	{
		"a record that failed waits for a read that is not needed any more",
		[]change{{"processor/deadline.go", `	if !s.doneInTime(r) {
		r.cancel()
	}
`, ``}},
		processorPkg, "TestDrain_AReadThatIsNotAnsweredKeepsNoFailedRecordWaiting",
	},
}
