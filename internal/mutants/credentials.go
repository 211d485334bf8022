package main

// credentialMutants let secrets out.
var credentialMutants = []mutant{
	{
		"the target of a sql sink gets the password of the environment",
		[]change{{"sinks/sql/remote_config.go", "pgurl.ParseAlone(c.URL)", "pgx.ParseConfig(c.URL)"}},
		sqlPkg, "TestRemote_SendsNoPasswordThatTheEnvironmentHasForAnotherServer",
	},
	{
		"a service file says what the url of a target does not",
		[]change{{"internal/pgurl/alone.go", "all = append(all, setting{name, \"\"})", "_ = name"}},
		pgurlPkg, "TestParseAlone_SaysWhatTheURLSaysAndTakesNothingOfTheEnvironment",
	},
	{
		"a command prints the password that the database repeats",
		[]change{{"cmd/ordered-dispatcher/main.go", "sys.known.secrets.Error(command.Run())", "command.Run()"}},
		commandPkg, "TestCommands_ADatabaseThatRepeatsTheLoginDisclosesNothing",
	},
	{
		"a worker logs the password that the database repeats",
		[]change{{"internal/daemon/run.go", "c.Logger = masked(c.Logger, c.Config.Secrets())", ""}},
		commandPkg, "TestCommands_ADatabaseThatRepeatsTheLoginDisclosesNothing",
	},
}
