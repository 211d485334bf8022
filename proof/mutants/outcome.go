package main

// outcomeMutants let a sink say more of what became of a record than it knows.
var outcomeMutants = []mutant{
	{
		"a link that breaks at the login is a refused login",
		[]change{{"sinks/rabbitmq/errors.go", `case took < silentClose:`, `case took < 0:`}},
		rabbitmqPkg, "TestDeliverBatch_ALinkThatBreaksAtTheLoginIsNoRefusedLogin",
	},
	{
		"a record that was on its way to RabbitMQ when the connection was lost counts as not delivered",
		[]change{{"sinks/rabbitmq/errors.go", `	return outcome.Unknown(open)`, `	return outcome.Known(open)`}},
		rabbitmqPkg, "TestDeliverBatch_ALostConnectionIsUnknown",
	},
	{
		"a record that was on its way to NATS when the connection was lost counts as not delivered",
		[]change{{"sinks/nats/errors.go", `	return outcome.Unknown(fmt.Errorf("publish to %s: the server may have`, `	return outcome.Known(fmt.Errorf("publish to %s: the server may have`}},
		natsPkg, "TestDeliverBatch_ALostConnectionIsUnknown",
	},
	{
		"any replica of a NATS stream says what stands in it",
		[]change{{"sinks/nats/stream.go", `	askLeader(l.stream)
	return unfit(`, `	return unfit(`}},
		natsPkg, "TestTakeOver_ReadsFromTheLeaderAlone",
	},
	{
		"a no of Kafka to a commit that was asked for twice says that nothing is committed",
		[]change{{"sinks/kafka/errors.go", ` && asked == 1 && `, ` && `}},
		kafkaPkg, "TestDeliverBatch_ANoToACommitThatWasAskedForTwiceLeavesItOpen",
	},
	{
		"Kafka's word on the time of sending is one on the record",
		[]change{{"sinks/kafka/sink.go", `	case isOneOf(err, conditions), isPassing(err):
		return processor.Unreached(err)`, `	case isOneOf(err, conditions), isPassing(err):
		return processor.Permanent(err)`}},
		kafkaPkg, "TestDeliverBatch_TheBrokersCodeDecides",
	},
	{
		"a record that an unknown error of Kafka's is about counts as not delivered",
		[]change{{"sinks/kafka/errors.go", `	case !word, isOneOf(err, vague):`, `	case !word:`}},
		kafkaPkg, "TestDeliverBatch_TheBrokersCodeDecides",
	},
	{
		"Kafka's no to a record that was sent again is a word on the first time",
		[]change{{"sinks/kafka/errors.go", `	case of.lost:`, `	case false:`}},
		kafkaPkg, "TestDeliverBatch_ANoToARecordThatWasSentAgainLeavesItOpen",
	},
	{
		"Kafka's no to a record that a broker had no time for is a word on the first time",
		[]change{{"sinks/kafka/errors.go", `	case of.again:`, `	case false:`}},
		kafkaPkg, "TestDeliverBatch_ANoThatFollowsATimeoutOfTheBrokerLeavesItOpen",
	},
	{
		"records that Kafka may have are sent again by halves",
		[]change{{"sinks/kafka/sink.go", `isRefusal(o.err) && !isOpen(o.err) {`, `isRefusal(o.err) {`}},
		kafkaPkg, "TestDeliverBatch_ANoToARecordThatWasSentAgainLeavesItOpen",
	},
	{
		"what Kafka may have is refused or permanent by the word on the second time",
		[]change{{"sinks/kafka/sink.go", `	case isOpen(err): // a no`, `	case false: // a no`}},
		kafkaPkg, "TestDeliverBatch_ANoToARecordThatWasSentAgainLeavesItOpen",
	},
	{
		"a word of Kafka that may pass is lost in a time-out",
		[]change{{"sinks/kafka/link.go", `		kgo.RecordRetries(tries), // for`, `		// for`}},
		kafkaPkg, "TestDeliverBatch_AWordThatMayPassIsNoAttempt",
	},
	{
		"a word of Kafka that may pass is an attempt of the record",
		[]change{{"sinks/kafka/sink.go", `	case isOneOf(err, conditions), isPassing(err):`, `	case isOneOf(err, conditions):`}},
		kafkaPkg, "TestDeliverBatch_AWordThatMayPassIsNoAttempt",
	},
	{
		"a dead leader of Kafka's is an attempt of the record",
		[]change{{"sinks/kafka/link.go", `		kgo.RecordRetries(tries), // for`, `		// for`}},
		kafkaPkg, "TestDeliverBatch_ADeadLeaderIsNoAttempt",
	},
	{
		"a word of Kafka that may pass says that it has nothing",
		[]change{{"sinks/kafka/errors.go", `	case isPassing(err):
		return`, `	case false:
		return`}},
		kafkaPkg, "TestDeliverBatch_AWordThatMayPassAfterTheBrokerTookTheRecordLeavesItOpen",
	},
	{
		"a record that Kafka may have in an outage is blamed for it",
		[]change{{"sinks/kafka/sink.go", `	case isOpen(err) && (isPassing(err) || isNoWord(err) || isOldEpoch(err)):`, `	case false:`}},
		kafkaPkg, "TestDeliverBatch_AWordThatMayPassAfterALostAnswerIsNoAttempt",
	},
	{
		"Kafka's no is one on the first time if the records of another partition went with it",
		[]change{{"sinks/kafka/requests.go", `		again = again || n > 1
`, `		again = again || n > 1 && len(w.sent) == 1
`}},
		kafkaPkg, "TestDeliverBatch_ANoThatFollowsATimeoutIsOpenBesideOtherPartitions",
	},
	{
		"what is being written to Kafka was not sent",
		[]change{{"sinks/kafka/requests.go", `		w.sent[b]++
	}
	sent`, `		_ = b
	}
	sent`}, {"sinks/kafka/dial.go", `	if n == 0 {
		back()
	}
`, `	if n != 0 {
		back()
	}
`}, {"sinks/kafka/requests.go", `sent[b]--`, `sent[b]++`}},
		kafkaPkg, "TestDeliverBatch_WhatIsBeingWrittenMayBeThere",
	},
	{
		"a record that was judged is written to Kafka",
		[]change{{"sinks/kafka/requests.go", `	case w.over:`, `	case false:`}},
		kafkaPkg, "TestWritten_NothingIsWrittenBehindTheEndOfAWindow",
	},
	{
		"Kafka's no is one on the first time if a broker of another version says it",
		[]change{{"sinks/kafka/requests.go", `	return again || named && numbered`, `	return again || false && named && numbered`}},
		kafkaPkg, "TestDeliverBatch_ANoOfABrokerOfAnotherVersionLeavesItOpen",
	},
	{
		"a commit of Kafka that is not answered is an attempt of the record",
		[]change{{"sinks/kafka/sink.go", `		o.err = &noWord{o.err}
`, ``}},
		kafkaPkg, "TestDeliverBatch_ACommitThatIsNotAnsweredIsNoAttempt",
	},
	{
		"a no of Kafka counts although another part of the window was not answered",
		[]change{{"sinks/kafka/errors.go", `	case of.silent:`, `	case false:`}},
		kafkaPkg, "TestDeliverBatch_APartitionThatIsSilentBesideARefusalLeavesTheWindowOpen",
	},
	{
		"a no of Kafka counts although another part of the window may be there",
		[]change{{"sinks/kafka/window.go", `(!isWord(err) || isOneOf(err, vague))`, `!isWord(err)`}},
		kafkaPkg, "TestDeliverBatch_AVagueWordBesideARefusalLeavesTheWindowOpen",
	},
	{
		"what Kafka's client says when a call ends is its error",
		[]change{{"sinks/kafka/window.go", `cmp.Or(context.Cause(window), context.Cause(ctx))`, `cmp.Or(context.Cause(window))`}},
		kafkaPkg, "TestDeliverBatch_ACallThatHasEndedEndsAsSuchWhateverTheClientSays",
	},
	{
		"a window of Kafka that shows a loss is committed",
		[]change{{"sinks/kafka/window.go", `if older(p.places) {`, `if false && older(p.places) {`}},
		kafkaPkg, "TestDeliverBatch_ATopicThatIsMadeAnewIsSaidByItsOffsets",
	},
	{
		"a request is written to a connection that Kafka has left",
		[]change{{"sinks/kafka/dial.go", `	if hasLeft(c.Conn) {`, `	if false {`}},
		kafkaPkg, "TestDeliverBatch_ABrokerThatDiedWhileNothingWasSentIsNoAttempt",
	},
	{
		"an attempt that meets an alarm of RabbitMQ counts",
		[]change{{"sinks/rabbitmq/errors.go", ` || s.link.alarm.met()
`, ` || s.link == nil
`}},
		rabbitmqPkg, "TestDeliverBatch_AMessageUnderAnAlarmIsWaitedForAndNotSentAgain",
	},
	{
		"a login to RabbitMQ that takes longer than its time-out is taken for a broker that does not answer",
		[]change{{"sinks/rabbitmq/link.go", `		s.heard.Store(true)`, `		s.heard.Store(false)`}},
		rabbitmqPkg, "TestDeliverBatch_ATimeoutShorterThanTheLoginIsNamed",
	},
	{
		"the end of all connections of RabbitMQ is an attempt of the record",
		[]change{{"sinks/rabbitmq/errors.go", `return code(err) == amqp.ConnectionForced ||`, `return code(err) == -1 ||`}},
		rabbitmqPkg, "TestDeliverBatch_ABrokerThatEndsAllConnectionsIsNoAttempt",
	},
	{
		"a commit of Kafka that was never asked for may have happened",
		[]change{{"sinks/kafka/errors.go", `	if asked == 0 {`, `	if false {`}},
		kafkaPkg, "TestDeliverBatch_ACommitThatWasNeverAskedForIsKnown",
	},
	{
		"where answers are hidden, our own words beside a code of Kafka's are, too",
		[]change{{"sinks/kafka/guard.go", `		return &bare{code}`, `		return err`}},
		kafkaPkg, "TestDeliverBatch_HiddenAnswersHideNoNextStep",
	},
	{
		"what may have arrived in an outage is sent again at once with a secret that has changed",
		[]change{{"command/internal/daemon/renewed.go", `return !outcome.IsOutage(err) && (`, `return (`}},
		daemonPkg, "TestRenewed_WhatMayHaveArrivedInAnOutageIsAnotherAttempt",
	},
	{
		"a record that waits for replicas of Kafka is blamed for it",
		[]change{{"sinks/kafka/errors.go", `errors.Is(err, context.DeadlineExceeded) && !of.cut`, `false && !of.cut`}},
		kafkaPkg, "TestDeliverBatch_TooFewReplicasBehindAnAppendIsNoAttempt",
	},
	{
		"the client of Kafka asks once where the timeout is short",
		[]change{{"sinks/kafka/link.go", `max(2, int(`, `max(0, int(`}},
		kafkaPkg, "TestDeliverBatch_OneWordThatMayPassIsWaitedForWithAShortTimeout",
	},
	{
		"an outage in which the receiver may have the record does not halt where an unknown outcome does",
		[]change{{"processor/deliver.go", `	case s.config.HaltOnTimeout && s.config`, `	case false && s.config`}},
		processorPkg, "TestOutage_HaltsWhereAnUnknownOutcomeDoes",
	},
	{
		"an outage in which the receiver may have the record leaves no doubt",
		[]change{{"processor/doubt.go", ` && !outcome.IsOutage(failure)`, ` && (outcome.IsOutage(failure) || true)`}},
		processorPkg, "TestOutage_IsNoAttemptAndLeavesADoubt",
	},
	{
		"a broker of Kafka that is silent is waited for as long as the client likes",
		[]change{{"sinks/kafka/link.go", `	defer context.AfterFunc(ctx, end)() // the`, `	// the`}},
		kafkaPkg, "TestConnect_ASilentBrokerIsNotWaitedForLongerThanTimeout",
	},
	{
		"a worker of Kafka whose lease another one had keeps the producer that was fenced",
		[]change{{"sinks/kafka/sink.go", ` || s.link.superseded(epoch)`, ``}},
		kafkaPkg, "TestDeliverBatch_AReplayCostsTheWorkerNoAttempt",
	},
	{
		"a producer that was fenced is a failed attempt of the record",
		[]change{{"sinks/kafka/sink.go", `		return processor.Unreached(&known{err})`, `		return &known{err}`}},
		kafkaPkg, "TestDeliverBatch_TheBrokersCodeDecides",
	},
	{
		"an old epoch of Kafka's client is a fence where there is no transactional id",
		[]change{{"sinks/kafka/errors.go", `s.config.TransactionalID != "" && isOldEpoch(err)`, `isOldEpoch(err)`}},
		kafkaPkg, "TestDeliverBatch_AnOldEpochWithoutATransactionalIDIsNoAttemptAndNoFence",
	},
	{
		"a commit to Kafka that was fenced when asked for again is an attempt of the record",
		[]change{{"sinks/kafka/sink.go", ` || isOldEpoch(err)):`, `):`}},
		kafkaPkg, "TestDeliverBatch_ACommitThatWasFencedWhenAskedForAgainIsNoAttempt",
	},
	{
		"a broker of RabbitMQ that is silent is waited for as long as the client likes",
		[]change{{"sinks/rabbitmq/link.go", `			stop = context.AfterFunc(ctx, l.cut) // the`, `			// the`}},
		rabbitmqPkg, "TestConnect_EndsWithItsContextAndWithTimeout",
	},
	{
		"a message that an alarm of RabbitMQ holds up is sent again at each attempt",
		[]change{{"sinks/rabbitmq/sink.go", `	case l.alarm.met():
		l.hold()
`, ``}},
		rabbitmqPkg, "TestDeliverBatch_AMessageUnderAnAlarmIsWaitedForAndNotSentAgain",
	},
	{
		"an alarm of RabbitMQ that ends during a call did not hold it up",
		[]change{{"sinks/rabbitmq/alarm.go", ` || a.changes.Load() != a.before`, ``}},
		rabbitmqPkg, "TestAlarm_OneThatEndsDuringACallHasMetIt",
	},
	{
		"a message that an alarm of RabbitMQ holds up counts for any record",
		[]change{{"sinks/rabbitmq/alarm.go", `	return reflect.DeepEqual(message, p.message)`, `	return reflect.DeepEqual(message, message)`}},
		rabbitmqPkg, "TestDeliverBatch_AMessageUnderAnAlarmCountsForNoOtherRecord",
	},
	{
		"the wait for the end of an alarm of RabbitMQ is a failed attempt of the record",
		[]change{{"sinks/rabbitmq/errors.go", `		return processor.Unreached(outcome.Unknown(fmt`, `		return (outcome.Unknown(fmt`}},
		rabbitmqPkg, "TestDeliverBatch_AMessageUnderAnAlarmIsWaitedForAndNotSentAgain",
	},
	{
		"a write that RabbitMQ does not read is bounded by the call alone",
		[]change{{"sinks/rabbitmq/sink.go", `context.WithTimeoutCause(ctx, s.config.Timeout, fmt.Errorf("not written`, `context.WithTimeoutCause(ctx, 3600*s.config.Timeout, fmt.Errorf("not written`}},
		rabbitmqPkg, "TestDeliverBatch_AMessageThatAnAlarmCutsOffKeepsTimeout",
	},
	{
		"records of a link to RabbitMQ that is cut off are waited for",
		[]change{{"sinks/rabbitmq/sink.go", ` && !s.link.broken {`, ` {`}},
		rabbitmqPkg, "TestDeliverBatch_AWriteThatIsCutOffBesideARefusalLeavesTheWindowOpen",
	},
	{
		"a refusal by RabbitMQ is of the first record of a window",
		[]change{{"sinks/rabbitmq/sink.go", `alone := len(s.link.window) == 1; {`, `alone := len(s.link.window) > 0; {`}},
		rabbitmqPkg, "TestDeliverBatch_ARefusalOfAWindowLeavesItsRecordsOpen",
	},
	{
		"a refusal by RabbitMQ of one of several records leaves none open",
		[]change{{"sinks/rabbitmq/errors.go", `processor.Refused(outcome.Outage(open))`, `processor.Refused(open)`}},
		rabbitmqPkg, "TestDeliverBatch_ARefusalOfAWindowLeavesItsRecordsOpen",
	},
	{
		"an exchange of RabbitMQ that is gone may have taken the record",
		[]change{{"sinks/rabbitmq/sink.go", ` || code(err) == amqp.NotFound)`, `)`}},
		rabbitmqPkg, "TestDeliverBatch_AnExchangeThatIsGone",
	},
	{
		"Close waits for a broker of RabbitMQ that is silent",
		[]change{{"sinks/rabbitmq/link.go", `time.AfterFunc(closePatience, l.cut)`, `time.AfterFunc(time.Hour, l.cut)`}},
		rabbitmqPkg, "TestClose_DoesNotWaitForABrokerThatDoesNotRead",
	},
	{
		"the sinks of a daemon that ends are closed one after the other",
		[]change{{"command/internal/daemon/build.go", `closing.Go(func() { _ = closer.Close() })`, `_ = closer.Close()`}},
		daemonPkg, "TestRun_TheSinksOfManyProcessesAreClosedAtOnce",
	},
	{
		"a key of Pub/Sub without an answer counts as another key's word",
		[]change{{"sinks/pubsub/sink.go", "case open && !first.unknown:", "case false:"}},
		pubsubPkg, "TestDeliverBatch_AKeyWithoutAnAnswerBesideAWordLeavesTheWindowOpen",
	},
	{
		"a record without a confirm of RabbitMQ counts as the one before it",
		[]change{{"sinks/rabbitmq/sink.go", "return s.besideAnOpenOne(failure)", "return failure"}},
		rabbitmqPkg, "TestDeliverBatch_ARecordWithoutAConfirmBesideARefusalLeavesTheWindowOpen",
	},
	{
		"a record whose confirm the end of the connection took counts as refused by RabbitMQ",
		[]change{{"sinks/rabbitmq/sink.go", "if !p.confirm.Acked() && l.dead() {", "if false {"}},
		rabbitmqPkg, "TestDeliverBatch_ARecordWithoutAConfirmBesideARefusalLeavesTheWindowOpen",
	},
	{
		"a lost connection to RabbitMQ has the records of its window go out one at a time",
		[]change{{"sinks/rabbitmq/pace.go", `code(err) != 0 && code(err) != amqp.ConnectionForced`, `code(err) != amqp.ConnectionForced`}},
		rabbitmqPkg, "TestDeliverBatch_ALostConnectionBringsTheWindowBack",
	},
	{
		"after a lost connection to RabbitMQ a whole window goes out",
		[]change{{"sinks/rabbitmq/pace.go", `	p.room = 1
`, ``}},
		rabbitmqPkg, "TestDeliverBatch_ARecordThatEndsEachConnectionIsFound",
	},
	{
		"a record goes out to RabbitMQ although the call's time is too short for its confirm",
		[]change{{"sinks/rabbitmq/pace.go", `return !bounded || time.Until(end) > 2*p.took`, `return !bounded || time.Until(end) > 2*p.took || true`}},
		rabbitmqPkg, "TestDeliverBatch_ACallEndsBeforeItsTimeDoes",
	},
	{
		"a link to RabbitMQ is given up at the end of a call's time",
		[]change{{"sinks/rabbitmq/sink.go", ` && !outcome.IsNoTime(err):`, `:`}},
		rabbitmqPkg, "TestDeliverBatch_ACallEndsBeforeItsTimeDoes",
	},
	{
		"a record that a call had no time for has failed",
		[]change{{"processor/dispatch.go", `case n > 0 && outcome.IsNoTime(err):`, `case n > of && outcome.IsNoTime(err):`}},
		processorPkg, "TestBatch_ACallWithoutTimeForTheRestIsNoFailure",
	},
	{
		"a message that NATS does not answer counts as the one before it",
		[]change{{"sinks/nats/sink.go", "return besideAnOpenOne(failure)", "return failure"}},
		natsPkg, "TestRefuseRest_AMessageWithoutAnAnswerLeavesTheWindowOpen",
	},
	{
		"a port that expects TLS condemns each record",
		[]change{{"sinks/webhook/answer.go", "case plain && wantsTLS(body):", "case false:"}},
		webhookPkg, "TestDeliver_APortThatExpectsTLSIsNoVerdictOnTheRecord",
	},
	{
		"a record that a receiver repeats passes for a port that expects TLS",
		[]change{{"sinks/webhook/answer.go", "strings.HasPrefix(text,", "strings.Contains(text,"}},
		webhookPkg, "TestDeliver_APortThatExpectsTLSIsNoVerdictOnTheRecord",
	},
}
