package main

// boundMutants let what comes from outside grow without a bound, or be waited for.
var boundMutants = []mutant{
	{
		"a line with six bytes for each of a record is made before it is measured",
		[]change{{"sinks/internal/jsonline/line.go", "size = lineLen(d); size > limit {", "size = lineLen(d); size < 0 {"}},
		execPkg, "TestDeliverBatch_ALineAboveMaxBytesFailsForGoodBeforeItIsMade",
	},
	{
		"the escapes of a record may make a line of any length for standard output",
		[]change{{"sinks/stdout/sink.go", "return max(maxLine, 2*size)", "return max(maxLine, 8*size)"}},
		stdoutPkg, "TestDeliver_ALineThatEscapesMakeTooLongFailsForGoodBeforeItIsMade",
	},
	{
		"a record gives a webhook headers of any length",
		[]change{{"sinks/webhook/request.go", "size > maxHead {", "size < 0 {"}},
		webhookPkg, "TestDeliver_WhatIsTooLongForHeadersFailsForGoodBeforeItIsEscaped",
	},
	{
		"a record gives a message of NATS headers of any length",
		[]change{{"sinks/nats/message.go", "size > maxHead {", "size < 0 {"}},
		natsPkg, "TestWindow_WhatIsTooLongForHeadersFailsForGoodBeforeItIsEscaped",
	},
	{
		"a record above max_bytes is copied for Kafka",
		[]change{{"sinks/kafka/message.go", "n > s.config.MaxBytes {", "n < 0 {"}},
		kafkaPkg, "TestDeliverBatch_ARecordAboveMaxBytesIsNotCopied",
	},
	{
		"a process that holds a dead child's output is waited for",
		[]change{{"sinks/exec/child.go", "_ = output.SetReadDeadline(soon)", "_ = output.SetReadDeadline(soon.Add(time.Hour))"}},
		execPkg, "TestDeliverBatch_AnHeirOfTheChildsPipesIsNotWaitedFor",
	},
	{
		"what a dead child does not read is written for as long as its pipe is held",
		[]change{{"sinks/exec/child.go", "_ = pipes[0].Close() //", "_ = pipes[0] //"}},
		execPkg, "TestDeliverBatch_AnHeirOfTheChildsPipesIsNotWaitedFor/to_be_read",
	},
	{
		"an id of any length goes to the terminal",
		[]change{{"command/internal/daemon/deadletter.go", "visible.Short(l.RecordID)", "visible.Line(l.RecordID)"}},
		daemonPkg, "TestPrint_ALongIDIsCutForPeopleAndWholeForPrograms",
	},
	{
		"an id of any length goes to the log",
		[]change{{"processor/deliver.go", `"record_id", visible.Cut(d.ID)`, `"record_id", d.ID`}},
		processorPkg, "TestLog_ALongIDIsCut",
	},
	{
		"a file may have keys without an end",
		[]change{{"command/internal/daemon/yamlfile/file.go", "entries > maxEntries {", "entries < 0 {"}},
		yamlPkg, "TestParse_ASmallFileStaysSmall",
	},
	{
		"the target of the sql sink may be unencrypted without a word",
		[]change{{"command/internal/daemon/exposure.go", "all = append(all, exposure{p.Name, f.Problem, f.Fix})", "_ = f"}},
		daemonPkg, "TestRun_WarnsOfWhatTheSinkGivesAway",
	},
	{
		"a token in an http url goes in the clear without a word",
		[]change{{"sinks/webhook/spec.go", " || c.secretInPath(c.URL)", ""}},
		daemonPkg, "TestRun_WarnsOfWhatTheSinkGivesAway",
	},
	{
		"a secret among a child's arguments is in the list of processes without a word",
		[]change{{"sinks/exec/spec.go", "if len(c.Secrets) == 0 {", "if len(c.Secrets) >= 0 {"}},
		daemonPkg, "TestRun_WarnsOfWhatTheSinkGivesAway",
	},
	{
		"others may write the configuration without a word",
		[]change{{"command/internal/daemon/exposed_file.go", "mode&(groupWrite|othersWrite) != 0", "false"}},
		daemonPkg, "TestRun_WarnsOfFilesThatOthersCanReadOrWrite",
	},
	{
		"run is silent about files with secrets that others can read",
		[]change{{"command/internal/daemon/run.go", "append(c.Config.exposedFiles(), c.Config.exposures(pool.Config().ConnConfig)...)", "c.Config.exposures(pool.Config().ConnConfig)"}},
		daemonPkg, "TestRun_WarnsOfFilesThatOthersCanReadOrWrite",
	},
}
