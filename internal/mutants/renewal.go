package main

// renewalMutants read secrets once, too often, or at the wrong moment.
var renewalMutants = []mutant{
	{
		"new connections to the database log in as at the start",
		[]change{{"internal/daemon/renew_login.go", "	config.BeforeConnect = func", "	_ = func"}},
		daemonPkg, "TestRenew_NewConnectionsToTheDatabaseUseThePasswordOfTheFile",
	},
	{
		"a login that was replaced is printed",
		[]change{{"internal/daemon/renew_login.go", "l.renewal.learn(append(replaced(l.files, texts), l.password, now.ConnConfig.Password)...)", "_ = replaced"}},
		daemonPkg, "TestRenew_NewConnectionsToTheDatabaseUseThePasswordOfTheFile",
	},
	{
		"a sink does not look at its files after a call that failed",
		[]change{{"internal/daemon/renewed.go", "if r.renew() && isNotTaken(err) {", "if false && isNotTaken(err) {"}},
		daemonPkg, "TestRenew_AWebhookGoesOnWithTheTokenThatItsFileHoldsByNow",
	},
	{
		"a call that was refused over an old secret is an attempt of the record",
		[]change{{"internal/daemon/renewed.go", "if isTimeFor(ctx, took) {", "if isTimeFor(ctx, time.Hour) {"}},
		daemonPkg, "TestRenew_AWebhookGoesOnWithTheTokenThatItsFileHoldsByNow",
	},
	{
		"what may have arrived is sent again as the same attempt",
		[]change{{"internal/daemon/renewed.go", "if r.renew() && isNotTaken(err) {", "if r.renew() {"}},
		daemonPkg, "TestRenew_WhatMayHaveArrivedIsNotSentAgainWithinTheCall",
	},
	{
		"a sink whose calls succeed never looks at its files",
		[]change{{"internal/daemon/renewed.go", "if r.rotation.due() {", "if r.rotation.due() && false {"}},
		daemonPkg, "TestRenew_FilesAreLookedAtWithoutAFailureToo",
	},
	{
		"the files of secrets are read for each record",
		[]change{{"internal/daemon/renew.go", "time.Since(r.looked) >= r.interval", "time.Since(r.looked) >= 0"}},
		daemonPkg, "TestRenew_NoFileIsReadForEachRecord",
	},
	{
		"a sink sends beside the one that it replaces",
		[]change{{"internal/daemon/renewed.go", "	closeSink(r.sink)\n	r.sink = sink\n", "	go closeSink(r.sink)\n	r.sink = sink\n"}},
		daemonPkg, "TestRenew_TheOldSinkIsClosedBeforeTheNewOneSends",
	},
	{
		"a sink is made anew while an alarm of RabbitMQ holds up its messages",
		[]change{{"internal/daemon/renewed.go", "ok && p.Pending() {", "ok && p.Pending() && false {"}},
		daemonPkg, "TestRenew_ASinkIsKeptWhileSomethingIsOnItsWay",
	},
	{
		"a receiver that knows the new secret first halts the process",
		[]change{{"internal/daemon/renewed.go", "time.Since(r.refused) >= r.patience", "time.Since(r.refused) >= 0"}},
		daemonPkg, "TestRenew_ARefusalHaltsNoProcessWhoseFileComesLater",
	},
	{
		"a refusal of secrets from files never halts",
		[]change{{"internal/daemon/renewed.go", "time.Since(r.refused) >= r.patience", "false"}},
		daemonPkg, "TestRenew_ARefusalThatLastsHaltsTheProcess",
	},
	{
		"a file sends records elsewhere without a restart",
		[]change{{"internal/daemon/renew.go", "len(fixed) > 0 {", "len(fixed) > 99 {"}},
		daemonPkg, "TestRenew_AnotherAddressNeedsARestart",
	},
	{
		"a file that is gone leaves a sink without its secret",
		[]change{{"internal/daemon/renew.go", "text = former[path]", "text = \"none\""}},
		daemonPkg, "TestRenew_AFileThatCannotBeReadKeepsItsFormerValue",
	},
}
