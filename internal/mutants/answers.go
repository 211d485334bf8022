package main

// answerMutants take more from who answers than an honest one has to say.
var answerMutants = []mutant{
	{
		"a broker of Kafka decides how long the password is hashed",
		[]change{{"sinks/kafka/login.go", "n > maxIterations {", "n < 0 {"}},
		kafkaPkg, "TestDeliver_ABrokerThatAsksForTooManyIterationsIsRefused",
	},
}
