package main

// memoryMutants let others have more of the machine than they may.
var memoryMutants = []mutant{
	{
		"a target of the sql sink may say as much as it likes",
		[]change{{"sinks/sql/remote_config.go", "parsed.MaxProtocolMessageBodyLen = maxMessage", "parsed.MaxProtocolMessageBodyLen = 0"}},
		sqlPkg, "TestRemote_ATargetThatSaysTooMuchIsNotHeardOut",
	},
	{
		"all rows of a target's answer are kept",
		[]change{{"sinks/sql/remote_link.go", "			if row != nil {\n				return nil, errAnswer\n			}\n", ""}},
		sqlPkg, "TestRemote_ATargetThatNeverEndsItsAnswerTakesNoMemory",
	},
	{
		"a NATS server's line may be without an end",
		[]change{{"sinks/nats/frames.go", "if len(f.line)+end >= maxLine {", "if false {"}},
		natsPkg, "TestFramed_EndsWhatWouldExhaustTheMemory",
	},
	{
		"the size that a NATS server gives a message is believed",
		[]change{{"sinks/nats/frames.go", "|| size < 0 || size > maxFrame", ""}},
		natsPkg, "TestFramed_EndsWhatWouldExhaustTheMemory",
	},
	{
		"who takes the place of the database may say as much as they like before the login",
		[]change{{"command/internal/daemon/pool.go", "pgwall.Bound(&c.Config, 0)", "pgwall.Bound(&pgconn.Config{}, 0)"}},
		daemonPkg, "TestPool_AStrangerIsNotHeardOutBeforeTheLogin",
	},
	{
		"the messages before the login are bounded one by one",
		[]change{{"internal/pgwall/reader.go", "r.said += headerSize + r.left\n	case kind", "r.said = headerSize + r.left\n	case kind"}},
		daemonPkg, "TestPool_AStrangerSaysOneMiBInAllBeforeTheLogin",
	},
	{
		"a server may report any number of parameters",
		[]change{{"internal/pgwall/reader.go", "if len(r.parameters) > maxParameters {", "if false {"}},
		pgwallPkg, "TestReader_EndsWhatWouldExhaustTheMemory",
	},
	{
		"migrate hears a server out before the login",
		[]change{{"migrations/config.go", "	pgwall.Bound(&config.Config, maxRows)\n", ""}, {"migrations/config.go", "	\"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgwall\"\n", ""}},
		migrationsPkg, "TestStatus_AStrangerSaysOneMiBInAllBeforeTheLogin",
	},
	{
		"an answer of a NATS server may have any number of elements",
		[]change{{"sinks/nats/frames.go", "!f.headers && f.commas > maxElements", "false"}},
		natsPkg, "TestFramed_EndsAnAnswerOfManyElements",
	},
	{
		"a broker of RabbitMQ may return more than was sent",
		[]change{{"sinks/rabbitmq/frames.go", "if f.due.Add(-1) < 0 || body > uint64(f.largest.Load()) {", "if body == 1<<63 {"}},
		rabbitmqPkg, "TestDeliverBatch_ABrokerThatReturnsTooMuchIsNotHeardOut",
	},
	{
		"programs of a throw-away server get the whole environment",
		[]change{{"internal/pglocal/throwaway/dir.go", `env := []string{"LC_ALL=C", "HOME=" + home}`, `env := append(os.Environ(), "LC_ALL=C", "HOME="+home)`}},
		throwawayPkg, "TestDir_NoProgramHasASecretOfOurEnvironment",
	},
	{
		"a program that makes the directory gets the whole environment",
		[]change{{"internal/pglocal/throwaway/dir.go", `cmd.Dir, cmd.Env = "/", environ("/")`, `cmd.Dir = "/"`}},
		throwawayPkg, "TestDir_NoProgramHasASecretOfOurEnvironment",
	},
	{
		"a log of the throw-away server is read, however long it is",
		[]change{{"internal/pglocal/throwaway/file.go", "tail -c 65536", "cat"}},
		throwawayPkg, "TestHead_IsShortWhateverIsThere",
	},
	{
		"a flood of connections closes those that wait for an answer",
		[]change{{"command/internal/daemon/room.go", "r.move(c, r.asking)", "r.move(c, r.quiet)"}},
		daemonPkg, "TestRoom_AFloodOfConnectionsClosesNoneThatAsks",
	},
	{
		"clients that ask without a pause keep their connections, and probes do not",
		[]change{{"command/internal/daemon/room.go", "{r.again, 0},", "{r.asking, 0},"}},
		daemonPkg, "TestRoom_ClientsThatAskAgainAndAgainCloseNoProbe",
	},
	{
		"a flood closes connections before they could ask",
		[]change{{"command/internal/daemon/room.go", "if wait <= 0 ||", "if true ||"}},
		daemonPkg, "TestRoom_NoneIsClosedBeforeItHadTheTimeToAsk",
	},
	{
		"each connection waits for the youngest, though an old one could make room",
		[]change{{"command/internal/daemon/room.go", "early = min(early, wait)", "return nil, wait"}},
		daemonPkg, "TestRoom_OldOnesMakeRoomAtOnce",
	},
	{
		"an error is searched for secrets whatever its length",
		[]change{{"internal/secret/match.go", "if end > maxText+margin {", "if false {"}},
		secretPkg, "TestReplace_OfALongTextTheBeginningIsSearched",
	},
	{
		"a part of a secret is shown where a long error is cut",
		[]change{{"internal/secret/bound.go", "slack = 256", "slack = 0"}},
		secretPkg, "TestReplace_TheEndOfWhatIsShownHasNoPartOfASecret",
	},
}
