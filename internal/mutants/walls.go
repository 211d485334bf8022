package main

// wallMutants let in what must stay out: another role's code, another user's links.
var wallMutants = []mutant{
	{
		"statements of the cursor run with the role's search_path",
		[]change{{"cursor/flush.go", `const path = "pg_catalog, pg_temp"`, `const path = "public, pg_catalog"`}},
		commandPkg, "TestHostileSchema_NoCommandCallsAnothersFunction",
	},
	{
		"what the daemon asks besides runs with the role's search_path",
		[]change{{"internal/prepared/path.go", "set_config('search_path', 'pg_catalog, pg_temp', true)`", "current_setting('search_path')`"}},
		commandPkg, "TestHostileSchema_NoCommandCallsAnothersFunction",
	},
	{
		"root removes what another process claims to have made",
		[]change{{"internal/pglocal/throwaway/file.go", "if !found || name == \"\" || strings.ContainsAny(name, \"/.\\n\") {", "if !found && false {"}},
		throwawayPkg, "TestDir_RootRemovesOnlyWhatIsEmpty",
	},
	{
		"beyond the limit of connections the newest is closed, which may be a probe",
		[]change{{"internal/daemon/room.go", "r.open.Front()", "r.open.Back()"}},
		daemonPkg, "TestServe_HealthIsAnsweredWhateverElseIsConnected",
	},
	{
		"a database over a network may be unencrypted without a word",
		[]change{{"internal/daemon/exposure.go", `if host := inTheClear(database); host != ""`, `if host := ""; host != ""`}},
		daemonPkg, "TestRun_WarnsOfCredentialsInTheClear",
	},
	{
		"unknown settings are sent to the server",
		[]change{{"internal/daemon/pool.go", "if !slices.Contains(parameters, strings.ToLower(name)) {", "if false {"}},
		daemonPkg, "TestPool_RefusesASettingThatNobodyKnows",
	},
	{
		"what a record holds reaches a terminal unseen",
		[]change{{"internal/daemon/visible.go", "return unicode.IsControl(r) || ", "return "}},
		daemonPkg, "TestVisible_EscapesWhatMovesATerminal",
	},
	{
		"merge keys may lead to the same keys again and again",
		[]change{{"internal/daemon/yamlfile/mapping.go", "n.file.merged > maxKeys {", "n.file.merged < 0 {"}},
		yamlPkg, "TestParse_ASmallFileStaysSmall",
	},
	{
		"what lies beyond the bound of a file is cut off without a word",
		[]change{{"internal/daemon/yamlfile/read.go", "io.LimitReader(r, MaxBytes+1)", "io.LimitReader(r, MaxBytes)"}},
		yamlPkg, "TestRead_FilesHaveAnEnd",
	},
	{
		"the broker of make services takes orders from the network",
		[]change{{"internal/broker/rabbitmq.go", "-kernel inet_dist_use_interface {127,0,0,1} ", ""}},
		"./internal/broker", "TestStartRabbitMQ_ListensOnLoopbackAlone",
	},
}
