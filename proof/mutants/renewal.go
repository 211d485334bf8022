package main

// renewalMutants read secrets once, too often, or at the wrong moment.
var renewalMutants = []mutant{
	{
		"a secret file that is gone for a moment at the start is not read again",
		[]change{{"command/internal/daemon/parse.go", `config.renewal = renewal
`, `config.renewal = renewal
		for _, path := range file.SecretFiles() {
			_, err := bounded.File(path)
			renewal.once[path] = err != nil
		}
`}},
		daemonPkg, "TestRenew_AFileThatIsGoneForAMomentAtTheStartIsReadAgain",
	},
	{
		"new connections to the database log in as at the start",
		[]change{{"command/internal/daemon/renew_login.go", "	config.BeforeConnect = func", "	_ = func"}},
		daemonPkg, "TestRenew_NewConnectionsToTheDatabaseUseThePasswordOfTheFile",
	},
	{
		"a login that was replaced is printed",
		[]change{{"command/internal/daemon/renew_login.go", "l.renewal.learnLogin(now.ConnConfig.Password, append(replaced(l.files, texts), l.password)...)", "_ = replaced"}},
		daemonPkg, "TestRenew_NewConnectionsToTheDatabaseUseThePasswordOfTheFile",
	},
	{
		"a sink does not look at its files after a call that failed",
		[]change{{"command/internal/daemon/renewed.go", "r.renew() && isNotTaken(err) {", "false && isNotTaken(err) {"}},
		daemonPkg, "TestRenew_AWebhookGoesOnWithTheTokenThatItsFileHoldsByNow",
	},
	{
		"a call that was refused over an old secret is an attempt of the record",
		[]change{{"command/internal/daemon/renewed.go", "isTimeFor(ctx, took) {", "isTimeFor(ctx, time.Hour) {"}},
		daemonPkg, "TestRenew_AWebhookGoesOnWithTheTokenThatItsFileHoldsByNow",
	},
	{
		"what may have arrived is sent again as the same attempt",
		[]change{{"command/internal/daemon/renewed.go", "r.renew() && isNotTaken(err) {", "r.renew() {"}},
		daemonPkg, "TestRenew_WhatMayHaveArrivedIsNotSentAgainWithinTheCall",
	},
	{
		"a sink whose calls succeed never looks at its files",
		[]change{{"command/internal/daemon/renewed.go", "if !r.final && r.rotation.due() {", "if !r.final && r.rotation.due() && false {"}},
		daemonPkg, "TestRenew_FilesAreLookedAtWithoutAFailureToo",
	},
	{
		"the files of secrets are read for each record",
		[]change{{"command/internal/daemon/renew.go", "time.Since(r.looked) >= r.interval", "time.Since(r.looked) >= 0"}},
		daemonPkg, "TestRenew_NoFileIsReadForEachRecord",
	},
	{
		"a sink sends beside the one that it replaces",
		[]change{{"command/internal/daemon/renewed.go", "	closeSink(r.sink.Sink())\n	r.sink = sink\n", "	go closeSink(r.sink.Sink())\n	r.sink = sink\n"}},
		daemonPkg, "TestRenew_TheOldSinkIsClosedBeforeTheNewOneSends",
	},
	{
		"a sink is made anew while an alarm of RabbitMQ holds up its messages",
		[]change{{"command/internal/daemon/renewed.go", "ok && p.Pending() {", "ok && p.Pending() && false {"}},
		daemonPkg, "TestRenew_ASinkIsKeptWhileSomethingIsOnItsWay",
	},
	{
		"a sink that knows of a loss is made anew after the call",
		[]change{{"command/internal/daemon/renewed.go", "err != nil && !r.final && r.renew()", "err != nil && r.renew()"}},
		daemonPkg, "TestRenew_ASinkThatKnowsOfALossIsKept",
	},
	{
		"a sink that knows of a loss is made anew before the next call",
		[]change{{"command/internal/daemon/renewed.go", "if !r.final && r.rotation.due() {", "if r.rotation.due() {"}},
		daemonPkg, "TestRenew_ASinkThatKnowsOfALossIsKept",
	},
	{
		"other credentials make a stream of NATS whole that was set back",
		[]change{{"sinks/nats/stood.go", "= outcome.Final(", "= outcome.Refusal("}},
		natsPkg, "TestErrSetBack_IsChangedByNoCredentials",
	},
	{
		"a worker that Kafka keeps away asks at once with a new sink",
		[]change{{"command/internal/daemon/renewed.go", "if delay == 0 && isTimeFor(", "if isTimeFor("}},
		daemonPkg, "TestRenew_AReceiverThatAskedForADelayIsNotCalledAgainAtOnce",
	},
	{
		"a new secret makes an attempt forget the delay that the receiver asked for",
		[]change{{"command/internal/daemon/renewed.go", "processor.RetryAfter(later(err), delay)", "later(err)"}},
		daemonPkg, "TestRenew_AReceiverThatAskedForADelayIsNotCalledAgainAtOnce",
	},
	{
		"a pipe that is gone is looked for again",
		[]change{{"command/internal/daemon/renew.go", "r.once[path] || isPipe(path)", "isPipe(path)"}},
		daemonPkg, "TestRenew_APipeThatIsGoneIsNoLoss",
	},
	{
		"a file that became a pipe is waited for",
		[]change{{"command/internal/daemon/renew.go", "r.once[path] || isPipe(path)", "r.once[path]"}},
		daemonPkg, "TestRenew_AFileThatBecomesAPipeKeepsItsFormerValue",
	},
	{
		"the password of the database is forgotten over those of sinks",
		[]change{{"command/internal/daemon/renew.go", "secret.New(append([]string{r.password}, r.former...)...)", "secret.New(r.former...)"}},
		daemonPkg, "TestRenew_ThePasswordOfTheDatabaseStaysOutOfMessages",
	},
	{
		"a file sends records elsewhere without a restart",
		[]change{{"command/internal/daemon/renew.go", "len(fixed) > 0 {", "len(fixed) > 99 {"}},
		daemonPkg, "TestRenew_AnotherAddressNeedsARestart",
	},
	{
		"a file that is gone leaves a sink without its secret",
		[]change{{"command/internal/daemon/renew.go", "text = former[path]", "text = \"none\""}},
		daemonPkg, "TestRenew_AFileThatCannotBeReadKeepsItsFormerValue",
	},
}
