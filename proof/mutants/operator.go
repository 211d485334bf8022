package main

// operatorMutants take away what protects those who operate a daemon.
var operatorMutants = []mutant{
	{
		"a pooler whose connections are all in use is taken for a server that is not there",
		[]change{{"command/internal/daemon/doctor.go", `case errors.Is(err, answer.ErrNone), pgconn.Timeout(err):`, `case false:`}},
		daemonPkg, "TestConnect_NamesAPoolerWhoseConnectionsAreAllInUse",
	},
	{
		"skip passes over a record though the receiver refuses us",
		[]change{{"cursor/operate.go", `		if row.Failure.OfUs() {
			return row, fmt.Errorf("%w: %s", ErrNotFailing`, `		if false {
			return row, fmt.Errorf("%w: %s", ErrNotFailing`}},
		daemonPkg, "TestDecision_OfAHaltOverUsProposesNoSkip",
	},
	{
		"pause and resume propose skip though the receiver refuses us",
		[]change{{"command/internal/daemon/standing.go", `	case f != nil && f.OfUs() && halted:`, `	case false:`}, {"command/internal/daemon/standing.go", `	case f != nil && f.OfUs():`, `	case f != nil && f.OfUs() && !halted:`}},
		daemonPkg, "TestDecision_OfAHaltOverUsProposesNoSkip",
	},
	{
		"a new process on a table with records needs no start",
		[]change{{"processor/start.go", `	if err != nil || records == 0 {`, `	if true {`}},
		processorPkg, "TestRun_ANewCursorOnATableWithRecordsNeedsAStart",
	},
	{
		"a cursor that is made after a look is taken for one that was deleted",
		[]change{{"cursor/past.go", `	case there:`, `	case there && action == "":`}},
		daemonPkg, "TestDoctor_DuringTheFirstRunTakesNoCursorForDeleted",
	},
	{
		"a process without a start refuses the cursor that another worker made meanwhile",
		[]change{{"processor/start.go", `	case errors.Is(past, cursor.ErrExists):`, `	case false:`}},
		processorPkg, "TestRun_ACursorThatIsMadeMeanwhileIsTakenUp",
	},
	{
		"a process with a new name begins at its start",
		[]change{{"command/internal/daemon/configured.go", `	c.refuseNewNames()
`, ``}},
		daemonPkg, "TestRun_RefusesANewNameWhoseStartWasLeftInTheFile",
	},
	{
		"a renamed cursor keeps its epoch",
		[]change{{"cursor/rename.go", `epoch = $3`, `epoch = $3::bigint - 1`}},
		cursorPkg, "TestRename_GoesOnUnderTheNewName",
	},
	{
		"a name that was given away with its cursor may start anew",
		[]change{{"cursor/store.go", `'create', 'rename', 'renamed', 'forget'`, `'create', 'rename', 'forget'`},
			{"cursor/store.go", `WHERE action <> 'forget'`, `WHERE action = 'rename'`}},
		cursorPkg, "TestRename_GoesOnUnderTheNewName",
	},
	{
		"a cursor that was deleted is made again because its start is given",
		[]change{{"cursor/store.go", `OR NOT EXISTS (SELECT 1 FROM past WHERE action <> 'forget')`, `OR true`}},
		commandPkg, "TestProcessForget_LetsAProcessStartAnew",
	},
	{
		"a cursor without a place reads from the beginning",
		[]change{{"processor/start.go", `err == nil && row.Position == cursor.Unplaced && row.State == cursor.Running:`, `err == nil && false:`}},
		processorPkg, "TestRun_ACursorThatWasPausedBeforeItsFirstRunStartsWhereTheConfigurationSays",
	},
	{
		"status says running though no worker is there",
		[]change{{"command/internal/daemon/presence.go", `	return known && !w.live`, `	return false && known && w.live`}},
		daemonPkg, "TestStatus_SaysRunningWhileAWorkerWatchesAndNoWorkerAtOnce",
	},
	{
		"status claims to know the workers of a program with the library",
		[]change{{"command/internal/daemon/presence.go", `	return known && !w.live`, `	return (known || true) && !w.live`}},
		daemonPkg, "TestStatus_ClaimsNothingOfAProgramWithTheLibrary",
	},
	{
		"a table that cannot be read is no news to status",
		[]change{{"command/internal/daemon/status_print.go", `s.State == cursor.Running && s.unread`, `false`}},
		daemonPkg, "TestStatus_SaysWhyALagIsNotKnown",
	},
	{
		"tests use a server of yours without saying so first",
		[]change{{"internal/pgtest/withpg/main.go", `		pgtest.Announce(log)
`, ``}},
		withpgPkg, "TestRun_SaysFirstThatItUsesAServerOfYours",
	},
	{
		"keys of the file are hidden as values are",
		[]change{{"command/internal/daemon/yamlfile/hide.go", `		if h.telling || !isShown(n) {`, `		if true {`}},
		yamlPkg, "TestFaults_ShowKeys",
	},
	{
		"what may be a secret is shown because it stands where a key does",
		[]change{{"command/internal/daemon/yamlfile/hide.go", `		if h.telling || !isShown(n) {`, `		if false {`}},
		yamlPkg, "TestFaults_ShowNoSecret",
	},
	{
		"start: now is taken for a position",
		[]change{{"command/internal/daemon/parse.go", `case !table.IsPosition(start):`, `case false:`}},
		daemonPkg, "TestParse_BadInput",
	},
	{
		"a worker may not count its dead letters",
		[]change{{"command/internal/daemon/grants.go", `cursor.DutyDeliver, cursor.DutyCount, cursor.DutyPutAside`, `cursor.DutyDeliver, cursor.DutyPutAside`},
			{"command/internal/daemon/grants.go", `return []cursor.Duty{cursor.DutyDeliver, cursor.DutyCount}`, `return []cursor.Duty{cursor.DutyDeliver}`}},
		daemonPkg, "TestMonitor_NeedsNoMoreThanTheGrants",
	},
	{
		"the gauge of dead letters keeps a number that is not known any more",
		[]change{{"command/internal/daemon/letters.go", `			c.metrics.NoDeadLetters(name)`, ``}},
		daemonPkg, "TestMetrics_ShowDeadLettersUntilTheyAreResolved",
	},
	{
		"a process with many dead letters hides those of another",
		[]change{{"cursor/letter.go", `letter.process_name = process.name AND letter.resolution`, `letter.resolution`}},
		daemonPkg, "TestCountDeadLetters_OfEachProcess",
	},
	{
		"several dead letters are replayed in the order of their numbers",
		[]change{{"cursor/letter.go", `ORDER BY position, id`, `ORDER BY id`}},
		commandPkg, "TestDeadLetter_ReplayOfManyGoesByPositionAndStopsAtTheFirstThatFails",
	},
	{
		"a replay goes on after a dead letter that failed",
		[]change{{"command/internal/daemon/selection.go", `		err := decide(l)
`, `		err := decide(l)
		if err != nil && i < len(letters)-1 {
			continue
		}
`}},
		commandPkg, "TestDeadLetter_ReplayOfManyGoesByPositionAndStopsAtTheFirstThatFails",
	},
	{
		"status ends with 0 beside a halted process",
		[]change{{"command/operate.go", `	if daemon.Halted(all) {`, `	if false {`}},
		commandPkg, "TestStatus_EndsWithThreeIfAProcessIsHalted",
	},
	{
		"SIGHUP ends a worker without its grace",
		[]change{{"command/run.go", `	if !signal.Ignored(syscall.SIGHUP) {`, `	if false {`}},
		commandPkg, "TestSIGHUP_LetsTheSlowCallFinish",
	},
	{
		"SIGHUP ends a worker under nohup",
		[]change{{"command/run.go", `	if !signal.Ignored(syscall.SIGHUP) {`, `	if true {`}},
		commandPkg, "TestSIGHUP_IsIgnoredUnderNohup",
	},
}
