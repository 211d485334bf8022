package main

// natsMutants take away what protects the records of NATS.
var natsMutants = []mutant{
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
		[]change{{"sinks/nats/sink.go", `if s.stood.sequence < sequence && `, `if false && `}},
		natsPkg, "TestDeliverBatch_AStreamThatIsRestoredUnderAConnectionIsSaid",
	},
	{
		"a stream that was set back, and refilled up to the last number, is written to without a word",
		[]change{{"sinks/nats/sink.go", `|| s.stood.isFresh(now, s.link.fastest)`, `|| sequence == s.stood.sequence+1`}},
		natsPkg, "TestDeliverBatch_AStreamThatIsRestoredUnderAConnectionIsSaid/refilled_exactly",
	},
	{
		"a stream that is set back while a message is on its way is written to without a word",
		[]change{{"sinks/nats/stood.go", `now.Sub(s.heard) < soon+2*fastest`, `now.Sub(s.heard) < time.Hour+2*fastest`}},
		natsPkg, "TestDeliverBatch_AStreamThatIsRestoredWhileAMessageIsOnItsWayIsSaid",
	},
	{
		"a message that could not be read again counts as read",
		[]change{{"sinks/nats/sink.go", `			return nil // the record is there.`, `			err = nil // the record is there.`}},
		natsPkg, "TestDeliverBatch_WhatCouldNotBeReadIsReadLater",
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
		"nothing is said of a service that received a record in the place of a stream of NATS",
		[]change{{"sinks/nats/stream.go", `	if l.dead() {
		return missing`, `	if true {
		return missing`}},
		natsPkg, "TestDeliverBatch_ASubjectThatAServiceHasNowIsSaid",
	},
	{
		"of a record whose message had no answer it is said that nothing was sent",
		[]change{{"sinks/nats/errors.go", `if s.unheard != messageID(d) {`, `if s.unheard != "" || d.ID != "" {`}},
		natsPkg, "TestDeliverBatch_ASubjectThatAServiceHasNowIsSaid",
	},
	{
		"a record is put aside since a server of NATS, or the account, has no room",
		[]change{{"sinks/nats/errors.go", `case codeNoResources, codeAccountFull, `, `case `}},
		natsPkg, "TestDeliverBatch_WaitsWhileTheServerOrTheAccountHasNoRoom",
	},
	{
		"a record is put aside since the claim in a stream of NATS was removed",
		[]change{{"sinks/nats/errors.go", `return isConflict(err) // the claim`, `return false // the claim`}},
		natsPkg, "TestDeliverBatch_AClaimThatWasRemovedIsNoFaultOfTheRecord",
	},
	{
		"a record is put aside since a server of NATS still decides on an earlier attempt",
		[]change{{"sinks/nats/errors.go", `earlier attempt of the record
		return true`, `earlier attempt of the record
		return false`}},
		natsPkg, "TestTakesNone_KnowsWhichWordsAreOfNoRecord",
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
		"a subject that the stream of NATS does not take uses up the attempts of a record",
		[]change{{"sinks/nats/sink.go", `outcome.Refusal(s.unsentNow(d, err))`, `s.refusal(d, err)`}},
		natsPkg, "TestDeliverBatch_ASubjectThatTheStreamDoesNotTakeIsNoAttemptOfTheRecord",
	},
	{
		"a subject that another stream of NATS has taken uses up the attempts of a record",
		[]change{{"sinks/nats/errors.go", `	case codeOtherStream:
		s.link.claim = claim{}`, `	case 1:
		s.link.claim = claim{}`}},
		natsPkg, "TestDeliverBatch_ASubjectThatAnotherStreamHasNowIsNoAttemptOfTheRecord",
	},
	{
		"the command for a stream of NATS adds the subject of one record",
		[]change{{"sinks/nats/stream.go", `kept, added := merge(c.Subjects, wide); !overlap(kept, added)`, `kept, added := merge(c.Subjects, wide); overlap(kept, added)`}},
		natsPkg, "TestDeliverBatch_TheProposedSubjectsTakeTheRecordsToCome",
	},
	{
		"a record is published to a subject of another stream",
		[]change{{"sinks/nats/stream.go", `	return notTaken(info.Config, c, subject)
}`, `	_ = info
	return nil
}`}},
		natsPkg, "TestDeliverBatch_AnotherStreamIsNoPlaceForARecord",
	},
	{
		"a stream of NATS that one process declares may lack the fence of another one",
		[]change{{"sinks/nats/beside.go", `len(added) > 0 {`, `len(added) > 99 {`}},
		natsPkg, "TestCheck_NamesWhatADeclaredStreamLacksForOthers",
	},
	{
		"doctor asks about each declared stream of NATS as if its process were alone",
		[]change{{"sinks/nats/spec.go", `besides(around.Others)...`, `besides(nil)...`}},
		commandPkg, "TestDoctor_NamesWhatTwoProcessesOfOneStreamOfNATSNeed",
	},
}
