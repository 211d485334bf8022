package main

// answerMutants take more from who answers than an honest one has to say.
var answerMutants = []mutant{
	{
		"a broker of Kafka decides how long the password is hashed",
		[]change{{"sinks/kafka/login.go", "n > maxIterations {", "n < 0 {"}},
		kafkaPkg, "TestDeliver_ABrokerThatAsksForTooManyIterationsIsRefused",
	},
	{
		"a call that ignores its context is waited for in silence",
		[]change{{"processor/shift.go", "	defer s.watchCall(ctx, ds)()\n", ""}},
		processorPkg, "TestCall_OneThatIgnoresItsTimeoutIsNamedInTheLog",
	},
	{
		"a call that ignores its context keeps the program from its end",
		[]change{{"command/internal/daemon/signals.go", "time.NewTimer(s.grace + s.margin)", "time.NewTimer(time.Hour)"}},
		daemonPkg, "TestSignals_WhatDoesNotEndAfterTheGraceIsEndedByForce",
	},
	{
		"a key is quoted line by line",
		[]change{{"internal/secret/secret.go", "all := lines(value)", `all := lines("")`}},
		execPkg, "TestDeliverBatch_NoLineOfAKeyIsLogged",
	},
	{
		"a broker of Kafka may answer more than an honest one does",
		[]change{{"sinks/kafka/link.go", "maxAnswer = 1 << 20", "maxAnswer = 16 << 20"}},
		kafkaPkg, "TestDeliver_ABrokerThatSaysTooMuchIsNotHeardOut",
	},
	{
		"who may replace the configuration is not looked at",
		[]change{{"command/internal/daemon/exposed_file.go", "all = append(all, foreign(path)...)", "_ = foreign"}},
		daemonPkg, "TestExposedFiles_NamesADirectoryWhereOthersCanReplaceAFile",
	},
}
