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
		"a record may have any number of headers",
		[]change{{"sources/table/headers.go", "return names > most", "return false"}},
		tablePkg, "TestParseHeaders_TakesAThousandNames",
	},
	{
		"a condition may hold a secret",
		[]change{{"command/internal/daemon/parse.go", "if len(n.References()) > 0 {", "if false {"}},
		daemonPkg, "TestParse_BadInput",
	},
	{
		"a command prints the password that the database repeats",
		[]change{{"command/main.go", "err = sys.known.secrets().Error(err)", "_ = err"}},
		commandPkg, "TestCommands_ADatabaseThatRepeatsTheLoginDisclosesNothing",
	},
	{
		"a worker logs the password that the database repeats",
		[]change{{"command/internal/daemon/run.go", "c.Logger = masked(c.Logger, c.Config.masks())", ""}},
		commandPkg, "TestCommands_ADatabaseThatRepeatsTheLoginDisclosesNothing",
	},
	{
		"a child waits until its words are compared with its records",
		[]change{{"sinks/exec/words.go", "		w.note(string(line))\n", "		w.note(string(line))\n		w.flush()\n"}},
		execPkg, "TestDeliverBatch_AChildThatWritesMuchIsNotKeptFromItsAnswer",
	},
	{
		"what a child says is quoted beside records that are too much to be compared",
		[]change{{"sinks/exec/beside.go", "if b.bytes > maxBeside {\n		return \"[…]\"", "if false {\n		return \"[…]\""}},
		execPkg, "TestDeliverBatch_LinesAreLoggedInTheirOrderWithoutTheRecords",
	},
	{
		"a line that waits is not compared with records that come meanwhile",
		[]change{{"sinks/exec/words.go", "		w.about.add(d)\n", "		_ = d\n"}},
		execPkg, "TestWords_ALineIsComparedWithTheRecordsOfItsTime",
	},
	{
		"a second host gets the password that a file has for the first one",
		[]change{{"internal/pgurl/passwords.go", " || one.Password != c.Password", ""}},
		pgurlPkg, "TestCheckPasswords_NoHostGetsThePasswordOfAnother",
	},
	{
		"a second host of a target gets the password of the first one",
		[]change{{"internal/pgurl/alone.go", "	if err := CheckPasswords(text, c); err != nil {\n		return nil, err\n	}\n", ""}},
		pgurlPkg, "TestCheckPasswords_NoHostGetsThePasswordOfAnother",
	},
	{
		"a second host of the cursor's database gets the password of the first one",
		[]change{{"command/internal/daemon/pool.go", "	if err := pgurl.CheckPasswords(database, c); err != nil {\n		return nil, err\n	}\n", ""}},
		daemonPkg, "TestPool_NoHostGetsThePasswordThatAFileHasForAnother",
	},
	{
		"migrate sends a second host the password of the first one",
		[]change{{"migrations/config.go", "	if err := pgurl.CheckPasswords(c.ConnString, config); err != nil {\n		return nil, err\n	}\n", ""}},
		daemonPkg, "TestPool_NoHostGetsThePasswordThatAFileHasForAnother",
	},
	{
		"headers do not count among what an error is compared with",
		[]change{{"processor/redact.go", "		n += len(value)\n", "		_ = value\n"}},
		processorPkg, "TestRedact_BesideALargeRecordNothingIsQuoted",
	},
	{
		"all words of a record are kept at once for a comparison",
		[]change{{"processor/redact.go", "for chunk := range strings.FieldsFuncSeq(value, func(r rune) bool { return !inChunk(r) }) {", "for _, chunk := range chunks.FindAllString(value, -1) {"}},
		processorPkg, "TestRedact_WordsTakeNoMemory",
	},
	{
		"a panic is compared with any number of large records",
		[]change{{"processor/errors.go", "size += d.size(); size > maxRedactRecord", "size += d.size(); false"}},
		processorPkg, "TestRedact_APanicBesideManyLargeRecordsSaysNothing",
	},
}
