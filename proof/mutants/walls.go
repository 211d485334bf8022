package main

// wallMutants let in what must stay out: another role's code, another user's links.
var wallMutants = []mutant{
	{
		"a child has the terminal of the shell",
		[]change{{"sinks/exec/group_unix.go", "Setsid: true", "Setpgid: true"}},
		execPkg, "TestDeliverBatch_AChildHasNotTheTerminalOfItsParent",
	},
	{
		"a NATS server names other servers that get the login",
		[]change{{"sinks/nats/link.go", "		nats.IgnoreDiscoveredServers(),\n", ""}},
		natsPkg, "TestOpen_OnlyConfiguredServersGetTheLogin",
	},
	{
		"children have the files that the daemon was started with",
		[]change{{"command/internal/daemon/inherited_unix.go", "fd > standard {", "fd < standard {"}},
		daemonPkg, "TestCloseOnExec_NoChildHasAFileThatTheDaemonWasStartedWith",
	},
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
		[]change{{"internal/pglocal/throwaway/file.go", "if !found || name == \"\" || strings.ContainsAny(name, \"/.\\n\") {", "if false && (!found || name == \"\") {"}},
		throwawayPkg, "TestDir_RootRemovesOnlyWhatIsEmpty",
	},
	{
		"beyond the limit of connections the newest is closed, which may be a probe",
		[]change{{"command/internal/daemon/room.go", "from.all.Front()", "from.all.Back()"}},
		daemonPkg, "TestRoom_AFloodOfConnectionsClosesNoneThatAsks",
	},
	{
		"the line ends of other systems move what is hidden",
		[]change{{"command/internal/daemon/yamlfile/file.go", `"\r\n", "\n", "\r", "\n")`, `"\x00", "")`},
			{"command/internal/daemon/yamlfile/hide.go", "if f.shows(fault.source, fault.Line) {", "if false {"}},
		daemonPkg, "TestParse_AFaultShowsNoPartOfASecretHoweverItIsSpelled",
	},
	{
		"a line that goes on with a secret is shown",
		[]change{{"command/internal/daemon/yamlfile/hide.go", "if f.shows(fault.source, fault.Line) {", "if false {"}},
		daemonPkg, "TestParse_AFaultShowsNoPartOfASecretHoweverItIsSpelled",
	},
	{
		"a fault that is found before the file is read shows its line",
		[]change{{"command/internal/daemon/yamlfile/hide.go", `	if f.hidden == nil && f.line(fault.Line) != "" {`, "	if false {"}},
		yamlPkg, "TestParse_AFaultBesideWhatWasNotReadShowsNoSecret",
	},
	{
		"a secret that reads as a tag is shown",
		[]change{{"command/internal/daemon/yamlfile/hide.go", "	for _, at := range f.tags {", "	for _, at := range f.tags[:0] {"}},
		yamlPkg, "TestParse_AFaultBesideWhatWasNotReadShowsNoSecret",
	},
	{
		"of two spellings of a setting one is taken by chance",
		[]change{{"internal/pgurl/parameters.go", "all[strings.ToLower(name)] = given[name]", "all[name] = given[name]"}},
		pgurlPkg, "TestLowered_OfTwoSpellingsOneIsLeft",
	},
	{
		"records are read in the encoding of the session",
		[]change{{"sources/table/read.go", "{SQL: readSettingsSQL}, {SQL: l.holdSQL()}", "{SQL: settingsSQL}, {SQL: l.holdSQL()}"}},
		tablePkg, "TestRead_ASessionOfAnotherEncodingReadsUTF8",
	},
	{
		"the record's words break up a secret before it is looked for",
		[]change{{"sinks/sql/errors.go", "d.Redact(s.secrets.Replace(pgErr.Message))", "d.Redact(pgErr.Message)"}},
		sqlPkg, "TestGuard_ASecretThatSharesAWordWithTheRecordIsHidden",
	},
	{
		"what is unescaped in a child's words reaches a terminal",
		[]change{{"sinks/exec/words.go", `	for i, line := range clean {
		clean[i] = w.secrets.clean(line)
	}
	return clean`, "	return clean"}},
		execPkg, "TestWords_WhatIsUnescapedIsPrintable",
	},
	{
		"a database over a network may be unencrypted without a word",
		[]change{{"command/internal/daemon/exposure.go", `if host := plaintext.Postgres(database); host != ""`, `if host := plaintext.Postgres(database); host == "-"`}},
		daemonPkg, "TestRun_WarnsOfCredentialsInTheClear",
	},
	{
		"unknown settings are sent to the server",
		[]change{{"internal/pgurl/parameters.go", "if !slices.Contains(parameters, strings.ToLower(name)) {", "if false && !slices.Contains(parameters, strings.ToLower(name)) {"}},
		daemonPkg, "TestPool_RefusesASettingThatNobodyKnows",
	},
	{
		"what a record holds reaches a terminal unseen",
		[]change{{"internal/visible/text.go", "return unicode.IsControl(r) || ", "return "}},
		visiblePkg, "TestText_EscapesWhatMovesATerminal",
	},
	{
		"a log on a terminal passes on the escapes of others",
		[]change{{"command/internal/daemon/logging.go", "ReplaceAttr: shown", "ReplaceAttr: readable"}},
		daemonPkg, "TestNewLogger_NoTextOfOthersMovesATerminal",
	},
	{
		"JSON for programs passes on what a terminal obeys",
		[]change{{"internal/visible/json.go", "case 0x7f, 0xc2, 0xd8, 0xe2:", "case 0x7f:"}},
		visiblePkg, "TestJSON_FindsEveryHiddenCharacter",
	},
	{
		"a proposed command names a process without quotes",
		[]change{{"internal/visible/shell.go", "	return Quoted(word)", "	return word"}},
		visiblePkg, "TestShell_AWordStaysOneWord",
	},
	{
		"a halt that cannot be stored is tried for ever",
		[]change{{"cursor/failure.go", "string(f.Position), storable(f.RecordID),", "string(f.Position), f.RecordID,"}},
		cursorPkg, "TestHalt_StoresWhatIsNoText",
	},
	{
		"secrets among the arguments of a child are quoted",
		[]change{{"sinks/exec/config.go", `references:"command"`, `references:"dir"`}},
		commandPkg, "TestRun_SaysNothingOfSecretsNorOfWhatRecordsHold",
	},
	{
		"secrets within a statement are quoted",
		[]change{{"sinks/sql/config.go", `references:"statement"`, `references:"url"`}},
		commandPkg, "TestRun_SaysNothingOfSecretsNorOfWhatRecordsHold",
	},
	{
		"operators may read the payloads of dead letters",
		[]change{{"cursor/grants.go", `s.may("SELECT", "dead_letter", letterColumns...)`, `s.may("SELECT", "dead_letter")`}},
		daemonPkg, "TestGrants_OperatorsNeedEach",
	},
	{
		"operators may read what the records of a source hold",
		[]change{{"command/internal/daemon/build.go", "config.KeysOnly = true", "config.KeysOnly = false"}},
		daemonPkg, "TestGrants_OperatorsNeedEach",
	},
	{
		"files with secrets that others can read are passed over in silence",
		[]change{{"command/internal/daemon/exposed_file.go", "slices.Contains(files.secret, path) && mode&(groupRead|othersRead) != 0", "false"}},
		daemonPkg, "TestDoctor_WarnsOfFilesWithSecretsThatOthersCanRead",
	},
	{
		"a private key that others can read is passed over in silence",
		[]change{{"command/internal/daemon/named_files.go", "	f.addSecret(secret...)\n	f.addTrusted(trusted...)\n}", "	f.addTrusted(trusted...)\n}"}},
		daemonPkg, "TestExposedFiles_NamesAPrivateKeyThatOthersCanReadOrWrite",
	},
	{
		"a program that others can write is passed over in silence",
		[]change{{"command/internal/daemon/named_files.go", "f.addTrusted(trusted...)\n	}\n}", "}\n}"}},
		daemonPkg, "TestExposedFiles_NamesAProgramThatOthersCanWrite",
	},
	{
		"the url of the sql sink may have unknown settings",
		[]change{{"internal/pgurl/alone.go", "return c, CheckParameters(c.RuntimeParams)", "return c, nil"}},
		daemonPkg, "TestConnectionStrings_RefuseUnknownSettings",
	},
	{
		"a file may be indented without an end",
		[]change{{"command/internal/daemon/yamlfile/file.go", "max(brackets, dashes, len(margins))", "max(brackets, dashes)"}},
		yamlPkg, "TestParse_ASmallFileStaysSmall",
	},
	{
		"documents and complex keys of a file are without an end",
		[]change{{"command/internal/daemon/yamlfile/file.go", "entries += rareEntry", "entries++"}},
		yamlPkg, "TestParse_ASmallFileStaysSmall",
	},
	{
		"merge keys may lead to the same keys again and again",
		[]change{{"command/internal/daemon/yamlfile/mapping.go", "n.file.merged > maxKeys {", "n.file.merged < 0 {"}},
		yamlPkg, "TestParse_ASmallFileStaysSmall",
	},
	{
		"what lies beyond the bound of a file is cut off without a word",
		[]change{{"internal/bounded/read.go", "io.LimitReader(r, MaxBytes+1)", "io.LimitReader(r, MaxBytes)"}},
		boundedPkg, "TestRead_FilesHaveAnEnd",
	},
	{
		"what is read at each connection may be a pipe or a device",
		[]change{{"internal/bounded/read.go", "if !info.Mode().IsRegular() {", "if !info.Mode().IsRegular() && false {"}},
		boundedPkg, "TestFile_IsARegularFileAndWaitedForInNoCase",
	},
	{
		"the driver is given a file without an end",
		[]change{{"internal/pgurl/files.go", "errors.Is(err, refused) {", `errors.Is(err, refused) && path == "" {`}},
		pgurlPkg, "TestCheckFiles_RefusesWhatTheDriverWouldReadWithoutAnEnd",
	},
	{
		"the login that a connection to NATS has from a file is quoted",
		[]change{{"sinks/nats/link.go", "	s.guard.learn(login.secrets)\n", ""}},
		natsPkg, "TestGuard_ALoginThatTheServerRepeatsIsNotQuoted",
	},
	{
		"the broker of make services takes orders from the network",
		[]change{{"internal/broker/rabbitmq.go", "-kernel inet_dist_use_interface {127,0,0,1} ", ""}},
		servicesPkg, "TestServices_ListenOnLoopbackAlone",
	},
	{
		"what Pub/Sub's credentials keep secret is quoted",
		[]change{{"sinks/pubsub/guard.go", "secretsOf(text)...", "string(text)"}},
		pubsubPkg, "TestGuard_ATokenServiceThatRepeatsTheCredentialsDisclosesNone",
	},
	{
		"what a server of NATS says at the login is quoted where quote_answers is false",
		[]change{{"sinks/nats/link.go", "l.undialledBy(heard(err))", "l.undialledBy(err)"}},
		natsPkg, "TestGuard_AServerThatRepeatsTheLoginDisclosesNothing",
	},
	{
		"a text is quoted that may have hidden words in other letters",
		[]change{{"internal/secret/guard.go", "			return Hidden\n", "			return text\n"}},
		secretPkg, "TestGuard_HidesAllOfATextThatMayHaveTheWordsInOtherLetters",
	},
	{
		"of several answers in an error one is hidden",
		[]change{{"internal/secret/guard.go", "		return e.Unwrap()\n", "		return e.Unwrap()[:1]\n"}},
		sqlPkg, "TestRemote_HiddenAnswersAreThoseOfEveryHost",
	},
	{
		"what packages of Go quote of an answer is not hidden",
		[]change{{"internal/secret/guard.go", "return saidOnTheWay(err)", `return "", false`}},
		sqlPkg, "TestRemote_HiddenAnswersHaveNothingOfALogin",
	},
	{
		"words of a receiver break the lines of the log",
		[]change{{"internal/secret/guard.go", "visible.Line(g.Secrets.Replace(err.Error()))", "visible.Text(g.Secrets.Replace(err.Error()))"}},
		pubsubPkg, "TestGuard_AnAnswerBreaksNoLine",
	},
	{
		"the text of a time-out that is none is not looked through for a receiver's words",
		[]change{{"internal/secret/guard.go", "		return []error{e.Quoted()}", "		return nil"}},
		sqlPkg, "TestRemote_HiddenAnswersHaveNothingOfARefusalThatCouldNotBeNoted",
	},
	{
		"the details of an answer of Pub/Sub are quoted where quote_answers is false",
		[]change{{"sinks/pubsub/guard.go", `	case interface{ GRPCStatus() *status.Status }:
`, `	case interface{ GRPCStatus() *status.Status; Is(error) bool }:
`}},
		pubsubPkg, "TestGuard_OnDemandNoDetailOfAnAnswerIsQuoted",
	},
	{
		"what Pub/Sub says in the words of the client passes for the client's",
		[]change{{"sinks/pubsub/link.go", "if x.sent.Load() || x.heard.Load() {", "if false {"}},
		pubsubPkg, "TestGuard_AnAnswerThatReadsLikeAFailedConnectionIsHidden",
	},
	{
		"that a connection to Pub/Sub fails is hidden as if the service had said it",
		[]change{{"sinks/pubsub/link.go", "	return unheard(err)\n", "	return err\n"}},
		pubsubPkg, "TestGuard_HiddenAnswersHideNothingOfAConnectionThatFails",
	},
	{
		"the routing key of a message that comes back is what the broker says",
		[]change{{"sinks/rabbitmq/sink.go", "s.toBind(p.key)", "s.toBind(r.RoutingKey)"}},
		rabbitmqPkg, "TestDeliverBatch_AReturnNamesOurRoutingKeyInOneLine",
	},
	{
		"what a NATS server says of itself and of its stream is quoted where quote_answers is false",
		[]change{{"sinks/nats/guard.go", "		return e.hidden, true\n", `		return e.hidden, false
`}},
		natsPkg, "TestGuard_HiddenAnswersHaveNothingOfTheServersOwn",
	},
	{
		"an answer of a NATS server that cannot be decoded is quoted where quote_answers is false",
		[]change{{"sinks/nats/guard.go", `return &of{err, "the answer is not`, `return &of{err, err.Error() + "`}},
		natsPkg, "TestGuard_HiddenAnswersHaveNothingThatCannotBeDecoded",
	},
	{
		"the subjects of a server stand in a command that is to be pasted",
		[]change{{"sinks/nats/stream.go", "visible.Quoted(all)", "all"}},
		natsPkg, "TestDeliverBatch_NoWordOfAServerIsAWordOfACommand",
	},
	{
		"a password that a broker of Kafka repeats is quoted",
		[]change{{"sinks/kafka/guard.go", "secret.New(c.SASL.Password)", "secret.New()"}},
		kafkaPkg, "TestGuard_ABrokerThatRepeatsTheLoginDisclosesNothing",
	},
	{
		"where answers are hidden, what the client of Kafka quotes of a login is not",
		[]change{{"sinks/kafka/guard.go", `	if _, ok := err.(*quoting); ok {`, `	if false {`}},
		kafkaPkg, "TestGuard_ALoginThatFailsAtTheClientQuotesNoHiddenAnswer",
	},
	{
		"where answers are hidden, the names in a certificate of whoever answers for Kafka are not",
		[]change{{"sinks/kafka/guard.go", `Said: said, Hide`, `Hide`}},
		kafkaPkg, "TestGuard_NamesOfACertificateAreNoPartOfAHiddenAnswer",
	},
	{
		"where answers are hidden, an address that a cluster of Kafka gives is not",
		[]change{{"sinks/kafka/dial.go", `if err != nil && !slices.Contains(s.config.Brokers, address) {`, `if false && !slices.Contains(s.config.Brokers, address) {`}},
		kafkaPkg, "TestGuard_AnAddressThatTheClusterNamesIsNoPartOfAHiddenAnswer",
	},
	{
		"where answers are hidden, what the client of Kafka adds to a code is, too",
		[]change{{"sinks/kafka/guard.go", `strings.HasPrefix(err.Error(), code.Error()+": ")`, `strings.HasPrefix(err.Error(), code.Error())`}},
		kafkaPkg, "TestGuard_HidesTheBrokersWordsWhereItSaysThem",
	},
	{
		"the check of a target quotes its password",
		[]change{{"sinks/sql/remote_check.go", "return r.guard.Error(r.unsent(err))", "return r.unsent(err)"}},
		sqlPkg, "TestGuard_AServerThatRepeatsTheLoginDisclosesNothing",
	},
	{
		"every role may create beside the cursor tables, and doctor is silent",
		[]change{{"cursor/doctor_owner.go", "if len(open) > 0 && open[0] {", "if len(open) > 1 && open[0] {"}},
		cursorPkg, "TestDoctor_WarnsOfWhatStrangersMayDoBesideTheCursor",
	},
	{
		"a cursor table of a stranger is passed over in silence",
		[]change{{"cursor/doctor_owner.go", "AND a.grantee OPERATOR(pg_catalog.<>) 0", "OR true"}},
		cursorPkg, "TestDoctor_WarnsOfWhatStrangersMayDoBesideTheCursor",
	},
	{
		"doctor is silent about cursor tables that a crash empties",
		[]change{{"cursor/doctor_unlogged.go", `c.relpersistence OPERATOR(pg_catalog.=) 'u'`, `c.relpersistence OPERATOR(pg_catalog.=) 't'`}},
		cursorPkg, "TestDoctor_WarnsOfEachTableThatACrashEmpties",
	},
	{
		"the right to replay does not let read the payload",
		[]change{{"cursor/grants.go", `s.may("SELECT", "dead_letter", "headers", "payload")`, `s.may("SELECT", "dead_letter", "headers")`}},
		commandPkg, "TestDeadLetter_ReplayTakesTheRightThatGrantsNamesInAComment",
	},
	{
		"a migration uses the tables that a stranger made",
		[]change{{"migrations/claim.go", "if errors.Is(err, pgx.ErrNoRows) {", "if true {"}},
		migrationsPkg, "TestUp_RunsNoCodeOfAStranger",
	},
	{
		"a table without a schema is looked up anew in the search_path",
		[]change{{"sources/table/source.go", "name != nil {\n\t\tc.Table = *name", "name != nil {\n\t\t_ = *name"}},
		tablePkg, "TestRead_AStrangersTableTakesNoPlace",
	},
	{
		"a name of a transaction ends the line of a proposed command",
		[]change{{"internal/visible/literal.go", "if !strings.ContainsFunc(text, Hidden) {", "if true {"}},
		visiblePkg, "TestLiteral_MeansTheSameInOneLine",
	},
	{
		"grants quotes a secret of the statement",
		[]change{{"sinks/sql/needs.go", "secret.Guard{Secrets: s.secrets}", "secret.Guard{}"}},
		sqlPkg, "TestNeeds_KeepsSecretsOfTheStatement",
	},
}
