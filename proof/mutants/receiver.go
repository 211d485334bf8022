package main

// receiverMutants switch off what protects the receiver's half.
var receiverMutants = []mutant{
	mutate("another sender under the same name is taken for the first one", "inbox.TestHandle_RefusesAnotherSenderUnderTheSameName",
		code("inbox.Inbox.lock", "n.origin != m.Origin", "false")),
	mutate("a stream that begins has the origin of its first record", "inbox.TestHandle_RefusesAnotherSenderUnderTheSameName",
		code("inbox.Inbox.open", `m.Stream == ""`, "true")),
	mutate("a superseded worker's record is applied", "inbox.TestHandle_RefusesASupersededWorker",
		code("inbox.Inbox.settle", "case m.Epoch < before.epoch: return 0, &StaleError{Message: m, Seen: before.epoch}", "")),
	mutate("a late request is applied after its successors", "inbox.TestHandle_RefusesALateRequest",
		code("inbox.Inbox.settle", "m.Sequence <= before.sequence", "false")),
	mutate("a record that has been applied is no duplicate", "inbox.TestHandle_AppliesEachRecordOnce",
		code("inbox.Inbox.settle", "case fresh == 0: return Duplicate, i.advance(ctx, tx, m)", "")),
	mutate("a failed effect forgets that a worker has taken over", "inbox.TestHandler_AFailedEffectLeavesALargerEpochNoted",
		code("inbox.Handler.apply", "return nil", "return refused")),
	mutate("the signature covers no type and no key", "inbox.TestHandler_AnswersAsTheTestVectorsSay",
		code("internal/signature.Message.lines", "isOrdered(name) && name != orderedHeader", `isOrdered(name) && name != orderedHeader && name != "Ordered-Type"`)),
	mutate("a header may come twice", "inbox.TestHandler_AnswersAsTheTestVectorsSay",
		code("internal/signature.Doubled", "len(values) > 1", "len(values) > 9")),
	mutate("a receiver without a secret takes records from anybody", "inbox.TestHandler_NeedsASecretADatabaseAndAnEffect",
		code("inbox.HandlerConfig.validate", `c.Secret == "" && !c.Unsigned`, "false")),
	mutate("an echo of our epoch counts as a take-over", "sinks/webhook.TestDeliver_AnAnswerThatContradictsNothingIsAboutTheRecord",
		code("sinks/webhook.Sink.contract", "seen > int64(d.Epoch)", "true")),
}
