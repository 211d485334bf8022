package main

// readingMutants take away what keeps a page's rows from being lost or stuck.
var readingMutants = []mutant{
	{
		"a page may hold a position that does not grow",
		[]change{{"processor/page.go", `if r.Position <= after {`, `if r.Position < "" {`}},
		processorPkg, "TestRead_APositionThatDoesNotGrowIsNamed",
	},
	{
		"a record is sent again and again while a trigger of others keeps the cursor from moving",
		[]change{{"processor/deliver.go", `		return s.kept(err)
`, `		s.owed = nil
		return s.kept(err)
`}},
		processorPkg, "TestAdvance_ThatIsKeptFromTheRowSendsNothingAgain",
	},
	{
		"rows that are passed over take a number",
		[]change{{"processor/page.go", `Advance(context.WithoutCancel(s.run), to, 0)`, `Advance(context.WithoutCancel(s.run), to, 1)`}},
		processorPkg, "TestPass_TheCursorMovesOverWhatTheSourceLeavesOut",
	},
	{
		"a receiver cannot tell rows that were passed over from missing ones",
		[]change{{"processor/page.go", `if position := lease.Position(); b.to != position ||`, `if position := lease.Position(); true ||`}},
		processorPkg, "TestPass_TheCursorMovesOverWhatTheSourceLeavesOut",
	},
	{
		"a record that cannot be read goes to the sink",
		[]change{{"processor/deliver.go", `if fault := ds[0].Fault; fault != nil {`, `if fault := ds[0].Fault; false {`}},
		processorPkg, "TestFault_ARecordThatCannotBeReadHaltsAtItsPlace",
	},
	{
		"an index with other columns is proof that positions differ",
		[]change{{"sources/table/index.go", `outside := func(c string) bool { return !slices.Contains(position, c) }`,
			`outside := func(c string) bool { return !slices.Contains(slices.Concat(position, e.cat.partitionKeys), c) }`}},
		tablePkg, "TestRead_TwoRowsOfOnePositionAreNamed",
	},
	{
		"a page ends between two rows of one position",
		[]change{{"sources/table/read.go", `		scan++ // the last one`, `		scan += 0 // the last one`},
			{"sources/table/passed.go", `last := r.seen == r.scan-1`, `last := false`}},
		tablePkg, "TestRead_TwoRowsOfOnePositionAreNamed",
	},
	{
		"a record that is too large is fetched",
		[]change{{"sources/table/large.go", `frontend.SetMaxBodyLen(min(before, bytes))`, `frontend.SetMaxBodyLen(max(before, bytes))`}},
		tablePkg, "TestRead_ARecordThatIsTooLargeTakesNoMemory",
	},
	{
		"a session that is ended at a first row makes the row too large",
		[]change{{"sources/table/read.go", `l.detail == whole && conn.Conn().IsClosed() && ctx.Err() == nil && unexplained(err))`, `conn.Conn().IsClosed() && ctx.Err() == nil)`}},
		tablePkg, "TestRead_AConnectionThatEndsMakesNoRowTooLarge",
	},
	{
		"a connection that is cut at a row that is weighed makes it too large",
		[]change{{"sources/table/read.go", `l.detail == whole && conn.Conn().IsClosed()`, `conn.Conn().IsClosed()`}},
		tablePkg, "TestRead_AConnectionThatIsCutWithinARowMakesItNotTooLarge",
	},
	{
		"a name of ours is in the way of a condition",
		[]change{{"sources/table/large.go", `sizeColumn = "ordered_dispatcher_size"`, `sizeColumn = "size"`}},
		tablePkg, "TestRead_AConditionSeesNoNamesOfOurs",
	},
	{
		"a table below the source may allow NULL",
		[]change{{"sources/table/inspect.go", `if e.cat.columns[n.Column].NotNull {`, `if false {`}},
		tablePkg, "TestInspect_NullableColumnsOfTablesBelowAreRefused",
	},
	{
		"text ids may be converted into another order",
		[]change{{"sources/table/inspect.go", `if slices.Contains([]string{"UTF8", "LATIN1", "SQL_ASCII"}, e.cat.server) {`, `if e.cat.server != "" {`}},
		tablePkg, "TestInspect_WhatIsNotUTF8OrSortsOtherwiseInItIsRefused",
	},
	{
		"records are read in any encoding",
		[]change{{"sources/table/inspect.go", `if client == "UTF8" ||`, `if client != "" ||`}},
		tablePkg, "TestInspect_WhatIsNotUTF8OrSortsOtherwiseInItIsRefused",
	},
	{
		"a role's client_encoding decides what receivers get",
		[]change{{"command/internal/daemon/pool.go", `c.RuntimeParams["client_encoding"] = "UTF8"`, `_ = c`}},
		daemonPkg, "TestDrain_ARoleOfAnotherEncodingDeliversUTF8",
	},
	{
		"the time of a row of the far future overflows",
		[]change{{"sources/table/row.go", `case since2000 < math.MaxInt64-epoch2000:`, `default:`}},
		tablePkg, "TestRead_RowOfTheFutureNeitherBlocksNorPullsTheCursor",
	},
	{
		"a record that is too large has no fault",
		[]change{{"sources/table/large.go", `case row.weight > int64(r.maxRecord):`, `case false:`}},
		tablePkg, "TestRead_ARecordThatIsTooLargeIsNotFetched",
	},
	{
		"headers that are no object are taken for none",
		[]change{{"sources/table/reading.go", `record.Headers, record.Fault = parseHeaders(row.headers)`, `record.Headers, _ = parseHeaders(row.headers)`}},
		tablePkg, "TestRead_HeadersAreAJSONObjectOfStrings",
	},
	{
		"key, type and id do not count against the bound of a read",
		[]change{{"sources/table/row.go", `return len(r.id) + len(r.key) + len(r.typ) + len(r.headers) + len(r.payload)`, `return len(r.headers) + len(r.payload)`}},
		tablePkg, "TestRead_BytesOfKeyTypeAndIDCountAgainstMaxBytes",
	},
	{
		"a page that is full passes over rows of the next record's position",
		[]change{{"sources/table/reading.go", `			r.passed = r.tie.passed
`, ``}},
		tablePkg, "TestRead_TiedRowsAndRareConditions",
	},
	{
		"rows at the fence are passed over",
		[]change{{"sources/table/reading.go", `	r.held = true
	if !row.taken {
		return
	}`, `	if !row.taken {
		r.pass(row)
		return
	}
	r.held = true`}},
		tablePkg, "TestRead_WhatMayStillBePrecededIsNotPassedOver",
	},
	{
		"a source forgets what it has looked at in vain",
		[]change{{"sources/table/passed.go", `	s.to = max(s.to, to)
`, `	_ = to
`}},
		tablePkg, "TestRead_IdleCostIsFlatWhateverTheCondition",
	},
	{
		"what was looked at in vain holds for earlier positions too",
		[]change{{"sources/table/passed.go", `	case after < s.from || after > s.to:`, `	case after > s.to:`}},
		tablePkg, "TestRead_AfterASeekBackEverythingIsLookedAtAgain",
	},
}
