package main

// kafkaMutants take away what protects the records of Kafka.
var kafkaMutants = []mutant{
	{
		"a broker's refusal of us is tried again",
		[]change{{"sinks/kafka/sink.go", `	case s.refusesUs(err):`, `	case false:`}},
		kafkaPkg, "TestDeliverBatch_LogsIn",
	},
	{
		"the end of a call hides that Kafka has no coordinator for its transaction",
		[]change{{"sinks/kafka/coordinator.go", `		return c.patience()`, `		return clientRetries`}},
		kafkaPkg, "TestDeliverBatch_ACoordinatorThatIsNotThereIsNamed",
	},
	{
		"a topic of Kafka that is missing uses up the attempts of a record",
		[]change{{"sinks/kafka/errors.go", `kerr.InvalidTimestamp, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID`, `kerr.InvalidTimestamp, kerr.UnknownTopicID`}},
		kafkaPkg, "TestDeliverBatch_ATopicThatDoesNotExistIsNoAttemptOfTheRecord",
	},
	{
		"a record reaches a topic of Kafka's own",
		[]change{{"sinks/kafka/message.go", `if strings.HasPrefix(topic, "__") || `, `if false && `}},
		kafkaPkg, "TestDeliverBatch_NoRecordReachesATopicOfKafkasOwn",
	},
	{
		"the client of Kafka sends before it has the whole window",
		[]change{{"sinks/kafka/requests.go", `	w.held, w.cancel = true, cancel`, `	w.cancel = cancel`}},
		kafkaPkg, "TestDeliverBatch_TheBrokerHearsOfNoRecordBeforeTheClientHasTheWindow",
	},
	{
		"one replica of Kafka is enough, and batches have no numbers",
		[]change{{"sinks/kafka/link.go", `kgo.RequiredAcks(kgo.AllISRAcks()),`, `kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(),`}},
		kafkaPkg, "TestDeliverBatch_EveryBatchIsNumberedAndWaitsForAllReplicas",
	},
	{
		"several records go to a topic of Kafka whose partitions the client does not know",
		[]change{{"sinks/kafka/link.go", `return l.transactional || l.topics[topic]`, `return true`}},
		kafkaPkg, "TestDeliverBatch_TheFirstRecordOfATopicGoesAloneOnEachLink",
	},
	{
		"the first record of a batch that Kafka refuses is blamed for it",
		[]change{{"sinks/kafka/sink.go", `	if isRefusal(o.err) && !isOpen(o.err) {`, `	if false {`}},
		kafkaPkg, "TestDeliverBatch_OfARefusedBatchTheRecordIsFound",
	},
	{
		"what a call has seen Kafka acknowledge is sent again within it",
		[]change{{"sinks/kafka/call.go", `		if !window[i].acknowledged {`, `		if !window[i].acknowledged || i > 0 && !window[i-1].acknowledged {`}},
		kafkaPkg, "TestDeliverBatch_WhateverIsTooLargeEachPartitionKeepsItsOrderWithoutACopy",
	},
	{
		"a size that Kafka refused is tried again",
		[]change{{"sinks/kafka/sink.go", `		c.limit = o.next`, `		if c.limit = o.next; o.err == nil {
			clear(s.sizes)
		}`}},
		kafkaPkg, "TestDeliverBatch_ASizeThatATopicRefusesIsNotTriedAgain",
	},
	{
		"batches for Kafka stay as small as the search for a record made them",
		[]change{{"sinks/kafka/sink.go", `			clear(s.sizes)
`, ``}},
		kafkaPkg, "TestDeliverBatch_TheSizesOfASearchAreForgotten",
	},
	{
		"a record that Kafka refused together with others is blamed for it",
		[]change{{"sinks/kafka/sizes.go", `	case refused > 1:`, `	case refused < 0:`}},
		kafkaPkg, "TestDeliverBatch_WhateverIsTooLargeEachPartitionKeepsItsOrderWithoutACopy",
	},
	{
		"records go to Kafka without time for their answer",
		[]change{{"sinks/kafka/link.go", `left < took && left < enough`, `left < 0`}},
		kafkaPkg, "TestDeliverBatch_ALinkThatTookMostOfTheTimeSendsInTheNextCall",
	},
	{
		"a link to Kafka that took most of the time is made anew for the next call",
		[]change{{"sinks/kafka/sink.go", `	return late(ctx, time.Since(s.link.opened))`, `	if err = late(ctx, time.Since(s.link.opened)); err != nil {
		s.drop()
	}
	return err`}},
		kafkaPkg, "TestDeliverBatch_ALinkThatTookMostOfTheTimeSendsInTheNextCall",
	},
	{
		"a slow connection to Kafka costs a call although there is time",
		[]change{{"sinks/kafka/link.go", `left < took && left < enough`, `left < took`}},
		kafkaPkg, "TestLate_TenSecondsAreEnoughForTheFirstRecords",
	},
	{
		"a time that ends before anything is sent to Kafka is blamed on the way alone",
		[]change{{"sinks/kafka/sink.go", `		return processor.Unreached(&unsent{&unconnected{err}})
`, `		return processor.Unreached(&unsent{err})
`}},
		kafkaPkg, "TestDeliverBatch_ATimeThatEndsBeforeAnythingIsSentSaysToRaiseIt",
	},
	{
		"Kafka's word on a setting is one on the record",
		[]change{{"sinks/kafka/errors.go", `	kerr.UnsupportedCompressionType,
`, ``}},
		kafkaPkg, "TestDeliverBatch_TheBrokersCodeDecides/UNSUPPORTED_COMPRESSION_TYPE",
	},
	{
		"a producer of Kafka that was fenced fences its successor",
		[]change{{"sinks/kafka/sink.go", `s.fence.raise(epoch)`, `_ = s.fence`}},
		kafkaPkg, "TestFence_NobodyAsksAgainUnderTheEpochThatWasFenced",
	},
	{
		"a message to Kafka without an answer is taken for unsent",
		[]change{{"sinks/kafka/sink.go", `	case !of.any:`, `	case true:`}},
		kafkaPkg, "TestDeliverBatch_TheBrokersCodeDecides/REQUEST_TIMED_OUT",
	},
	{
		"a commit in Kafka without an answer is taken for none",
		[]change{{"sinks/kafka/errors.go", `	return &open{err}
}`, `	return &uncommitted{err}
}`}},
		kafkaPkg, "TestDeliverBatch_ACommitWithoutAnAnswerIsOfUnknownOutcome",
	},
}
