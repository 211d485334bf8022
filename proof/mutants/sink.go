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
		"Pub/Sub's refusal of our configuration is an attempt of the record",
		[]change{{"sinks/pubsub/errors.go", `codes.Unauthenticated, codes.FailedPrecondition, codes.Unimplemented:`, `codes.Unauthenticated:`}},
		pubsubPkg, "TestDeliverBatch_NamesTheFixOfARefusalOfUs",
	},
	{
		"a quota of Pub/Sub is an attempt of the record",
		[]change{{"sinks/pubsub/errors.go", `processor.Unreached(later(fmt.Errorf("%w%s", err, nextStep(err)), err))`, `later(fmt.Errorf("%w%s", err, nextStep(err)), err)`}},
		pubsubPkg, "TestDeliverBatch_SortsErrorsByTheCodeOfGRPC",
	},
	{
		"Pub/Sub's refusal of us beside a key without an answer is an attempt of the record",
		[]change{{"sinks/pubsub/errors.go", `processor.IsUnreached(f) || f.denied`, `processor.IsUnreached(f)`}},
		pubsubPkg, "TestDeliverBatch_AKeyWithoutAnAnswerBesideAWordLeavesTheWindowOpen",
	},
	{
		"a limit on our rate is an attempt of the record",
		[]change{{"sinks/webhook/answer.go", `	if resp.StatusCode == http.StatusTooManyRequests {`, `	if false {`}},
		webhookPkg, "TestDeliver_StatusDecides",
	},
	{
		"an exchange's type that RabbitMQ does not know is declared without end",
		[]change{{"sinks/rabbitmq/link.go", `		if code(err) == amqp.CommandInvalid {`, `		if false {`}},
		rabbitmqPkg, "TestDeliverBatch_ABrokerThatRefusesUsIsNoVerdictOnARecord",
	},
	{
		"the advice for a headers exchange of RabbitMQ is about routing keys",
		[]change{{"sinks/rabbitmq/sink.go", `	if s.config.Type == amqp.ExchangeHeaders {`, `	if false {`}},
		rabbitmqPkg, "TestDeliverBatch_AHeadersExchangeNeedsBindingsOfText",
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
		"a replay does not name its worker",
		[]change{{"processor/deadletter.go", ` Worker: s.config.Store.Worker(),`, ``}},
		processorPkg, "TestDelivery_NamesTheWorkerThatHasTheLease",
	},
	{
		"an answer to half a request is lost with the connection",
		[]change{{"sinks/webhook/connection.go", `c.dialEarly()`, ``}},
		webhookPkg, "TestDeliver_AnAnswerBeforeTheEndOfTheRequestCounts",
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
		"records go to a standard output that is closed",
		[]change{{"sinks/stdout/spec.go", `if isClosed(c.Writer) {`, `if false && isClosed(c.Writer) {`}},
		commandPkg, "TestRun_AClosedStandardOutputIsRefused",
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
