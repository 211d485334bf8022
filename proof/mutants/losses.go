package main

// lossMutants let a receiver lose what it had acknowledged without a word.
var lossMutants = []mutant{
	{
		"a topic of Kafka that was made anew is the record's fault",
		[]change{{"sinks/kafka/sink.go", `	if isLoss(o.err) { // it`, `	if false { // it`}},
		kafkaPkg, "TestDeliverBatch_ATopicThatIsMadeAnewIsSaid",
	},
	{
		"a topic of Kafka that was made anew is said to be missing",
		[]change{{"sinks/kafka/errors.go", `the topic was deleted, and made anew if it is there: what was acknowledged and not read there is gone; `, `make the topic; `}},
		kafkaPkg, "TestDeliverBatch_ATopicThatIsMadeAnewIsSaid",
	},
	{
		"a new link to Kafka takes up a topic that was made anew",
		[]change{{"sinks/kafka/sink.go", `len(topics) > 0 {`, `len(topics) > 0 && false {`}},
		kafkaPkg, "TestDeliverBatch_ATopicThatIsMadeAnewIsSaid",
	},
	{
		"an offset of Kafka that comes again is taken for a new one",
		[]change{{"sinks/kafka/stood.go", `known && p.offset <= last`, `known && p.offset < 0`}},
		kafkaPkg, "TestDeliverBatch_ATopicThatIsMadeAnewIsSaidByItsOffsets",
	},
	{
		"a loss in Kafka is said once, and then forgotten",
		[]change{{"sinks/kafka/stood.go", `	if epoch > s.epoch {`, `	if true {`}},
		kafkaPkg, "TestDeliverBatch_ATopicThatIsMadeAnewIsSaidByItsOffsets",
	},
	{
		"a loss in Kafka is found again after it was decided on",
		[]change{{"sinks/kafka/stood.go", `	delete(s.topics, topic)
`, ``}},
		kafkaPkg, "TestDeliverBatch_ATopicThatIsGoneIsSaidOnce",
	},
	{
		"topics of Kafka that are made anew at once are a halt each",
		[]change{{"sinks/kafka/sink.go", `	if len(s.link.asked) == 0 {`, `	if false {`}},
		kafkaPkg, "TestDeliverBatch_TopicsThatAreMadeAnewAtOnceAreOneHalt",
	},
	{
		"a new link to Kafka does not look whether what was acknowledged is there",
		[]change{{"sinks/kafka/sink.go", `return s.look(ctx, epoch)`, `return nil`}},
		kafkaPkg, "TestDeliverBatch_ALossIsSaidAfterTheCoordinatorFencedItsProducer",
	},
	{
		"another record at the offset that Kafka acknowledged is taken for ours",
		[]change{{"sinks/kafka/seen.go", `if by != m.producer || attributes&controlRecords != 0 || !sent {`, `if by != m.producer && attributes&controlRecords != 0 && sent {`}},
		kafkaPkg, "TestDeliverBatch_ALossIsSaidAlsoWhereOthersHaveWrittenPastIt",
	},
	{
		"a loss in Kafka is looked for in the first record of a window alone",
		[]change{{"sinks/kafka/sink.go", `|| s.stood.refused(p, s.link, epoch)`, `|| i == 0 && s.stood.refused(p, s.link, epoch)`}},
		kafkaPkg, "TestDeliverBatch_ALossIsSaidOfThePartitionThatHasIt",
	},
	{
		"one answer of a leader of Kafka proves a loss",
		[]change{{"sinks/kafka/seen.go", "!absent && !wait || !pause(ctx, lookAgain)", "absent || !wait || !pause(ctx, lookAgain)"}},
		kafkaPkg, "TestDeliverBatch_WhereNothingCanBeSaidItGoesOn",
	},
	{
		"a batch that the cleaner of Kafka has marked is taken for another",
		[]change{{"sinks/kafka/seen.go", "attributes&deleteHorizon != 0 || m.sent", "false || m.sent"}},
		kafkaPkg, "TestMark_IsInABatchThatTheCleanerHasMarked",
	},
	{
		"what Kafka acknowledged before a window is not looked at where the client went on over another connection",
		[]change{{"sinks/kafka/moved.go", `if s.stood.undecided(epoch) != nil || s.gone(ctx, p.places, epoch) {`, `if s.stood.undecided(epoch) != nil {`}},
		kafkaPkg, "TestDeliverBatch_ALossIsSaidWhereTheClientGoesOnOverAnotherConnection",
	},
	{
		"a commit of Kafka that was asked for again is not looked at",
		[]change{{"sinks/kafka/requests.go", `w.ends > 1 || w.again()`, `w.again()`}},
		kafkaPkg, "TestWritten_AWindowHasMovedOverAnotherConnectionOrWhereItIsAskedForAgain",
	},
	{
		"another connection to Kafka is one like the one that was closed as idle",
		[]change{{"sinks/kafka/requests.go", `known && last != c`, `known && last == nil`}},
		kafkaPkg, "TestDeliverBatch_ALossIsSaidWhereTheClientHadClosedAnIdleConnection",
	},
	{
		"what an earlier link to Kafka has sent to a partition is not looked at over a later connection",
		[]change{{"sinks/kafka/dial.go", `return &watched{conn, w, w.ended.Load()}, nil`, `return &watched{conn, w, false}, nil`}},
		kafkaPkg, "TestDeliverBatch_ALossIsSaidWhereTheClientHadClosedAnIdleConnection",
	},
	{
		"a window to Kafka looks also while its connection stays",
		[]change{{"sinks/kafka/requests.go", `known && last != c`, `known && last != nil`}},
		kafkaPkg, "TestDeliverBatch_AWindowLooksOnlyAfterALostConnection",
	},
	{
		"a record that Kafka took for a stranger's counts",
		[]change{{"sinks/kafka/moved.go", `	if absent == nil {`, `	if absent == nil || !s.link.transactional {`}},
		kafkaPkg, "TestDeliverBatch_ARecordThatIsTakenForAStrangersDoesNotCount",
	},
	{
		"what a topic acknowledged is forgotten after some decisions",
		[]change{{"sinks/kafka/sink.go", `	if lost := s.stood.undecided(epoch); lost != nil {`, `	if epoch > 6 {
		s.stood.topics = nil
	}
	if lost := s.stood.undecided(epoch); lost != nil {`}},
		kafkaPkg, "TestDeliverBatch_ManyDecisionsForgetNoTopic",
	},
	{
		"a part of a window that Kafka's client begins early is written before it has the rest",
		[]change{{"sinks/kafka/requests.go", `	for produce != nil && w.held && !w.over {`, `	for false && !w.over {`}},
		kafkaPkg, "TestWritten_NothingIsWrittenBeforeTheClientHasTheWindow",
	},
	{
		"what is left of a window of Kafka is never written",
		[]change{{"sinks/kafka/window.go", `	l.written.release()
`, ``}},
		kafkaPkg, "TestDeliverBatch_AWindowInTwoPartsIsSentAgain",
	},
	{
		"a request to Kafka without records for a partition is written",
		[]change{{"sinks/kafka/requests.go", `	case !whole(produce):`, `	case false && !whole(produce):`}},
		kafkaPkg, "TestWritten_APartitionWithoutRecordsIsNotWritten",
	},
	{
		"a batch that Kafka may have is sent under a new number",
		[]change{{"sinks/kafka/requests.go", `case renumbered && (w.lost.Load() > 0 || w.again()):`, `case false:`}},
		kafkaPkg, "TestDeliverBatch_ABatchWithoutAnAnswerIsNotNumberedAnew",
	},
	{
		"an answer of Kafka that is unclear does not count where its client takes a new number",
		[]change{{"sinks/kafka/requests.go", `(w.lost.Load() > 0 || w.again())`, `w.lost.Load() > 0`}},
		kafkaPkg, "TestWritten_ANewEpochAfterAMissingAnswerEndsTheWindow",
	},
	{
		"records go to Kafka in a request that cannot be read",
		[]change{{"sinks/kafka/requests.go", `	case !read:
		w.cancel(errUnread)
		return nil, false
`, `	case !read:
		return func() {}, true
`}},
		kafkaPkg, "TestWritten_ARequestWithRecordsThatCannotBeReadIsNotWritten",
	},
	{
		"the rest of a transaction of Kafka is sent under a new epoch",
		[]change{{"sinks/kafka/requests.go", `case renumbered && produce.TransactionID != nil:`, `case false:`}},
		kafkaPkg, "TestDeliverBatch_AProducerThatIsForgottenInATransactionBeginsAnotherOne",
	},
	{
		"a producer of Kafka that was forgotten stalls its transaction",
		[]change{{"sinks/kafka/requests.go", `		w.cancel(errForgotten)
`, ``}},
		kafkaPkg, "TestDeliverBatch_AProducerThatIsForgottenInATransactionBeginsAnotherOne",
	},
	{
		"of a partition of Kafka several batches are on their way",
		[]change{{"sinks/kafka/sizes.go", `bytes > s.config.MaxBytes-batchOverhead`, `bytes > 1<<30`}},
		kafkaPkg, "TestDeliverBatch_BehindABatchNothingOfItsPartitionIsOnItsWay",
	},
	{
		"a broker of Kafka that has lost numbers it had acknowledged is asked again",
		[]change{{"sinks/kafka/stood.go", `kerr.UnknownTopicOrPartition, kerr.OutOfOrderSequenceNumber}`, `kerr.UnknownTopicOrPartition}`}},
		kafkaPkg, "TestDeliverBatch_TheBrokersCodeDecides/OUT_OF_ORDER_SEQUENCE_NUMBER",
	},
}
