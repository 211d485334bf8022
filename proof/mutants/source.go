package main

// sourceMutants take away what protects the fence and the reading.
var sourceMutants = []mutant{
	{
		"rows that were delivered and then changed by a promoted server are taken for late",
		[]change{{"sources/table/late.go", "more = newIDs", `more = ""`}},
		processorPkg, "TestRun_RowsThatWereDeliveredAndChangedSinceAreNotLate",
	},
	{
		"after a promotion ids are trusted that do not grow",
		[]change{{"sources/table/sequence.go", "seq.Cache != 1 || seq.Increment != 1 || seq.Cycle", "seq.Increment != 1 || seq.Cycle"}},
		processorPkg, "TestRetry_AfterAHaltOverTheClockTrustsNoIDsThatDoNotGrow",
	},
	{
		"after a promotion rows are looked for within ten minutes, as if every process ran",
		[]change{{"sources/table/late.go", "lateWindow  = 24 * time.Hour", "lateWindow  = 10 * time.Minute"}},
		processorPkg, "TestRun_AServerThatIsMetAfterItsClockWasCorrectedHaltsTheProcess",
	},
	{
		"after a promotion ids that grow are looked for within a time",
		[]change{{"sources/table/late.go", "	if l.counter != 0 {\n		row,", "	if false {\n		row,"}},
		processorPkg, "TestRun_AServerThatIsMetAfterItsClockWasCorrectedHaltsTheProcess",
	},
	{
		"after a promotion the id of a position is taken for the id of a row",
		[]change{{"sources/table/late.go", "(SELECT t.%[1]s::bigint FROM %[2]s AS t WHERE t.%[3]s = $1::%[4]s AND t.%[1]s = $2::bigint LIMIT 1)",
			"(SELECT $2::bigint FROM %[2]s AS t WHERE t.%[3]s <= $1::%[4]s LIMIT 1)"}},
		processorPkg, "TestRun_LateRowsAreFoundFromAPositionThatIsNoRows",
	},
	{
		"a server that recovers under its postmaster is taken for the same run",
		[]change{{"internal/prepared/run.go", "extract(epoch FROM pg_catalog.pg_stat_get_bgwriter_stat_reset_time())", "0"}},
		tablePkg, "TestRead_ASessionThatIsKilledEndsTheBoundsOfWriters",
	},
	{
		"a record is returned before the disk has its commit",
		[]change{{"sources/table/read.go", "	case r.durable:\n", "	case true:\n"}},
		tablePkg, "TestRead_WhatIsReturnedOutlivesACrash",
	},
	{
		"a position is passed before the disk has the commits up to it",
		[]change{{"sources/table/read.go", `len(r.page.Records) == 0 && r.page.Passed == "":`, `len(r.page.Records) == 0:`}},
		tablePkg, "TestRead_WhatIsPassedOutlivesACrash",
	},
	{
		"a cursor begins at an end that a crash takes back",
		[]change{{"sources/table/source.go", "	if err == nil && !r.durable {", "	if false {"}},
		tablePkg, "TestEnd_OutlivesACrash",
	},
	{
		"after a promotion an id that an application chose hides new rows",
		[]change{{"sources/table/late.go", "FILTER (WHERE known.near AND known.xid <", "FILTER (WHERE known.xid <"}},
		processorPkg, "TestRun_AnIDOfItsOwnHidesNoLateRow",
	},
	{
		"after a promotion ids that grow are looked for among all that was delivered",
		[]change{{"sources/table/late.go", "(t.%s <= $1::%s) IS TRUE", "t.%s <= $1::%s"}},
		tablePkg, "TestPlan_LateRowsAreFoundByTheirIDs",
	},
	{
		"a look for late rows that takes too long is made again for ever",
		[]change{{"sources/table/late.go", "		if errors.Is(err, errSlow) {\n			continue", "		if false {\n			continue"}},
		tablePkg, "TestLate_ADayThatTakesTooLongIsFollowedByAShorterLook",
	},
	{
		"a look for late rows that somebody cancels is taken for one that takes too long",
		[]change{{"sources/table/late.go", "if slow(err) && time.Since(began) >= timeout {", "if slow(err) && !began.IsZero() {"}},
		tablePkg, "TestLate_ALookThatSomebodyCancelsIsNoShortOne",
	},
	{
		"after a promotion the ids of a sequence that was changed are trusted",
		[]change{{"sources/table/recount.go", "	if anew {", "	if false {"}},
		processorPkg, "TestRun_LateRowsAreFoundWhereIDsStartAgain",
	},
	{
		"after a promotion the ids of a sequence that was set back are trusted",
		[]change{{"sources/table/late.go", "err == nil && *last < floor", "err == nil && *last < floor && false"}},
		processorPkg, "TestRun_LateRowsAreFoundWhereIDsStartAgain/set_back",
	},
	{
		"after a promotion the ids of a sequence that cannot be read are trusted",
		[]change{{"sources/table/late.go", "		return \"\", errRecounted\n	}\n	var floor", "		last = &k.at\n	}\n	var floor"}},
		tablePkg, "TestLate_TrustsNoIDsOfASequenceThatCannotBeRead",
	},
	{
		"grants leaves the sequence of ids out where records are ordered by time",
		[]change{{"sources/table/needs.go", "l.counter != 0 && !s.config.KeysOnly", "false"}},
		daemonPkg, "TestGrants_ShowAWorkerThatItsIDsStartedAgain",
	},
	{
		"a look for late rows after a halt over the clock that takes too long is made again for ever",
		[]change{{"sources/table/late.go", "if everywhere && errors.Is(err, errSlow) {", "if everywhere && err == errSlow {"}},
		tablePkg, "TestLate_ADayThatTakesTooLongIsFollowedByAShorterLook",
	},
	{
		"after a promotion a late row that has the id of the position counts as the position's",
		[]change{{"sources/table/late.go", "FILTER (WHERE known.stands)", "FILTER (WHERE known.id = $2::bigint)"}},
		processorPkg, "TestRun_LateRowsAreFoundWhereIDsStartAgain/emptied,_and_set_back",
	},
	{
		"a table is relied on in a new epoch as it was in the last one",
		[]change{{"processor/process.go", "		r.Refresh()\n", "		_ = r\n"}},
		processorPkg, "TestResume_ATableThatWasAlteredIsReadAsItIs",
	},
	{
		"a resume begins no epoch",
		[]change{{"cursor/operate.go", "		if row.State == Paused {\n			row.Epoch++", "		if row.State == \"\" {\n			row.Epoch++"}},
		processorPkg, "TestResume_ATableThatWasAlteredIsReadAsItIs",
	},
	{
		"what was read before an epoch is delivered in it",
		[]change{{"processor/shift.go", "if seen.under != lease.Epoch() {", "if seen.under == 0 {"}},
		processorPkg, "TestResume_WhatWasReadBeforeIsReadAnew",
	},
	{
		"partitions are safe while a process has yet to look for rows before its cursor",
		[]change{{"command/internal/daemon/retention.go", "	err := r.store.Promoted(ctx, p.Name)\n", "	var err error\n"}},
		daemonPkg, "TestPartitions_AreNotSafeWhileRowsBeforeACursorMayBeUndelivered",
	},
	{
		"a step of the clock between two reads leaves the fence as it is",
		[]change{{"sources/table/read.go", "		s.fence = fence{}\n", "		_ = last\n"}},
		tablePkg, "TestClock_IsHeldAgainstAPositionBetweenTwoReads",
	},
	{
		"names in a sentence of a fix end its line",
		[]change{{"sources/table/inspect.go", `visible.Inline(fmt.Sprintf("name it in source.columns.%s: %s has %s", role, l.name(), strings.Join(names, ", ")))`,
			`strings.Clone(fmt.Sprintf("name it in source.columns.%s: %s has %s", role, l.name(), strings.Join(names, ", "))) + visible.Inline("")`}},
		daemonPkg, "TestDoctor_SQLOfHostileNamesMeansThemInPsql",
	},
	{
		"names in a problem of two sentences end its line",
		[]change{{"sources/table/index.go", `visible.Inline(problem) + "; and "`, `visible.Inline("") + problem + "; and "`}},
		daemonPkg, "TestDoctor_SQLOfHostileNamesMeansThemInPsql",
	},
	{
		"a role's quote_all_identifiers decides how a default is read",
		[]change{{"sources/table/sample.go", "'quote_all_identifiers', 'off', true", "'application_name', 'x', true"}},
		tablePkg, "TestInspect_QuotedIdentifiersChangeNothing",
	},
	{
		"a time leads behind a record of that time whose id is empty",
		[]change{{"sources/table/find.go", "len(rows) == 0 {\n\t\treturn position, err", "len(rows) >= 0 {\n\t\treturn position, err"}},
		tablePkg, "TestAt_AnEmptyIDIsNotPassedOver",
	},
	{
		"the index that is proposed for a partition blocks its writers",
		[]change{{"sources/table/index.go", `how, on := " CONCURRENTLY", m.Name`, `how, on := "", m.Name`}},
		tablePkg, "TestInspect_IndexOfPartitionsAndHeirs",
	},
	{
		"records ordered by id have no time",
		[]change{{"sources/table/inspect.go", `c.Type == "timestamp with time zone" && c.Readable`, `c.Type == "" && c.Readable`}},
		tablePkg, "TestRead_OrderIDKnowsCreatedAt",
	},
	{
		"positions are not compared as tuples",
		[]change{{"sources/table/layout.go", `fmt.Sprintf("(%s) > ($1::%s, $2::%s)", order, l.atType, l.idType)`,
			`fmt.Sprintf("(%s) > ($1::%s, NULL::%s) AND $2::text IS NOT NULL", order, l.atType, l.idType)`}},
		tablePkg, "TestRead_TiesArePagedThrough",
	},
	{
		"the writers are looked for before the mark is taken",
		[]change{{"sources/table/read.go", `{SQL: l.holdSQL()}, {SQL: l.markSQL()}}`, `{SQL: l.holdSQL()}}`},
			{"sources/table/read.go", `	return append(all, statement{SQL: query,`, `	return append(all, statement{SQL: l.markSQL()}, statement{SQL: query,`},
			{"sources/table/reading.go", `	mark, err := nextRows(results)
	if err != nil {
		return err
	}
	if err := r.takeMark(mark[0]); err != nil {
		return err
	}
	if err := r.takeWriters(results); err != nil {
		return err
	}
`, `	if err := r.takeWriters(results); err != nil {
		return err
	}
	mark, err := nextRows(results)
	if err != nil {
		return err
	}
	if err := r.takeMark(mark[0]); err != nil {
		return err
	}
`}},
		tablePkg, "TestFence_EveryInterleaving/clock_timestamp",
	},
	{
		"the rows are read before the writers are looked for",
		[]change{{"sources/table/read.go", `	for _, sql := range l.writerQueries() {
		all = append(all, statement{SQL: sql})
	}
	return append(all, statement{SQL: query, Args: args, Formats: l.formats(c)}, statement{SQL: durableSQL}, statement{SQL: "COMMIT"})`,
			`	all = append(all, statement{SQL: query, Args: args, Formats: l.formats(c)})
	for _, sql := range l.writerQueries() {
		all = append(all, statement{SQL: sql})
	}
	return append(all, statement{SQL: durableSQL}, statement{SQL: "COMMIT"})`},
			{"sources/table/reading.go", `	if err := r.takeWriters(results); err != nil {
		return err
	}
	r.bound = fence.next(r.sample)
	if !results.NextResult() {
		r.unanswered = true
		return results.Close()
	}
	if err := r.takeRows(results.ResultReader()); err != nil || r.cut {
		return err
	}`, `	rows, err := nextRows(results)
	if err != nil {
		return err
	}
	if err := r.takeWriters(results); err != nil {
		return err
	}
	r.bound = fence.next(r.sample)
	defer r.finish()
	for _, values := range rows {
		var row row
		if err := r.layout.row(&row, values, &r.columns); err != nil {
			return err
		}
		r.add(&row)
		r.seen++
	}`}},
		tablePkg, "TestFence_EveryInterleaving/clock_timestamp",
	},
	{
		"the fence's statements share one snapshot",
		[]change{{"sources/table/sample.go", "const beginSQL = `BEGIN ISOLATION LEVEL READ COMMITTED", "const beginSQL = `BEGIN ISOLATION LEVEL REPEATABLE READ"}},
		tablePkg, "TestFence_EveryInterleaving/clock_timestamp",
	},
	{
		"writers do not bound the fence",
		[]change{{"sources/table/fence.go", `result, f.holder = bound, w`, `f.holder = w`}},
		tablePkg, "TestRead_LateCommitIsNotSkipped",
	},
	{
		"a writer does not keep its bound",
		[]change{{"sources/table/fence.go", `		case seen:
`, ``}, {"sources/table/fence.go", `bound, seen := f.bounds[w.id]`, `bound := f.bounds[w.id]`}},
		tablePkg, "TestFence_Next/it_keeps_its_bound_while_it_is_there",
	},
	{
		"writers of the first sample are taken for new",
		[]change{{"sources/table/fence.go", `			bound = unbounded
`, `			bound = s.mark
`}},
		tablePkg, "TestRead_WriterOfTheFirstSampleHoldsEverythingBack",
	},
	{
		"a prepared transaction is taken for new",
		[]change{{"sources/table/fence.go", `			bound = lowest
`, `			bound = max(lowest, floor)
`}},
		tablePkg, "TestFence_Next/one_that_was_prepared_has_the_lowest_bound_of_those_that_were_there",
	},
	{
		"writers of partitions are not seen",
		[]change{{"sources/table/sample.go", `AND relation IN (SELECT oid FROM lineage)`, `AND relation IN (SELECT oid FROM tree LIMIT 1)`}},
		tablePkg, "TestRead_RowsStraightIntoAPartitionAreNotSkipped",
	},
	{
		"ids are read past the mark of their sequence",
		[]change{{"sources/table/sample.go", `mark = l.lastID()`, `mark = fmt.Sprintf("(%d::bigint | 9223372036854775807)", l.sequence)`}},
		tablePkg, "TestInspect_IDsPastTheirSequenceAreNamed",
	},
	{
		"a record stamped with now() is not given a second",
		[]change{{"sources/table/layout.go", `if l.stamp == stampAtStart {`, `if false {`}},
		tablePkg, "TestRead_RecordOfNowWaitsASecond",
	},
	{
		"a table that was replaced by another of its name is read on",
		[]change{{"sources/table/sample.go", `to_regclass(%s)::oid = %d`, `to_regclass(%s)::oid + %d > 0`}},
		tablePkg, "TestRead_TableSwappedMidRunIsFencedAnew",
	},
	{
		"a session between two transactions of one message is no writer",
		[]change{{"sources/table/activity.go", "	earliest = `least(xact_start, CASE\n", "	earliest = `least(xact_start, CASE WHEN true THEN NULL\n"}},
		tablePkg, "TestActivity_BoundsASessionByTheMessageThatItIsAt",
	},
	{
		"an idle session is no writer, whether or not it was seen to wait for its client",
		[]change{{"sources/table/activity.go", `values[4] == nil || idle && ok {`, `values[4] == nil || idle || ok && idle {`}},
		tablePkg, "TestActivity_AnIdleSessionIsAWriterUnlessItWaitedForItsClient",
	},
	{
		"what is prepared is looked for before the sessions",
		[]change{{"sources/table/sample.go", `[]string{waitingSQL, activitySQL, preparedSQL}`, `[]string{preparedSQL, waitingSQL, activitySQL}`},
			{"sources/table/sample.go", `startedWriters(string(found[0][0][0]), found[1], found[2])`, `startedWriters(string(found[1][0][0]), found[2], found[0])`}},
		tablePkg, "TestFence_EveryInterleaving/now",
	},
	{
		"a role that does not see all sessions may read a table stamped with now()",
		[]change{{"sources/table/stamp.go", `l.stamp == stampAtStart && !e.cat.seesAll:`, `false && !e.cat.seesAll:`}},
		tablePkg, "TestRead_NowIsRefusedToARoleThatDoesNotSeeAllSessions",
	},
	{
		"a session whose times are hidden is taken for one that does nothing",
		[]change{{"sources/table/activity.go", `if unseen != "" {`, `if unseen == "-" {`}},
		tablePkg, "TestRead_NowWaitsForASessionThatDoesNotTrackItsActivity",
	},
	{
		"a sequence that has made no id since it was set is taken for one that was reset",
		[]change{{"sources/table/sample.go", `THEN last_value ELSE last_value - 1 END`, `THEN last_value ELSE 0 END`}},
		tablePkg, "TestRead_SequenceThatStartsPastTheCursorIsReadOn",
	},
	{
		"the default of a view is not looked at",
		[]change{{"sources/table/view.go", `v.relkind = 'v'`, `v.relkind = '-'`}},
		tablePkg, "TestRead_DefaultsOfViewsAndDomainsAreFenced/a_view",
	},
	{
		"the default of a domain is not looked at",
		[]change{{"sources/table/catalog.go", `pg_get_expr(t.typdefaultbin, 0)`, `NULL`}},
		tablePkg, "TestRead_DefaultsOfViewsAndDomainsAreFenced/a_domain",
	},
	{
		"of what a trigger assigns only the first is looked at",
		[]change{{"sources/table/assigned.go", `	for i := range tokens {
		f.look(i)`, `	for i := range tokens {
		if len(f.puts.values) > 0 {
			break
		}
		f.look(i)`}},
		tablePkg, "TestRead_ATriggerThatStampsWithNowIsFencedAsNow",
	},
	{
		"a trigger may change the order of a row that is inserted already",
		[]change{{"sources/table/trigger.go", `OR t.tgtype & 70 = 4)`, `)`}},
		tablePkg, "TestInspect_TriggerThatChangesTheOrderLaterIsNamed/the_order",
	},
	{
		"a row that a trigger returns in the place of NEW is not looked at",
		[]change{{"sources/table/assigned.go", `t.kind == '.' || t.kind == tokenWord && !t.word(unchanged...)`, `t.kind == 0`}},
		tablePkg, "TestAssigned_NamesWhatItCannotRead",
	},
	{
		"what a loop or a procedure puts into a column is not looked at",
		[]change{{"sources/table/assigned.go", `case t.word("for", "foreach"):`, `case t.word("for each"):`},
			{"sources/table/assigned.go", `case f.at(i).word("call", "get"):`, `case f.at(i).word("call get"):`}},
		tablePkg, "TestAssigned_NamesWhatItCannotRead",
	},
	{
		"a comment in a string hides what comes after it",
		[]change{{"sources/table/plpgsql.go", `if text := stringText.FindString(rest); text != "" {`, `if text := stringText.FindString(rest); text == "?" {`},
			{"sources/table/plpgsql.go", "if strings.ContainsRune(`'\"`, rune(rest[0])) {", "if false {"}},
		tablePkg, "TestAssigned_NamesWhatItCannotRead",
	},
	{
		"a trigger that stamps with now() takes the fence of the default",
		[]change{{"sources/table/trigger.go", `	l.stamp = stampAtStart
`, `	l.stamp = stampAfterLock
`}},
		tablePkg, "TestRead_ATriggerThatStampsWithNowIsFencedAsNow",
	},
	{
		"a stamp in the time zone of the session is taken for one in UTC",
		[]change{{"sources/table/default.go", `return from != to && !(from == "text" && to == "timestamptz")`, `return false`}},
		tablePkg, "TestRead_StampsOfTheSessionsTimeZoneAreRefused/a_cast",
	},
	{
		"a trigger may stamp in the time zone of the session",
		[]change{{"sources/table/zone.go", `	if !s.zoned && !unknown {`, `	if unknown || true {`}},
		tablePkg, "TestRead_TriggersThatStampInTheSessionsTimeZoneAreRefused",
	},
	{
		"a subscription of a partition is not seen",
		[]change{{"sources/table/catalog.go", `srrelid IN (SELECT oid FROM tree)`, `srrelid = c.oid`}},
		tablePkg, "TestInspect_RowsThatArriveInAPartitionByReplicationAreNamed",
	},
	{
		"warnings are kept for ever",
		[]change{{"sources/table/source.go", `	s.warned = warned //`, `	maps.Copy(warned, s.warned)
	s.warned = warned //`}, {"sources/table/source.go", `	"fmt"
	"sync"
`, `	"fmt"
	"maps"
	"sync"
`}},
		tablePkg, "TestRead_RemembersTheWarningsOfTheLastInspectionAlone",
	},
}
