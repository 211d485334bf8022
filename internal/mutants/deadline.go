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
		"a topic that a broker of Kafka does not know yet is not waited for",
		[]change{{"sinks/kafka/link.go", `		kgo.UnknownTopicRetries(int(min(topicPatience, c.Timeout/2) / metadataAge)),
`, `		kgo.UnknownTopicRetries(min(4, int(topicPatience))),
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
		[]change{{"internal/daemon/ask.go", `	return answer.OnConn(ctx, pool, answer.Wait{Connection: connWait, Answer: askTimeout}, f)`,
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
}
