package main

// serverMutants weaken what holds where servers are shared with others.
var serverMutants = []mutant{
	{
		"a migration stands in the queue for a table as long as a receiver takes",
		[]change{{"migrations/session.go", `			return lockTimeout(ctx, conn, queueTime)`, `			return lockTimeout(ctx, conn, c.waits.lock)`}},
		migrationsPkg, "TestUp_BehindASlowCallKeepsNoOneFromTheCursors",
	},
	{
		"a worker starts on a server that has not the connections for it",
		[]change{{"command/internal/daemon/capacity.go", `		if l.allowed < need {`, `		if false {`},
			{"command/internal/daemon/capacity.go", `		if l.lacks(need) > 0 {
			return fmt`, `		if false {
			return fmt`}},
		daemonPkg, "TestRun_RefusesWhatTheServerCannotBear",
	},
	{
		"a worker starts on a server whose connections others use",
		[]change{{"command/internal/daemon/capacity.go", `		if l.lacks(need) > 0 {
			return fmt`, `		if false {
			return fmt`}},
		daemonPkg, "TestRun_RefusesWhatTheServerCannotBearBesideOthers",
	},
	{
		"a worker is ready before its sources were inspected",
		[]change{{"command/internal/daemon/inspected.go", `		if !done.Load() && !ended(process) &&`, `		if false && !done.Load() && !ended(process) &&`}},
		daemonPkg, "TestReadyz_WaitsForEachSourceToBeInspected",
	},
	{
		"status does not say what holds records back",
		[]change{{"command/internal/daemon/status_print.go", `w.State + command(w) + ","`, `w.State + ","`}},
		daemonPkg, "TestStatus_NamesALongDelete",
	},
	{
		"a partition that an open transaction writes to is safe to drop",
		[]change{{"command/internal/daemon/retention.go", `return len(p.Undelivered)+len(p.Writers)+len(p.Problems) == 0`, `return len(p.Undelivered)+len(p.Problems) == 0`}},
		daemonPkg, "TestPartitions_OfAnOpenTransactionAreNotSafe",
	},
	{
		"records are counted before the transactions that write are looked for",
		[]change{{"command/internal/daemon/retention.go", `	if err := r.writers(ctx); err != nil { // before`, `	for i := range r.tables {
		r.tables[i].measure(ctx)
	}
	if err := r.writers(ctx); err != nil { // before`},
			{"command/internal/daemon/retention.go", `		r.tables[i].measure(ctx)
		r.tables[i].conceal(c)`, `		r.tables[i].conceal(c)`}},
		daemonPkg, "TestPartitions_OfAnOpenTransactionAreNotSafe",
	},
	{
		"cursors of another file hold no partition back",
		[]change{{"command/internal/daemon/retention.go", `		if slices.Contains(r.config.Names(), row.Process) {`, `		if true {`}},
		daemonPkg, "TestPartitions_CountProcessesOfAnotherFile",
	},
	{
		"a partition that cannot be looked into is safe to drop",
		[]change{{"command/internal/daemon/retention.go", `return len(p.Undelivered)+len(p.Writers)+len(p.Problems) == 0`, `return len(p.Undelivered)+len(p.Writers) == 0`}},
		daemonPkg, "TestPartitions_SayWhatOurRoleMayNotSee",
	},
	{
		"doctor does not look for partitions that were detached",
		[]change{{"command/internal/daemon/doctor_process.go", `	if err != nil || i < 0 || at == "" {`, `	if true {`}},
		daemonPkg, "TestDoctor_NamesAPartitionThatWasDetachedTooEarly",
	},
	{
		"rows of a partition that is being detached count as gone",
		[]change{{"sources/table/partition.go", `		if p.Detaching {`, `		if false {`}},
		tablePkg, "TestUndelivered_OfAPartitionThatIsBeingDetached",
	},
	{
		"a partition that goes with undelivered records leaves no trace",
		[]change{{"command/internal/daemon/gone.go", `	if err := g.note(ctx, row, gone); err != nil {`, `	if err := g.note(ctx, row, nil); err != nil {`}},
		daemonPkg, "TestGuard_NotesAPartitionThatGoesWithUndeliveredRecords",
	},
	{
		"a part of a partition that goes is noted beside it",
		[]change{{"command/internal/daemon/gone.go", `		if gone.hold(r) {`, `		if false {`}},
		daemonPkg, "TestGuard_NotesAPartitionThatGoesWithUndeliveredRecords",
	},
	{
		"each worker notes a partition that goes",
		[]change{{"command/internal/daemon/gone.go", ` AND id > $8`, ` AND id > $8 AND false`}},
		daemonPkg, "TestGuard_NotesAPartitionThatGoesWithUndeliveredRecords",
	},
	{
		"a partition that goes after its records were delivered is noted",
		[]change{{"command/internal/daemon/gone.go", `		if records > 0 {`, `		if true {`}},
		daemonPkg, "TestGuard_NotesNoPartitionThatNoProcessNeeds",
	},
	{
		"a partition that an operator has sought past is noted",
		[]change{{"command/internal/daemon/gone_sought.go", `	return r, known && records == 0, nil`, `	return r, false, nil`}},
		daemonPkg, "TestGuard_NotesNoPartitionThatNoProcessNeeds",
	},
	{
		"a partition that is dropped after a seek past all records is noted",
		[]change{{"command/internal/daemon/gone_sought.go", `	case r.last != "" && r.last <= to:`, `	case false:`}},
		daemonPkg, "TestGuard_OnlyASeekPastTheRecordsSettlesThem",
	},
	{
		"a seek that stays before a partition's records settles them",
		[]change{{"command/internal/daemon/gone_sought.go", `	return r, known && records == 0, nil`, `	return r, true, nil`}},
		daemonPkg, "TestGuard_OnlyASeekPastTheRecordsSettlesThem",
	},
	{
		"another table that has a partition's name is asked about its records",
		[]change{{"command/internal/daemon/gone_sought.go", `	if err != nil || !named {`, `	if err != nil {`}},
		daemonPkg, "TestGuard_OnlyASeekPastTheRecordsSettlesThem",
	},
	{
		"a second DETACH of a partition is not noted",
		[]change{{"command/internal/daemon/gone.go", ` AND id > $8`, ` AND $8::bigint IS NOT NULL`}},
		daemonPkg, "TestGuard_NotesASecondDetach",
	},
	{
		"a second DETACH is not noted by a worker that did not see the partition attached again",
		[]change{{"command/internal/daemon/gone.go", ` AND back.to_position <= noted.from_position`, ` AND false`}},
		daemonPkg, "TestGuard_NotesASecondDetach",
	},
	{
		"partitions are not listed again after they were asked",
		[]change{{"command/internal/daemon/gone.go", `	if all, err = source.Tables(ctx); err != nil {
		return err
	}
`, ``}},
		daemonPkg, "TestGuard_NotesATableThatGoesDuringALook",
	},
	{
		"a partition that is being detached counts as attached",
		[]change{{"command/internal/daemon/gone.go", `		if !p.Detaching {`, `		if true {`}},
		daemonPkg, "TestGuard_NotesADetachThatDidNotEnd",
	},
	{
		"no worker looks at the partitions",
		[]change{{"command/internal/daemon/run.go", `	group.Add(func() error { return c.guardPartitions() }, func(error) { c.stop() })
`, ``}},
		daemonPkg, "TestRun_APartitionThatIsDetachedWhileAWorkerLagsIsNamed",
	},
	{
		"doctor does not name a partition that a worker has seen go",
		[]change{{"command/internal/daemon/doctor_process.go", `	if err == nil && i >= 0 {`, `	if false {`}},
		daemonPkg, "TestDoctor_NamesAPartitionThatIsGoneUntilItIsSettled",
	},
	{
		"doctor names a partition that is gone after an operator has sought",
		[]change{{"command/internal/daemon/doctor_gone.go", `		if e.ID < decided || now`, `		if now`}},
		daemonPkg, "TestDoctor_NamesAPartitionThatIsGoneUntilItIsSettled",
	},
	{
		"a partition that was made anew without its records counts as back",
		[]change{{"command/internal/daemon/doctor_gone.go", `	case held < g.Records:`, `	case false:`}},
		daemonPkg, "TestDoctor_APartitionThatComesBackWithoutItsRecordsIsNamed",
	},
	{
		"a partition that was made anew counts as back with as many records",
		[]change{{"command/internal/daemon/doctor_gone.go", `	case p.OID() != g.OID:`, `	case false:`}},
		daemonPkg, "TestDoctor_APartitionThatComesBackWithoutItsRecordsIsNamed",
	},
	{
		"a table that is replaced with undelivered records leaves no trace",
		[]change{{"command/internal/daemon/gone.go", `	all, err := source.Tables(ctx)`, `	all, err := source.Partitions(ctx)`}},
		daemonPkg, "TestGuard_NotesATableThatIsReplacedWithUndeliveredRecords",
	},
	{
		"what a table's name led to before is taken for what it leads to",
		[]change{{"sources/table/partition.go", `partitionsSQL, root,`, `partitionsSQL, uint64(l.oid)+0*root,`}},
		daemonPkg, "TestGuard_NotesATableThatIsReplacedDuringALook",
	},
	{
		"a partitioned table that is replaced is noted, though its partitions moved to the new one",
		[]change{{"sources/table/partition.go", `THEN 'false'`, `THEN 'true'`}},
		daemonPkg, "TestGuard_APartitionedTableHasNoRecordsOfItsOwn",
	},
	{
		"the table that has the name of the one that it replaced counts as that one",
		[]change{{"command/internal/daemon/doctor_gone.go", `	if i < 0 && g.Attach != "" {`, `	if i < 0 {`}},
		daemonPkg, "TestDoctor_NamesATableThatWasReplacedUntilItIsSettled",
	},
	{
		"a default partition alone is told by tableoid",
		[]change{{"sources/table/partition.go", `AND c.relispartition THEN coalesce(pg_get_partition_constraintdef(c.oid), 'true')`, `AND c.relispartition AND pg_get_partition_constraintdef(c.oid) IS NOT NULL THEN pg_get_partition_constraintdef(c.oid)`}},
		tablePkg, "TestUndelivered_OfADefaultAloneTakesNoRightToSystemColumns",
	},
	{
		"grants leave out the columns of partition keys",
		[]change{{"sources/table/needs.go", `	n.Add(watch)`, `	_ = watch`}},
		tablePkg, "TestNeeds_HoldWhatTellsPartitionsApart",
	},
	{
		"operators may read the columns of partition keys",
		[]change{{"sources/table/needs.go", `	if c.KeysOnly {`, `	if false {`}},
		tablePkg, "TestNeeds_OfOperatorsHoldNoPartitionKey",
	},
	{
		"doctor does not name a missing right to a partition key",
		[]change{{"command/internal/daemon/doctor_process.go", `source.InspectPartitions(ctx); err`, `[]table.Finding(nil), error(nil); err`}},
		daemonPkg, "TestGrants_TheWatchOfPartitionsRunsUnderThem",
	},
	{
		"the warning of partitions that cannot be looked at does not say which right is missing",
		[]change{{"sources/table/partition.go", `s.withRight(ctx, err)`, `err`}},
		daemonPkg, "TestGrants_TheWatchOfPartitionsRunsUnderThem",
	},
}
