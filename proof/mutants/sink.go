package main

// sinkMutants take away what protects receivers.
var sinkMutants = []mutant{
	{
		"a payload that is not UTF-8 is taken for JSON",
		[]change{{"sinks/internal/jsonline/line.go", "!utf8.Valid(payload): // before", "!json.Valid(payload) && !utf8.Valid(payload): // before"}},
		stdoutPkg, "TestDeliver_PayloadThatIsNotUTF8IsBase64",
	},
	{
		"a receiver's refusal of us is a verdict on the record",
		[]change{{"sinks/webhook/answer.go", `	case s.to.isRefusal(resp.StatusCode):`, `	case false:`}},
		commandPkg, "TestRefused_AReceiverThatRefusesUsPutsNoRecordAside",
	},
	{
		"a broker's refusal of us is tried again",
		[]change{{"sinks/kafka/sink.go", `	case s.refusesUs(err):`, `	case false:`}},
		kafkaPkg, "TestDeliverBatch_LogsIn",
	},
	{
		"a secret that comes back escaped is quoted",
		[]change{{"internal/secret/match.go", `	if layer == 0 || !isEscape(s.text[i]) {`, `	if true {`}},
		webhookPkg, "TestDeliver_NoFormOfASecretComesBack",
	},
	{
		"a secret that comes back in base64 is quoted",
		[]change{{"internal/secret/secret.go", `range base64Cores(value)`, `range base64Cores("")`}},
		webhookPkg, "TestDeliver_NoFormOfASecretComesBack",
	},
	{
		"redirects are followed",
		[]change{{"sinks/webhook/connection.go", `c.conn.RoundTrip(req.`, `(&http.Client{Transport: c.transport}).Do(req.`}},
		webhookPkg, "TestDeliver_FollowsNoRedirect",
	},
	{
		"a request whose connection dies is sent again",
		[]change{{"sinks/webhook/connection.go", `sent || !reused ||`, `!reused ||`}},
		webhookPkg, "TestDeliver_IsSentOnceOnADyingConnection",
	},
	{
		"the body of an answer is read to its end",
		[]change{{"sinks/webhook/answer.go", `io.ReadAll(io.LimitReader(resp.Body, maxBody))`, `io.ReadAll(resp.Body)`}},
		webhookPkg, "TestDeliver_ReadsNoMoreOfABodyThanItsBound",
	},
	{
		"data of a record goes into headers as it is",
		[]change{{"sinks/webhook/request.go", `set(name, escape(value))`, `set(name, value)`}},
		webhookPkg, "FuzzHeader",
	},
	{
		"metadata addresses that are not link-local are reached",
		[]change{{"sinks/webhook/dial.go", `slices.Contains(metadata, ip) || `, ``}},
		webhookPkg, "TestRefuse_NeverReachesMetadataServices",
	},
	{
		"a text that is not JSON breaks the line of a record",
		[]change{{"sinks/internal/jsonline/line.go", "		return appendText(line, payload)\n", "		return append(line, payload...)\n"}},
		stdoutPkg, "TestDeliver_PayloadThatIsNotJSONIsAString",
	},
	{
		"link-local addresses are reached",
		[]change{{"sinks/webhook/dial.go", `ip.IsLinkLocalUnicast() || `, ``}},
		webhookPkg, "TestDeliver_RefusesLinkLocalAddresses",
	},
	{
		"an address of IPv6 hides one of IPv4",
		[]change{{"sinks/webhook/dial.go", `	for _, ip := range embedded(ip) {`, `	for _, ip := range embedded(ip)[:0] {`}},
		webhookPkg, "TestRefuse_BlocksWhatIsNotPublicInAllItsForms",
	},
	{
		"a name leads to an address that block_private blocks",
		[]change{{"sinks/webhook/dial.go", `case blockPrivate && !isPublic(ip):`, `case false:`}},
		webhookPkg, "TestDeliver_BlockPrivateSeesTheAddressThatANameResolvesTo",
	},
	{
		"full stops of a record climb out of a path",
		[]change{{"sinks/webhook/target.go", `case c == '.' && begins:`, `case c == '.' && begins && len(value) == 0:`}},
		webhookPkg, "TestDeliver_NoRecordLeavesThePathOrReachesTheHost",
	},
	{
		"a record that the receiver may have is sent without asking",
		[]change{{"sinks/webhook/sink.go", `if d.Unknown && `, `if false && d.Unknown && `}},
		webhookPkg, "TestProbe_ARecordThatTheReceiverHasIsNotSentAgain",
	},
	{
		"a cursor has the origin of the one that was renamed",
		[]change{{"migrations/00003_promises.sql", `CASE WHEN TG_OP <> 'UPDATE' THEN c.origin END`, `c.origin`}},
		cursorPkg, "TestOrigin_IsOfOneCursorForAllItsLife",
	},
	{
		"the client of Pub/Sub tries again by itself",
		[]change{{"sinks/pubsub/link.go", `client.CallOptions = &vkit.TopicAdminCallOptions{}`, `_ = client.CallOptions`}},
		pubsubPkg, "TestDeliverBatch_AWindowOfOneKeyIsAChain",
	},
	{
		"a topic is published to that drops what it acknowledges",
		[]change{{"sinks/pubsub/link.go", `return errNoSubscription`, `return nil`}},
		pubsubPkg, "TestDeliverBatch_NamesTheFixOfATopic",
	},
	{
		"a topic is looked at once only",
		[]change{{"sinks/pubsub/sink.go", `s.client != nil && time.Since(s.looked) < s.every`, `s.client != nil`}},
		pubsubPkg, "TestDeliverBatch_LooksAtTheTopicAgain",
	},
	{
		"a topic that was missing is not looked at again",
		[]change{{"sinks/pubsub/sink.go", `			s.looked = time.Time{} // a topic`, `			_ = time.Time{} // a topic`}},
		pubsubPkg, "TestDeliverBatch_LooksAtATopicThatIsMadeAnewBeforeItPublishes",
	},
	{
		"an operator's decision has no topic looked at",
		[]change{{"sinks/pubsub/sink.go", `s.epoch, s.looked = ds[0].Epoch, time.Time{}`, `s.epoch = ds[0].Epoch`}},
		pubsubPkg, "TestDeliverBatch_LooksAtTheTopicWhenAnOperatorHasDecided",
	},
	{
		"what may be lost in a topic without subscription is forgotten",
		[]change{{"sinks/pubsub/sink.go", `		_ = s.close()
		if errors.Is`, `		_ = s.close()
		defer func() { s.since = "" }()
		if errors.Is`}},
		pubsubPkg, "TestDeliverBatch_NamesWhatWasAcknowledgedSinceTheLastLook",
	},
	{
		"a connection to Pub/Sub that owes an answer is used again",
		[]change{{"sinks/pubsub/sink.go", `			_ = s.close()
`, ``}},
		pubsubPkg, "TestDeliverBatch_UsesNoConnectionAgainThatOwesAnAnswer",
	},
	{
		"a message is published while an abandoned one may be on its way",
		[]change{{"sinks/watermill/sink.go", `turn: make(chan struct{}, 1)}`, `turn: make(chan struct{}, 2)}`}},
		watermillPkg, "TestDeliver_SendsNothingBehindAPublishThatHasNotReturned",
	},
	{
		"a message in a stream of NATS does not expect its worker's claim",
		[]change{{"sinks/nats/sink.go", `		setNumber(m.Header, jetstream.ExpectedLastSubjSeqHeader, l.claim.sequence)
		set(m.Header, jetstream.ExpectedLastSubjSeqSubjHeader, l.claim.fence)`, `		_ = l`}},
		natsPkg, "TestFence_ASupersededWorkerIsRefusedByTheServer",
	},
	{
		"a chain in a stream of NATS names no sequence",
		[]change{{"sinks/nats/sink.go", `		setNumber(m.Header, jetstream.ExpectedLastSeqHeader, before.sequence)
`, ``}},
		natsPkg, "TestFence_AWindowOnItsWayLandsNowhereBehindANewerClaim",
	},
	{
		"a chain in a stream of NATS names no id",
		[]change{{"sinks/nats/sink.go", `		set(m.Header, jetstream.ExpectedLastMsgIDHeader, before.id)
`, ``}},
		natsPkg, "TestWindow_OrderHoldsAmongOtherPublishers",
	},
	{
		"a claim does not expect the one that was read",
		[]change{{"sinks/nats/claim.go", `	setNumber(header, jetstream.ExpectedLastSubjSeqHeader, before)
`, ``}},
		natsPkg, "TestFence_OfTwoClaimsAtOnceTheServerTakesOne",
	},
	{
		"a claim follows one of a newer epoch",
		[]change{{"sinks/nats/claim.go", `	if cursor.Epoch(epoch) <= d.Epoch {`, `	if true {`}},
		natsPkg, "TestFence_AnOlderEpochThanTheStreamsIsExplained",
	},
	{
		"an epoch that another worker has claimed is claimed again",
		[]change{{"sinks/nats/claim.go", `case cursor.Epoch(epoch) == d.Epoch && isAnotherWorkers(`, `case false && isAnotherWorkers(`}},
		natsPkg, "TestFence_AnEpochThatAnotherWorkerHasClaimedIsRefused",
	},
	{
		"a claim that names no worker is another one's",
		[]change{{"sinks/nats/claim.go", `return worker != "" && d.Worker != "" && worker`, `return worker`}},
		natsPkg, "TestFence_AClaimThatNamesNoWorkerIsNoOthers",
	},
	{
		"a replay does not name its worker",
		[]change{{"processor/deadletter.go", ` Worker: s.config.Store.Worker(),`, ``}},
		processorPkg, "TestDelivery_NamesTheWorkerThatHasTheLease",
	},
	{
		"what landed in a stream of NATS is not looked for",
		[]change{{"sinks/nats/claim.go", `return l.readTail(ctx, c, d)`, `return nil`}},
		natsPkg, "TestTakeOver_WhatHasLandedIsNotSentAgain",
	},
	{
		"a message in a stream of NATS has the id of other processes' records",
		[]change{{"sinks/nats/message.go", `[]string{cmp.Or(d.Origin, d.Process), strconv`, `[]string{cmp.Or("", ""), strconv`}},
		natsPkg, "TestDuplicate_OfAnotherProcessOrDatabaseIsNone",
	},
	{
		"a duplicate in a stream of NATS counts, though nothing stands there",
		[]change{{"sinks/nats/sink.go", `return s.duplicate(ctx, p, d, ack.Sequence)`, `return nil`}},
		natsPkg, "TestDuplicate_OfAMessageThatIsGoneIsSent",
	},
	{
		"a stranger's message in a stream of NATS counts as the record",
		[]change{{"sinks/nats/stream.go", `== id && bytes.Equal(m.Data, payload)`, `== id || bytes.Equal(m.Data, payload)`}},
		natsPkg, "TestDuplicate_OfAStrangersMessageIsNone",
	},
	{
		"a row whose id came before is a duplicate in a stream of NATS",
		[]change{{"sinks/nats/message.go", `	digest.Write(d.Payload)
`, ``}},
		natsPkg, "TestDuplicate_OfAnotherRowIsNone",
	},
	{
		"an answer to half a request is lost with the connection",
		[]change{{"sinks/webhook/connection.go", `c.dialEarly()`, ``}},
		webhookPkg, "TestDeliver_AnAnswerBeforeTheEndOfTheRequestCounts",
	},
	{
		"a stream of NATS may move the subject of the fence",
		[]change{{"sinks/nats/stream.go", `case moves(c.SubjectTransform, fence):`, `case false:`}},
		natsPkg, "TestCheck_TellsWhatWeakensAPromise",
	},
	{
		"an account of NATS may move the subject of the fence",
		[]change{{"sinks/nats/claim.go", `err == nil && m.Subject == fence {`, `err == nil {`}},
		natsPkg, "TestConnect_AFenceThatTheAccountMovesIsRefused",
	},
	{
		"a 2xx to half a request counts",
		[]change{{"sinks/webhook/early.go", `end.Err == nil && !c.cut.Load()`, `true`}},
		webhookPkg, "TestDeliver_A2xxBeforeTheEndOfTheRequestIsUnknown",
	},
	{
		"a 2xx to a request that net/http could not write to its end counts",
		[]change{{"sinks/webhook/early.go", `end.Err == nil && !c.cut.Load()`, `!c.cut.Load()`}},
		webhookPkg, "TestDeliver_A2xxBeforeTheEndOfTheRequestIsUnknown",
	},
	{
		"a window that was on its way in a promotion is sent again",
		[]change{{"sinks/nats/message.go", `strconv.FormatInt(d.Sequence%cursor.HistoryGap, 10)`, `strconv.FormatInt(max(d.Sequence, cursor.HistoryGap*0), 10)`}},
		natsPkg, "TestTakeOver_AWindowThatWasOnItsWayInAPromotionIsFound",
	},
	{
		"a stream is forgotten while other workers have the lease",
		[]change{{"sinks/nats/sink.go", "	if missing {\n		return s.stood.missing(d.Epoch)", "	if d.Epoch > 6 {\n		s.stood.sequence = 0\n	}\n	if missing {\n		return s.stood.missing(d.Epoch)"}},
		natsPkg, "TestDeliverBatch_ALossIsSaidByEachWorkerThatRemembers",
	},
	{
		"a stream that was made anew is written to without a word",
		[]change{{"sinks/nats/stood.go", "!s.made.IsZero() && !made.Equal(s.made)", "false"}},
		natsPkg, "TestDeliverBatch_AStreamThatIsMadeAnewByHandIsSaid",
	},
	{
		"a stream that was set back is written to without a word",
		[]change{{"sinks/nats/stood.go", `if sequence <= s.sequence {`, `if sequence == 0 {`}},
		natsPkg, "TestDeliverBatch_AStreamThatIsSetBackIsSaid",
	},
	{
		"a stream that was set back, and to which others have published since, is written to without a word",
		[]change{{"sinks/nats/sink.go", `if s.stood.sequence != 0 {`, `if s.stood.differs(s.link.stream.CachedInfo().Created) {`}},
		natsPkg, "TestDeliverBatch_AStreamThatIsSetBackIsSaidAfterOthersHavePublished/strangers",
	},
	{
		"a stream that is restored under a connection is written to without a word",
		[]change{{"sinks/nats/sink.go", `sequence <= s.stood.sequence+1 {`, `sequence > 0 {`}},
		natsPkg, "TestDeliverBatch_AStreamThatIsRestoredUnderAConnectionIsSaid",
	},
	{
		"another record of a process in the place of the one that a stream lost is taken for it",
		[]change{{"sinks/nats/message.go", `{jetstream.MsgIDHeader, headerProcess, headerOrigin, headerSequence, headerEpoch}`, `{headerProcess, headerOrigin}`}},
		natsPkg, "TestDeliverBatch_AStreamThatIsSetBackIsSaidAfterOthersHavePublished/another_worker",
	},
	{
		"a message that a limit, a purge or a consumer has removed counts as lost",
		[]change{{"sinks/nats/stream.go", `return last.differs(info.Created) && (`, `return (`}},
		natsPkg, "TestConnect_AMessageThatIsGoneIsNoLoss",
	},
	{
		"a tail that does not come in time is asked for in the same way again",
		[]change{{"sinks/nats/claim.go", `max(n/4, 1)`, `max(n, 1)`}},
		natsPkg, "TestTakeOver_ATailOfLargeMessagesIsReadOverASlowLink",
	},
	{
		"what has landed is looked for in a thousand messages",
		[]change{{"sinks/nats/claim.go", `uint64(max(maxTail, 2*c.Window))`, `uint64(1000)`}},
		natsPkg, "TestTakeOver_FindsAWholeWindowBehindMessagesOfOthers",
	},
	{
		"a worker whose stream is deleted goes on with its claim",
		[]change{{"sinks/nats/errors.go", `s.link.claim = claim{} // the stream`, `// the stream`}},
		natsPkg, "TestDeclare_AStreamThatIsDeletedUnderAWorkerIsMadeAnewWhenAnOperatorHasDecided",
	},
	{
		"a stream that acknowledges nothing is fit",
		[]change{{"sinks/nats/stream.go", `case c.NoAck:`, `case false:`}},
		natsPkg, "TestConnect_ChecksTheStream/no_acknowledgements",
	},
	{
		"records go to a standard output that is closed",
		[]change{{"sinks/stdout/spec.go", `if isClosed(c.Writer) {`, `if false && isClosed(c.Writer) {`}},
		commandPkg, "TestRun_AClosedStandardOutputIsRefused",
	},
	{
		"the server's marker on the subject of a fence is taken for a stranger's message",
		[]change{{"sinks/nats/claim.go", `m.Header.Get(jetstream.MarkerReasonHeader) != ""`, `false`}},
		natsPkg, "TestFence_AClaimThatAgesOutIsMadeAnew",
	},
	{
		"claims of NATS fill the subject of the fence, and the process tries again for ever",
		[]change{{"sinks/nats/full.go", `return errFull(config, fence)
	}
	return said`, `return said
	}
	return said`}},
		natsPkg, "TestFence_AFullSubjectOfTheFenceIsSaid",
	},
	{
		"of a full stream of NATS it is said that the subject of the fence is full",
		[]change{{"sinks/nats/full.go", `&& has >= uint64(c.MaxMsgsPerSubject)`, ``}},
		natsPkg, "TestFence_AFullStreamIsNotAFullSubject",
	},
	{
		"nothing is said of a subject of NATS that is full",
		[]change{{"sinks/nats/full.go", `if err != nil || !isFull(config, has) {`, `if err != nil || !isFull(config, has) || has > 0 {`}},
		natsPkg, "TestDeliverBatch_WaitsWhileTheSubjectOfARecordIsFull",
	},
	{
		"doctor says nothing of claims that fill the subject of the fence",
		[]change{{"sinks/nats/full.go", `	case !c.AllowRollup:
		return true`, `	case !c.AllowRollup:
		return false`}},
		natsPkg, "TestCheck_TellsOfAFenceThatFillsUp",
	},
	{
		"a server of NATS before 2.14 is taken to let a claim replace another in a full subject",
		[]change{{"sinks/nats/full.go", `case atLeast(version, replaceMajor, replaceMinor):`, `case true:`}},
		natsPkg, "TestCheck_KnowsWhichServersLetAClaimReplaceAnother",
	},
	{
		"a fence in a stream of NATS is taken from another cursor",
		[]change{{"sinks/nats/claim.go", `	return origin != "" && d.Origin != "" && `, `	return false && `}},
		natsPkg, "TestFence_BelongsToOneCursor",
	},
	{
		"the messages of another cursor in a stream of NATS are taken for one's own",
		[]change{{"sinks/nats/claim.go", ` || isAnothers(m.Header.Get(headerOrigin), d) {`, ` {`}},
		natsPkg, "TestDuplicate_OfAnotherProcessOrDatabaseIsNone",
	},
	{
		"behind a dead letter nothing is looked for in a stream of NATS",
		[]change{{"sinks/nats/claim.go", `return m.Header.Get(headerReplay) == "", nil`, `return true, nil`}},
		natsPkg, "TestTakeOver_AReplayHidesNothingThatHasLanded",
	},
	{
		"what landed in a stream of NATS is read one message after the other",
		[]change{{"sinks/nats/claim.go", `mostAhead    = 512`, `mostAhead    = 1`}},
		natsPkg, "TestTakeOver_OverAWideLinkReadsABusyStream",
	},
	{
		"a stream of NATS that was deleted is made anew without a word",
		[]change{{"sinks/nats/sink.go", `	if !cursor.IsFirst(d.Sequence, d.Epoch) && !s.gone {`, `	if false {`}},
		natsPkg, "TestDeclare_AStreamThatIsGoneIsSaidBeforeItIsMadeAnew",
	},
	{
		"a declared stream of NATS has the sequences of one that was deleted",
		[]change{{"sinks/nats/stream.go", `		FirstSeq:    uint64(now.UnixMicro()),
`, `		FirstSeq:    uint64(min(now.UnixMicro(), 1)),
`}},
		natsPkg, "TestFence_HoldsForAWorkerOfAStreamThatWasDeleted",
	},
	{
		"a record is too large for what a server of NATS took when the connection was made",
		[]change{{"sinks/nats/sink.go", `errors.Is(err, errTooLarge) && !anew {`, `false && !anew {`}},
		natsPkg, "TestMaxPayload_IsAskedForAgainBeforeARecordIsTooLarge",
	},
	{
		"the client of NATS bounds the window",
		[]change{{"sinks/nats/link.go", `, jetstream.WithPublishAsyncMaxPending(s.config.Window)`, ``}},
		natsPkg, "TestWindow_IsAsLargeAsItIsSet",
	},
	{
		"a child's answer to an earlier attempt counts",
		[]change{{"sinks/exec/answer.go", ` || *a.Attempt != d.Attempt {`, ` {`}},
		execPkg, "TestDeliverBatch_AnAnswerThatIsNoneAcknowledgesNothing/other_attempt,_window_1",
	},
	{
		"a child that wrote a line too many is spoken to again",
		[]change{{"sinks/exec/sink.go", `if s.child != nil && len(s.child.answers) > 0 {`, `if false {`}},
		execPkg, "TestDeliverBatch_AChildThatTakesItsWordBackIsStartedAnew",
	},
	{
		"a return of RabbitMQ condemns the next attempt",
		[]change{{"sinks/rabbitmq/sink.go", `	s.link.window = s.link.window[1:]
	err := s.drain(ctx)
	if err == nil ||`, `	s.link.window = nil
	err := error(nil)
	if err == nil ||`}},
		rabbitmqPkg, "TestDeliverBatch_AReturnIsOfOneAttempt",
	},
	{
		"headers of a record give a NATS server orders",
		[]change{{"sinks/nats/message.go", ` || wire.NATS(name)`, ``}},
		natsPkg, "TestDeliverBatch_MessageCarriesTheRecord",
	},
	{
		"a value of a record is several tokens of a subject",
		[]change{{"sinks/internal/route/tokens.go", `return Token(fmt.Sprint(value)), nil`, `return fmt.Sprint(value), nil`}},
		natsPkg, "TestDeliverBatch_AValueOfARecordIsOneToken",
	},
	{
		"a record is published to the server's own subjects of NATS",
		[]change{{"sinks/nats/subject.go", `	if isInternal(subject) {`, `	if false {`}, {"sinks/nats/sink.go", `	if err := s.link.takesSubject(ctx, s.config, subject); err != nil {`, `	if false {`}},
		natsPkg, "TestDeliverBatch_NoRecordGivesTheServerAnOrder",
	},
	{
		"a record is published to a subject of another stream",
		[]change{{"sinks/nats/stream.go", `	return notTaken(info.Config, c.Stream, subject)
}`, `	_ = info
	return nil
}`}},
		natsPkg, "TestDeliverBatch_AnotherStreamIsNoPlaceForARecord",
	},
	{
		"headers of a record route its message elsewhere",
		[]change{{"sinks/rabbitmq/message.go", ` || wire.AMQP(name)`, ``}},
		rabbitmqPkg, "TestDeliverBatch_NoHeaderOfARecordReroutesItsMessage",
	},
	{
		"a record reaches a queue of RabbitMQ's own",
		[]change{{"sinks/rabbitmq/sink.go", `s.config.Exchange == "" && strings`, `false && strings`}},
		rabbitmqPkg, "TestDeliverBatch_NoRecordReachesAQueueOfTheBrokersOwn",
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
	{
		"a child's answer to another record counts",
		[]change{{"sinks/exec/answer.go", `if *a.DedupKey != spelled(d.DedupKey()) || *a.Attempt != d.Attempt {`, `if false {`}},
		execPkg, "TestDeliverBatch_AnAnswerThatIsNoneAcknowledgesNothing/swaps,_window_1",
	},
	{
		"a child that hangs outlives its call",
		[]change{{"sinks/exec/errors.go", `	k.grace(err)
	how := k.end()
	return outcome.Unknown`, `	k.grace(err)
	how := "not ended"
	return outcome.Unknown`}, {"sinks/exec/sink.go", `		k.end()
		s.child = nil
`, `		s.child = nil
`}},
		execPkg, "TestDeliverBatch_AChildThatHangsIsKilledWithItsGroup",
	},
	{
		"a record that a child died with is taken for undelivered",
		[]change{{"sinks/exec/errors.go", `return outcome.Unknown(`, `return outcome.Known(`}},
		execPkg, "TestDeliverBatch_AChildThatDiesTellsHowAndWhyButNotOfWhat",
	},
	{
		"a child has the daemon's environment",
		[]change{{"sinks/exec/child.go", `c.environment(a), ownGroup(a)`, `append(os.Environ(), c.environment(a)...), ownGroup(a)`}},
		execPkg, "TestNew_TheChildHasTheEnvironmentThatIsNamed",
	},
	{
		"a child of another user keeps the rights of root",
		[]change{{"sinks/exec/group_unix.go", `, Credential: a.credential()`, ``}},
		execPkg, "TestDeliverBatch_AChildOfAnotherUserHasNoRightOfRoots",
	},
}
