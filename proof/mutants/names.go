package main

// nameMutants let a name mean what another role made it mean.
var nameMutants = []mutant{
	{
		"a name without a schema is read where another role may put its table first",
		[]change{{"sources/table/path.go", "findings, err = s.uncertain(ctx, tx, cat)", "_, err = s.uncertain(ctx, tx, cat)"}},
		tablePkg, "TestInspect_ANameWithoutSchemaIsRefusedWhereAnotherCouldTakeItsPlace",
	},
	{
		"a schema that a role may make is not there",
		[]change{{"sources/table/path.go", "ELSE has_database_privilege(r.oid, d.oid, 'CREATE') END", "ELSE false END"}},
		tablePkg, "TestInspect_ANameWithoutSchemaIsRefusedWhereAnotherCouldTakeItsPlace",
	},
	{
		"a restart accepts another table under the same name",
		[]change{{"command/internal/daemon/build.go", "return c.meant(ctx, pool, p) }", `return "", nil }`}},
		daemonPkg, "TestRun_ANameThatMeansAnotherTableAfterARestartIsRefused",
	},
	{
		"a second start accepts what the first one refused",
		[]change{{"command/internal/daemon/meant.go", "return c.meant(ctx, pool, p)\n}", "return \"early.bookings\", nil\n}"}},
		daemonPkg, "TestRun_ANameThatMeansAnotherTableAfterARestartIsRefused",
	},
	{
		"the history of a process ends at its last rename",
		[]change{{"cursor/history.go", "e.action = 'rename' AND", "false AND"}},
		daemonPkg, "TestRun_ANameThatMeansAnotherTableAfterARestartIsRefused",
	},
	{
		"a superuser reads the table of another, and doctor is silent",
		[]change{{"sources/table/owner.go", `if e.cat.super && e.cat.owner != "" {`, `if false {`}},
		tablePkg, "TestInspect_WarnsOfASuperuserWhoReadsTheTableOfAnother",
	},
	{
		"grants keeps quiet about what operators can read",
		[]change{{"command/internal/daemon/grants.go", `return p.Source.Where != ""`, "return false"}},
		daemonPkg, "TestGrants_SayThatOperatorsReadTheColumnsOfWhere",
	},
	{
		"a name in a proposed command ends its line",
		[]change{{"internal/visible/sql.go", "return escaped(quoted)", "return quoted"}},
		daemonPkg, "TestDoctor_SQLOfHostileNamesMeansThemInPsql",
	},
	{
		"a name in a problem ends its line",
		[]change{{"sources/table/finding.go", "visible.Inline(fmt.Sprintf(problem, args...))", "visible.Indented(fmt.Sprintf(problem, args...))"}},
		daemonPkg, "TestDoctor_SQLOfHostileNamesMeansThemInPsql",
	},
	{
		"the name of a process may look like a flag",
		[]change{{"command/internal/daemon/parse.go", "case !begins(name):", "case false:"}},
		commandPkg, "TestProcessRename_ANameLikeAFlagIsLeftBehind",
	},
	{
		"a stranger's trigger on a cursor table is passed over in silence",
		[]change{{"cursor/doctor_trigger.go", "OR NOT trusted.yes)", "AND NOT trusted.yes)"}},
		cursorPkg, "TestDoctor_NamesCodeOfOthersAtTheCursorTables",
	},
	{
		"a session of any role is a worker",
		[]change{{"command/internal/daemon/presence.go", "AND a.usename::pg_catalog.text OPERATOR(pg_catalog.=) e.db_user", "AND a.usename IS NOT NULL"}},
		daemonPkg, "TestStatus_ASessionOfAnotherRoleIsNoWorker",
	},
	{
		"a worker in a new role announces nothing",
		[]change{{"command/internal/daemon/presence.go", "AND db_user OPERATOR(pg_catalog.=) session_user::pg_catalog.text", ""}},
		daemonPkg, "TestStatus_ASessionOfAnotherRoleIsNoWorker",
	},
	{
		"retention removes what a name meant",
		[]change{{"migrations/00003_promises.sql", "'renamed', 'forget', 'configure')) EXECUTE", "'renamed', 'forget')) EXECUTE"}},
		daemonPkg, "TestRun_ANameThatMeansAnotherTableAfterARestartIsRefused",
	},
}
