package main

// outcomeMutants let a sink say more of what became of a record than it knows.
var outcomeMutants = []mutant{
	{
		"a record that was on its way to RabbitMQ when the connection was lost counts as not delivered",
		[]change{{"sinks/rabbitmq/errors.go", `	return outcome.Unknown(fmt.Errorf("publish to %s: the broker may have`, `	return outcome.Known(fmt.Errorf("publish to %s: the broker may have`}},
		rabbitmqPkg, "TestDeliverBatch_ALostConnectionIsUnknown",
	},
	{
		"a record that was on its way to NATS when the connection was lost counts as not delivered",
		[]change{{"sinks/nats/errors.go", `	return outcome.Unknown(fmt.Errorf("publish to %s: the server may have`, `	return outcome.Known(fmt.Errorf("publish to %s: the server may have`}},
		natsPkg, "TestDeliverBatch_ALostConnectionIsUnknown",
	},
}
