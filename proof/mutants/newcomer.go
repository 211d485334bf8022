package main

// newcomerMutants take away what keeps an operator from doing harm on a bad day.
var newcomerMutants = []mutant{
	{
		"status names the dispatcher's own sessions as writers",
		[]change{{"command/internal/daemon/status.go", `return w.Ours && !slices`, `return w.Ours && w.PID < 0 && !slices`}},
		daemonPkg, "TestStatus_NeverNamesAWorkerAsAWriter",
	},
	{
		"a record of the future waits without a word",
		[]change{{"processor/report.go", `	case ahead <= futureStamp:`, `	case ahead > 0:`}},
		processorPkg, "TestLog_NamesARecordOfTheFutureOnceItHasWaited",
	},
	{
		"the log is silent about a halted process",
		[]change{{"processor/process.go", `	p.stopped = false
`, ``}},
		processorPkg, "TestLog_SaysThatAProcessIsHalted",
	},
	{
		"a shift that halted its process says that it recovered",
		[]change{{"processor/verdict.go", `s.verdict, s.stopped = nil, true`, `s.verdict, s.stopped = nil, false`}},
		processorPkg, "TestDeadLetter_ThatCannotBeWrittenHaltsAndIsSentOnce",
	},
	{
		"grants asks the server about columns that are not there",
		[]change{{"sources/table/needs.go", `if len(e.misfits) > 0 {`, `if len(e.misfits) > 99 {`}},
		tablePkg, "TestNeeds_OfWhatCannotBeReadSayWhy",
	},
	{
		"two indexes are proposed where one serves",
		[]change{{"sources/table/index.go", `	if e.untied == 0 {`, `	if e.untied >= 0 {`}},
		tablePkg, "TestInspect_OneIndexIsProposedForOrderAndUniqueness",
	},
	{
		"an outage uses up the attempts of a record",
		[]change{{"processor/deliver.go", `	case !s.config.DeadLetter:
		return`, `	case true:
		return`}},
		processorPkg, "TestDeadLetter_AnOutageUsesUpNoAttempts",
	},
	{
		"a new worker counts the attempts of an outage",
		[]change{{"processor/retry.go", `		return f.Attempts
`, `		return 0
`}},
		processorPkg, "TestDeadLetter_ANewWorkerDoesNotCountAnOutage",
	},
	{
		"a missing queue is taken for a word on the record",
		[]change{{"sinks/rabbitmq/errors.go", `	if s.key.Fixed() {`, `	if s.key == nil {`}},
		commandPkg, "TestDrain_AnOutageOfRabbitMQPutsNoRecordAside",
	},
}
