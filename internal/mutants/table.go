package main

// Packages of the killers.
const (
	cursorPkg    = "./cursor"
	processorPkg = "./processor"
	tablePkg     = "./sources/table"
	webhookPkg   = "./sinks/webhook"
	sqlPkg       = "./sinks/sql"
	pubsubPkg    = "./sinks/pubsub"
	natsPkg      = "./sinks/nats"
	kafkaPkg     = "./sinks/kafka"
	execPkg      = "./sinks/exec"
	watermillPkg = "./sinks/watermill"
	daemonPkg    = "./internal/daemon"
)

// table are the mutants, by what they take away: the lease, the order of the
// loop, the fence, the sinks.
var table = []mutant{
	{
		"the advance does not check the epoch",
		[]change{{"cursor/lease.go", `AND epoch = $4 AND position < $2`, `AND $4::bigint IS NOT NULL AND position < $2`}},
		cursorPkg, "TestAdvance_RefusesSupersededEpoch",
	}, {
		"the advance does not check that the position grows",
		[]change{{"cursor/lease.go", `AND epoch = $4 AND position < $2`, `AND epoch = $4`}},
		cursorPkg, "TestAdvance_RefusesToGoBackOrNowhere",
	}, {
		"an advance of no row is taken for one",
		[]change{{"cursor/lease.go", `results[0].CommandTag.RowsAffected() == 1 &&`, `results[0].CommandTag.RowsAffected() >= 0 &&`}},
		cursorPkg, "TestAdvance_RefusesSupersededEpoch",
	}, {
		"a COMMIT that is answered with ROLLBACK is taken for one",
		[]change{{"cursor/lease.go", `results[1].CommandTag.String() == "COMMIT"`, `results[1].CommandTag.String() != "" `}},
		cursorPkg, "TestCommitted_TakesNothingButACommitOfOneRow",
	}, {
		"a COMMIT whose outcome is unknown is taken for one",
		[]change{{"cursor/lease.go", `if !committed(results) {`, `if err == nil && !committed(results) {`},
			{"cursor/lease.go", `l.relocked(ctx, next, results[2:], err)`, `l.row = next`}},
		cursorPkg, "TestAdvance_WhoseCommitIsUnknownIsTruthfulAboutIt",
	}, {
		"the epoch is not committed before the first delivery",
		[]change{{"cursor/acquire.go", `update, commit, begin, s.lock(`, `update, statement{sql: "SELECT 1"}, statement{sql: "SELECT 1"}, s.lock(`}},
		cursorPkg, "TestAcquire_CommitsTheEpochBeforeTheFirstDelivery",
	}, {
		"the epoch does not grow with a change of worker",
		[]change{{"cursor/acquire.go", `SET epoch = epoch + $4::bigint,`, `SET epoch = greatest(epoch, $4::bigint),`}},
		cursorPkg, "TestAcquire_EpochGrowsAtEveryChangeOfWorkerAndOnlyThen",
	}, {
		"a worker that hears nothing gives up later than the server",
		[]change{{"cursor/keep.go", `timeout := max(l.store.config.Timeout/giveUpFraction-l.silence(), `, `timeout := max(2*l.store.config.Timeout, `}},
		cursorPkg, "TestLease_EndsBeforeTheServerGivesTheLockAway",
	}, {
		"a worker that was stopped does not ask before it sends",
		[]change{{"cursor/keep.go", `for l.silence() >= l.store.config.Timeout/giveUpFraction ||`, `for l.silence() >= 1000*l.store.config.Timeout ||`}},
		cursorPkg, "TestHeld_TellsAWorkerThatWasStopped",
	}, {
		"a worker does not look for its session's end before it sends",
		[]change{{"cursor/keep.go", `giveUpFraction || !l.undisturbed() {`, `giveUpFraction {`}},
		cursorPkg, "TestHeld_TellsAtOnceOfASessionThatWasEnded",
	}, {
		"a lease is as young as the answer to its lock, not as the question (and nobody looks for the session's end)",
		[]change{{"cursor/acquire.go", `row, t, asked), nil`, `row, t, asked.Add(time.Since(asked))), nil`},
			{"cursor/keep.go", `giveUpFraction || !l.undisturbed() {`, `giveUpFraction {`}},
		cursorPkg, "TestHeld_DoesNotTrustALockWhoseAnswerCameLate",
	}, {
		"a worker takes an old answer of its server for news",
		[]change{{"cursor/keep.go", `for l.silence()`, `if l.silence()`}},
		cursorPkg, "TestHeld_AsksAgainWhenTheAnswerIsOld",
	}, {
		"a lease is not kept alive during a sink call",
		[]change{{"cursor/keep.go", `_ = l.ping()`, `_ = l.over()`}},
		cursorPkg, "TestLease_IsKeptWhileASinkCallRuns",
	}, {
		"what happened to the row between two transactions is not seen",
		[]change{{"cursor/store.go", `AND epoch = $5 AND position = $6 AND sequence = $7 AND state = 'running'`,
			`AND $5::bigint + length($6::text) + $7::bigint IS NOT NULL`}},
		cursorPkg, "TestAdvance_GoesOnWithNothingButTheRowItLeft/pause",
	}, {
		"a busy worker does not stand aside for whoever waits for the row",
		[]change{{"cursor/lease.go", `if time.Since(l.yielded) >= yieldInterval {`, `if l.yielded.Equal(l.began.Add(-time.Hour)) {`}},
		cursorPkg, "TestAdvance_StandsAsideForASessionThatWaits",
	}, {
		"an advance is not durable where the role's commits are not",
		[]change{{"cursor/store.go", `	set_config('idle_in_transaction_session_timeout', $2, true),
	CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END,
	set_config('application_name', $3, true),
	set_config('statement_timeout', $4, true),`, `	set_config('idle_in_transaction_session_timeout', $2, true),
	NULL,
	set_config('application_name', $3, true),
	set_config('statement_timeout', $4, true),`}},
		cursorPkg, "TestAcquire_MakesCommitsDurableWhereTheRoleDoesNot",
	}, {
		"an operator's decision does not ask where the cursor stands",
		[]change{{"cursor/operate.go", `if d.Expect != nil && *d.Expect != row.Position {`, `if false {`}},
		cursorPkg, "TestDecision_IsRefusedWhenTheCursorMoved/skip",
	}, {
		"an operator does not wait for the lock of the row",
		[]change{{"cursor/operate.go", `WHERE process_name = $1
FOR UPDATE`, `WHERE process_name = $1`}},
		cursorPkg, "TestSkip_ByTwoOperatorsAtOncePassesOverOneRecord",
	}, {
		"a skip gives the number of its record to the next one",
		[]change{{"cursor/operate.go", `		row.Sequence++
`, ``}},
		cursorPkg, "TestSkipAndSeek_NoNumberEverStandsForTwoRecords",
	}, {
		"a seek uses numbers again that may have been sent",
		[]change{{"cursor/operate.go", `	row.Sequence += SeekGap
`, ``}},
		cursorPkg, "TestSkipAndSeek_NoNumberEverStandsForTwoRecords",
	}, {
		"a seek is undone by an advance that a worker owes",
		[]change{{"processor/deliver.go", `owed == nil || owed.epoch != s.lease.Epoch() || owed.from != s.lease.Position()`, `owed == nil || owed.from != s.lease.Position()`}},
		processorPkg, "TestSeek_IsNotUndoneByAnAdvanceThatIsOwed/to_where_it_stands",
	}, {
		"a skip ends a pause",
		[]change{{"cursor/operate.go", `	if row.State == Halted {
		row.State = Running
	}
	return row
`, `	row.State = Running
	return row
`}},
		cursorPkg, "TestDecision_InEachState/paused_and_failing:_skip",
	}, {
		"a cursor that was deleted is made again",
		[]change{{"cursor/store.go", `return s.create(ctx, process, at, "false")`, `return s.create(ctx, process, at, "true")`}},
		cursorPkg, "TestCreate_RefusesToStartADeletedCursorOver",
	}, {
		"a process goes on in a database that was restored",
		[]change{{"cursor/acquire.go", `case row.elsewhere():`, `case false:`}},
		cursorPkg, "TestAcquire_HaltsWhereTheDatabaseWasRestored",
	}, {
		"epochs that a promotion may have lost are used again",
		[]change{{"cursor/identity.go", `return lostEpochs`, `return 1`}},
		cursorPkg, "TestAcquire_LeavesRoomForTheEpochsAPromotionMayHaveLost",
	}, {
		"an operator decides on a position that is no longer there",
		[]change{{"cursor/operate.go", `if d.Expect != nil && *d.Expect != row.Position {`, `if false {`}},
		cursorPkg, "TestSkip_ByTwoOperatorsAtOncePassesOverOneRecord",
	}, {
		"a seek begins no epoch",
		[]change{{"cursor/operate.go", `	row.Sequence += SeekGap
	row.Epoch++
`, `	row.Sequence += SeekGap
`}},
		cursorPkg, "TestSkipAndSeek_NoNumberEverStandsForTwoRecords",
	}, {
		"the cursor advances before the sink acknowledges",
		[]change{{"processor/deliver.go", `		n, failure := s.config.Dispatch.deliver(s, ds)
`, `		early := advance{to: ds[n-1].Position, n: int64(n)}
		if err := s.advance(early); err != nil {
			return err
		}
		if _, failure := s.config.Dispatch.deliver(s, ds); failure == nil {
			records = records[n:]
			continue
		}
		n, failure := 0, errors.New("too late")
`}},
		processorPkg, "TestHalt_NothingBehindAPoisonRecordIsSentUntilAnOperatorDecides",
	}, {
		"nobody asks for the lease before a sink call",
		[]change{{"processor/shift.go", `	if err := s.lease.Held(); err != nil {
		return 0, err
	}
`, ``}},
		processorPkg, "TestLostLease_NoCallBeginsUnderIt/same_chunk",
	}, {
		"what was read ahead outlives the lease (and nobody asks for that before a call)",
		[]change{{"processor/shift.go", `page, err = ahead(err)`, `page, err = ahead(nil)`},
			{"processor/shift.go", `	if err := s.lease.Held(); err != nil {
		return 0, err
	}
`, ``}},
		processorPkg, "TestLostLease_NoCallBeginsUnderIt/read_ahead",
	}, {
		"what was read before the lease is delivered, whoever delivered it since",
		[]change{{"processor/shift.go", `if seen.after != lease.Position() {`, `if false {`}},
		processorPkg, "TestAcquire_DropsWhatAnotherWorkerDeliveredSinceItWasRead",
	}, {
		"after an unknown commit memory is believed, not the row",
		[]change{{"processor/deliver.go", ` || owed.from != s.lease.Position() {`, ` {`}},
		processorPkg, "TestAdvance_WhoseCommitIsUnknownIsLookedUp/and_was_made",
	}, {
		"what was acknowledged is forgotten when its advance fails",
		[]change{{"processor/deliver.go", `	owed := s.owed
	s.owed = nil
`, `	var owed *advance
	s.owed = nil
`}},
		processorPkg, "TestAdvance_IsTriedAgainAloneWhenTheSinkHadSucceeded",
	}, {
		"an advance of an InTx process is made good without its effects",
		[]change{{"processor/deliver.go", `	if s.config.Dispatch.outlives {
		s.owed = &a`, `	if true {
		s.owed = &a`}},
		processorPkg, "TestAdvance_OfAnInTxProcessIsNeverMadeWithoutItsEffects",
	}, {
		"the end of a process cancels the advance of its last record",
		[]change{{"processor/deliver.go", `s.lease.Advance(context.WithoutCancel(s.run), a.to, a.n)`, `s.lease.Advance(s.run, a.to, a.n)`}},
		processorPkg, "TestRun_OnShutdownFinishesTheCallInFlightAndAdvances",
	}, {
		"a record whose outcome is unknown is put aside as a dead letter",
		[]change{{"processor/deliver.go", `s.config.DeadLetter && !s.haltsOn(f):`, `s.config.DeadLetter:`}},
		processorPkg, "TestDeadLetter_AnUnknownOutcomeHaltsAllTheSame",
	}, {
		"an error of the database is counted against the record",
		[]change{{"processor/deliver.go", `case !s.config.Dispatch.outlives && isDatabase(err):`, `case false:`}},
		processorPkg, "TestInTx_ADatabaseErrorIsNotCountedAgainstTheRecord",
	}, {
		"an advance that is owed undoes what an operator sought",
		[]change{{"processor/deliver.go", `if owed == nil || owed.epoch != s.lease.Epoch() || owed.from != s.lease.Position() {`, `if owed == nil {`}},
		processorPkg, "TestSeek_IsNotUndoneByAnAdvanceThatIsOwed",
	}, {
		"positions are not compared as tuples",
		[]change{{"sources/table/layout.go", `fmt.Sprintf("(%s) > ($1::%s, $2::%s)", order, l.atType, l.idType)`,
			`fmt.Sprintf("(%s) > ($1::%s, NULL::%s) AND $2::text IS NOT NULL", order, l.atType, l.idType)`}},
		tablePkg, "TestRead_TiesArePagedThrough",
	}, {
		"the writers are looked for before the mark is taken",
		[]change{{"sources/table/read.go", `{SQL: l.holdSQL()}, {SQL: l.markSQL()}}`, `{SQL: l.holdSQL()}}`},
			{"sources/table/read.go", `	return append(all, statement{SQL: query,`, `	return append(all, statement{SQL: l.markSQL()}, statement{SQL: query,`},
			{"sources/table/reading.go", `	mark, err := nextRows(results)
	if err != nil {
		return err
	}
	if err := r.takeMark(mark[0]); err != nil {
		return err
	}
	if err := r.takeWriters(results); err != nil {
		return err
	}
`, `	if err := r.takeWriters(results); err != nil {
		return err
	}
	mark, err := nextRows(results)
	if err != nil {
		return err
	}
	if err := r.takeMark(mark[0]); err != nil {
		return err
	}
`}},
		tablePkg, "TestFence_EveryInterleaving/clock_timestamp",
	}, {
		"the rows are read before the writers are looked for",
		[]change{{"sources/table/read.go", `	for _, sql := range l.writerQueries() {
		all = append(all, statement{SQL: sql})
	}
	return append(all, statement{SQL: query, Args: args, Formats: l.formats(c)}, statement{SQL: "COMMIT"})`,
			`	all = append(all, statement{SQL: query, Args: args, Formats: l.formats(c)})
	for _, sql := range l.writerQueries() {
		all = append(all, statement{SQL: sql})
	}
	return append(all, statement{SQL: "COMMIT"})`},
			{"sources/table/reading.go", `	if err := r.takeWriters(results); err != nil {
		return err
	}
	r.bound = fence.next(r.sample)
	if !results.NextResult() {
		return results.Close()
	}
	return r.takeRows(results.ResultReader())`, `	rows, err := nextRows(results)
	if err != nil {
		return err
	}
	if err := r.takeWriters(results); err != nil {
		return err
	}
	r.bound = fence.next(r.sample)
	defer r.finish()
	for _, values := range rows {
		var row row
		if err := r.layout.row(&row, values, &r.columns); err != nil {
			return err
		}
		r.add(&row)
		r.rows++
	}
	return nil`}},
		tablePkg, "TestFence_EveryInterleaving/clock_timestamp",
	}, {
		"the fence's statements share one snapshot",
		[]change{{"sources/table/sample.go", "const beginSQL = `BEGIN ISOLATION LEVEL READ COMMITTED", "const beginSQL = `BEGIN ISOLATION LEVEL REPEATABLE READ"}},
		tablePkg, "TestFence_EveryInterleaving/clock_timestamp",
	}, {
		"writers do not bound the fence",
		[]change{{"sources/table/fence.go", `result, f.holder = bound, w`, `f.holder = w`}},
		tablePkg, "TestRead_LateCommitIsNotSkipped",
	}, {
		"a writer does not keep its bound",
		[]change{{"sources/table/fence.go", `		case seen:
`, ``}, {"sources/table/fence.go", `bound, seen := f.bounds[w.id]`, `bound := f.bounds[w.id]`}},
		tablePkg, "TestFence_Next/it_keeps_its_bound_while_it_is_there",
	}, {
		"writers of the first sample are taken for new",
		[]change{{"sources/table/fence.go", `			bound = unbounded
`, `			bound = s.mark
`}},
		tablePkg, "TestRead_WriterOfTheFirstSampleHoldsEverythingBack",
	}, {
		"a prepared transaction is taken for new",
		[]change{{"sources/table/fence.go", `			bound = lowest
`, `			bound = max(lowest, floor)
`}},
		tablePkg, "TestFence_Next/one_that_was_prepared_has_the_lowest_bound_of_those_that_were_there",
	}, {
		"writers of partitions are not seen",
		[]change{{"sources/table/sample.go", `AND relation IN (SELECT oid FROM lineage)`, `AND relation IN (SELECT oid FROM tree LIMIT 1)`}},
		tablePkg, "TestRead_RowsStraightIntoAPartitionAreNotSkipped",
	}, {
		"ids are read past the mark of their sequence",
		[]change{{"sources/table/sample.go", `mark = fmt.Sprintf("pg_sequence_last_value(%d)", l.sequence)`, `mark = fmt.Sprintf("(%d::bigint | 9223372036854775807)", l.sequence)`}},
		tablePkg, "TestInspect_IDsPastTheirSequenceAreNamed",
	}, {
		"a record stamped with now() is not given a second",
		[]change{{"sources/table/layout.go", `if l.stamp == stampAtStart {`, `if false {`}},
		tablePkg, "TestRead_RecordOfNowWaitsASecond",
	}, {
		"a table that was replaced by another of its name is read on",
		[]change{{"sources/table/sample.go", `to_regclass(%s)::oid = %d`, `to_regclass(%s)::oid + %d > 0`}},
		tablePkg, "TestRead_TableSwappedMidRunIsFencedAnew",
	}, {
		"redirects are followed",
		[]change{{"sinks/webhook/connection.go", `c.conn.RoundTrip(req)`, `(&http.Client{Transport: c.transport}).Do(req)`}},
		webhookPkg, "TestDeliver_FollowsNoRedirect",
	}, {
		"a request whose connection dies is sent again",
		[]change{{"sinks/webhook/connection.go", `sent || !reused ||`, `!reused ||`}},
		webhookPkg, "TestDeliver_IsSentOnceOnADyingConnection",
	}, {
		"the body of an answer is read to its end",
		[]change{{"sinks/webhook/answer.go", `io.ReadAll(io.LimitReader(resp.Body, maxBody))`, `io.ReadAll(resp.Body)`}},
		webhookPkg, "TestDeliver_ReadsNoMoreOfABodyThanItsBound",
	}, {
		"data of a record goes into headers as it is",
		[]change{{"sinks/webhook/request.go", `set(name, escape(value))`, `set(name, value)`}},
		webhookPkg, "FuzzHeader",
	}, {
		"link-local addresses are reached",
		[]change{{"sinks/webhook/dial.go", `ip.IsLinkLocalUnicast() || `, ``}},
		webhookPkg, "TestDeliver_RefusesLinkLocalAddresses",
	}, {
		"an address of IPv6 hides one of IPv4",
		[]change{{"sinks/webhook/dial.go", `	for _, ip := range embedded(ip) {`, `	for _, ip := range embedded(ip)[:0] {`}},
		webhookPkg, "TestRefuse_BlocksWhatIsNotPublicInAllItsForms",
	}, {
		"a name leads to an address that block_private blocks",
		[]change{{"sinks/webhook/dial.go", `case blockPrivate && !isPublic(ip):`, `case false:`}},
		webhookPkg, "TestDeliver_BlockPrivateSeesTheAddressThatANameResolvesTo",
	}, {
		"full stops of a record climb out of a path",
		[]change{{"sinks/webhook/target.go", `case c == '.' && begins:`, `case c == '.' && begins && len(value) == 0:`}},
		webhookPkg, "TestDeliver_NoRecordLeavesThePathOrReachesTheHost",
	}, {
		"a record that the receiver may have is sent without asking",
		[]change{{"sinks/webhook/sink.go", `if d.Unknown && `, `if false && d.Unknown && `}},
		webhookPkg, "TestProbe_ARecordThatTheReceiverHasIsNotSentAgain",
	}, {
		"a worker has no doubt about what the one before it sent",
		[]change{{"processor/doubt.go", `p.doubt = doubt{lease.Position(), p.config.Dispatch.chunk(p.config)}`, `p.doubt = doubt{}`}},
		processorPkg, "TestUnknown_StandsAtWhatAnotherWorkerMayHaveSent",
	}, {
		"a statement may end the transaction that advances the cursor",
		[]change{{"sinks/sql/parse.go", `	switch words[0] {
	case "BEGIN",`, `	switch words[0] {
	case "",`}},
		sqlPkg, "TestParse_RefusesWhatWouldOutliveOrEndTheTransaction",
	}, {
		"another database takes records from a worker of an older epoch",
		[]change{{"sinks/sql/applied.go", `if first.Epoch < a.epoch {`, `if false {`}},
		sqlPkg, "TestRemote_RefusesAWorkerOfAnOlderEpochAndWritesNothing",
	}, {
		"the client of Pub/Sub tries again by itself",
		[]change{{"sinks/pubsub/link.go", `client.CallOptions = &vkit.TopicAdminCallOptions{}`, `_ = client.CallOptions`}},
		pubsubPkg, "TestDeliverBatch_AWindowOfOneKeyIsAChain",
	}, {
		"a topic is published to that drops what it acknowledges",
		[]change{{"sinks/pubsub/link.go", `return errNoSubscription`, `return nil`}},
		pubsubPkg, "TestDeliverBatch_NamesTheCureOfATopic",
	}, {
		"a connection to Pub/Sub that owes an answer is used again",
		[]change{{"sinks/pubsub/sink.go", `			_ = s.close()
`, ``}},
		pubsubPkg, "TestDeliverBatch_UsesNoConnectionAgainThatOwesAnAnswer",
	}, {
		"a message is published while an abandoned one may be on its way",
		[]change{{"sinks/watermill/sink.go", `turn: make(chan struct{}, 1)}`, `turn: make(chan struct{}, 2)}`}},
		watermillPkg, "TestDeliver_SendsNothingBehindAPublishThatHasNotReturned",
	}, {
		"a message in a stream of NATS does not expect its worker's claim",
		[]change{{"sinks/nats/sink.go", `		setNumber(m.Header, jetstream.ExpectedLastSubjSeqHeader, l.claim.sequence)
		set(m.Header, jetstream.ExpectedLastSubjSeqSubjHeader, l.claim.fence)`, `		_ = l`}},
		natsPkg, "TestFence_ASupersededWorkerIsRefusedByTheServer",
	}, {
		"a chain in a stream of NATS names no sequence",
		[]change{{"sinks/nats/sink.go", `		setNumber(m.Header, jetstream.ExpectedLastSeqHeader, before.sequence)
`, ``}},
		natsPkg, "TestFence_AWindowOnItsWayLandsNowhereBehindANewerClaim",
	}, {
		"a chain in a stream of NATS names no id",
		[]change{{"sinks/nats/sink.go", `		set(m.Header, jetstream.ExpectedLastMsgIDHeader, before.id)
`, ``}},
		natsPkg, "TestWindow_OrderHoldsAmongOtherPublishers",
	}, {
		"a claim does not expect the one that was read",
		[]change{{"sinks/nats/claim.go", `	setNumber(header, jetstream.ExpectedLastSubjSeqHeader, before)
`, ``}},
		natsPkg, "TestFence_OfTwoClaimsAtOnceTheServerTakesOne",
	}, {
		"a claim follows one of a newer epoch",
		[]change{{"sinks/nats/claim.go", `	if cursor.Epoch(epoch) <= d.Epoch {`, `	if true {`}},
		natsPkg, "TestFence_AnOlderEpochThanTheStreamsIsExplained",
	}, {
		"what landed in a stream of NATS is not looked for",
		[]change{{"sinks/nats/claim.go", `return ended(ctx, l.readTail(ctx, d))`, `return nil`}},
		natsPkg, "TestTakeOver_WhatHasLandedIsNotSentAgain",
	}, {
		"headers of a record give a NATS server orders",
		[]change{{"sinks/nats/message.go", ` || strings.HasPrefix(name, "nats-")`, ``}},
		natsPkg, "TestDeliverBatch_MessageCarriesTheRecord",
	}, {
		"the client of Kafka sends before it has the whole window",
		[]change{{"sinks/kafka/link.go", `		kgo.ManualFlushing(),
`, ``}},
		kafkaPkg, "TestDeliverBatch_TheBrokerHearsOfNoRecordBeforeTheClientHasTheWindow",
	}, {
		"one replica of Kafka is enough, and batches have no numbers",
		[]change{{"sinks/kafka/link.go", `kgo.RequiredAcks(kgo.AllISRAcks()),`, `kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(),`}},
		kafkaPkg, "TestDeliverBatch_EveryBatchIsNumberedAndWaitsForAllReplicas",
	}, {
		"several records go to a topic of Kafka whose partitions the client does not know",
		[]change{{"sinks/kafka/link.go", `return l.transactional || l.topics[topic]`, `return true`}},
		kafkaPkg, "TestDeliverBatch_TheFirstRecordOfATopicGoesAloneOnEachLink",
	}, {
		"the first record of a batch that Kafka refuses is blamed for it",
		[]change{{"sinks/kafka/sink.go", `case isRefusal(o.err) && rest > 1:`, `case false && rest > 1:`}},
		kafkaPkg, "TestDeliverBatch_OfARefusedBatchTheRecordIsFound",
	}, {
		"a producer of Kafka that was fenced fences whoever did it",
		[]change{{"sinks/kafka/sink.go", `s.fence.raise(ds[0].Epoch)`, `_ = s.fence`}},
		kafkaPkg, "TestFence_NobodyAsksAgainUnderTheEpochThatWasFenced",
	}, {
		"a message to Kafka without an answer is taken for unsent",
		[]change{{"sinks/kafka/sink.go", `if s.link.produced.Load() == before {`, `if before >= 0 {`}},
		kafkaPkg, "TestDeliverBatch_TheBrokersCodeDecides/REQUEST_TIMED_OUT",
	}, {
		"a commit in Kafka without an answer is taken for none",
		[]change{{"sinks/kafka/errors.go", `return &open{err}`, `return &uncommitted{err}`}},
		kafkaPkg, "TestDeliverBatch_ACommitWithoutAnAnswerIsOfUnknownOutcome",
	}, {
		"a child's answer to another record counts",
		[]change{{"sinks/exec/answer.go", `if *a.DedupKey != spelled(d.DedupKey()) {`, `if false {`}},
		execPkg, "TestDeliverBatch_AnAnswerThatIsNoneAcknowledgesNothing/swaps,_window_1",
	}, {
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
	}, {
		"a record that a child died with is taken for undelivered",
		[]change{{"sinks/exec/errors.go", `return outcome.Unknown(`, `return outcome.Known(`}},
		execPkg, "TestDeliverBatch_AChildThatDiesTellsHowAndWhyButNotOfWhat",
	}, {
		"a child has the daemon's environment",
		[]change{{"sinks/exec/child.go", `c.environment(), ownGroup()`, `append(os.Environ(), c.environment()...), ownGroup()`}},
		execPkg, "TestNew_TheChildHasTheEnvironmentThatIsNamed",
	}, {
		"errors show what a reference stands for",
		[]change{{"internal/daemon/yamlfile/node.go", `	if n.refers() {`, `	if false {`}},
		daemonPkg, "TestParse_ShowsNotWhatAReferenceStandsFor",
	},
}
