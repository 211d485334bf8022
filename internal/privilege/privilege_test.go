package privilege

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

const objectsSQL = `
CREATE SCHEMA app;
CREATE SCHEMA aux;
CREATE TABLE app.t (id bigserial PRIMARY KEY, a text, b text, "c d" int DEFAULT 5);
CREATE TABLE app.identity (id bigint GENERATED ALWAYS AS IDENTITY, a text);
CREATE TABLE app.u (x bigint, y text);
CREATE TABLE app.tree (id bigint, day date) PARTITION BY RANGE (day);
CREATE TABLE app.leaf PARTITION OF app.tree DEFAULT;
CREATE VIEW app.v AS SELECT x, y FROM app.u;
CREATE SEQUENCE app.numbers;
CREATE FUNCTION aux.double(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT $1 * 2';
CREATE FUNCTION aux.hidden(bigint, text) RETURNS bigint LANGUAGE sql AS 'SELECT $1 * 2';
REVOKE EXECUTE ON FUNCTION aux.hidden FROM PUBLIC;
CREATE DOMAIN aux."My ) Type" AS text;
CREATE FUNCTION aux.odd("char", int[], aux."My ) Type") RETURNS bigint LANGUAGE sql AS 'SELECT 1';
REVOKE EXECUTE ON FUNCTION aux.odd FROM PUBLIC;
CREATE FUNCTION aux.kind("any", VARIADIC "any") RETURNS json LANGUAGE internal IMMUTABLE AS 'json_build_object';
REVOKE EXECUTE ON FUNCTION aux.kind FROM PUBLIC;
CREATE TYPE aux.mood AS ENUM ('good');`

// statements, and what the server checks before it runs them.
var statements = []struct {
	name, sql string
	grants    []string
}{
	{"columns", `SELECT a FROM app.t WHERE b = $1::text`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT SELECT ("a", "b") ON "app"."t" TO r`}},
	{"whole row", `SELECT row_to_json(t.*) FROM app.t`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT SELECT ON "app"."t" TO r`}},
	{"any column", `SELECT count(*) FROM app.u`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT SELECT ON "app"."u" TO r`}},
	{"system column", `SELECT tableoid FROM app.u`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT SELECT ("tableoid") ON "app"."u" TO r`}},
	{"sample, whose arguments stand between", `SELECT x FROM app.u TABLESAMPLE bernoulli (50) REPEATABLE (1)`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT SELECT ("x") ON "app"."u" TO r`}},
	{"alias that looks like a tree", `SELECT ":relid 1 ".x AS ":relid 2 " FROM app.u AS ":relid 1 "`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT SELECT ("x") ON "app"."u" TO r`}},
	{"lock", `SELECT x FROM app.u FOR UPDATE`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT SELECT ("x"), UPDATE ON "app"."u" TO r`}},
	{"insert with a serial", `INSERT INTO app.t (a) VALUES ($1)`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT INSERT ("a") ON "app"."t" TO r`, `GRANT USAGE ON SEQUENCE "app"."t_id_seq" TO r`}},
	{"insert without it", `INSERT INTO app.t (id, a, "c d") VALUES (1, $1, 3)`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT INSERT ("a", "c d", "id") ON "app"."t" TO r`}},
	{"insert with identity", `INSERT INTO app.identity (a) VALUES ($1)`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT INSERT ("a") ON "app"."identity" TO r`}},
	{"insert of defaults", `INSERT INTO app.u DEFAULT VALUES`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT INSERT ON "app"."u" TO r`}},
	{"upsert", `INSERT INTO app.t AS now (id, a) SELECT x, y FROM app.u ON CONFLICT (id) DO UPDATE SET b = excluded.a || now."c d"`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`,
			`GRANT SELECT ("a", "c d", "id"), INSERT ("a", "id"), UPDATE ("b") ON "app"."t" TO r`, `GRANT SELECT ("x", "y") ON "app"."u" TO r`}},
	{"update", `UPDATE app.t SET a = $1, b = DEFAULT WHERE id = $2`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT SELECT ("id"), UPDATE ("a", "b") ON "app"."t" TO r`}},
	{"delete that returns, within", `WITH gone AS (DELETE FROM app.u WHERE x = $1 RETURNING y) SELECT count(y) FROM gone`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT SELECT ("x", "y"), DELETE ON "app"."u" TO r`}},
	{"subqueries", `SELECT (SELECT max(a) FROM app.t) FROM (SELECT x FROM app.u) u WHERE EXISTS (SELECT 1 FROM app.identity i WHERE i.id = u.x)`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`,
			`GRANT SELECT ("id") ON "app"."identity" TO r`, `GRANT SELECT ("a") ON "app"."t" TO r`, `GRANT SELECT ("x") ON "app"."u" TO r`}},
	{"view, not what is behind it", `INSERT INTO app.v (x) SELECT x FROM app.v`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT SELECT ("x"), INSERT ("x") ON "app"."v" TO r`}},
	{"partitioned, not its parts", `INSERT INTO app.tree (id, day) VALUES ($1, now())`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT INSERT ("day", "id") ON "app"."tree" TO r`}},
	{"merge", `MERGE INTO app.t USING app.u ON t.id = u.x WHEN MATCHED THEN UPDATE SET a = u.y WHEN NOT MATCHED THEN INSERT (id) VALUES (u.x)`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`,
			`GRANT SELECT ("id"), INSERT ("id"), UPDATE ("a") ON "app"."t" TO r`, `GRANT SELECT ("x", "y") ON "app"."u" TO r`}},
	{"sequence", `SELECT nextval('app.numbers')`,
		[]string{`GRANT USAGE ON SCHEMA "app" TO r`, `GRANT USAGE ON SEQUENCE "app"."numbers" TO r`}},
	{"functions", `SELECT aux.double($1), aux.hidden($1, 'x')`,
		[]string{`GRANT USAGE ON SCHEMA "aux" TO r`, `GRANT EXECUTE ON FUNCTION "aux"."hidden"(int8, text) TO r`}},
	{"function of odd types", `SELECT aux.odd('x'::"char", '{1}', $1::text::aux."My ) Type")`,
		[]string{`GRANT USAGE ON SCHEMA "aux" TO r`, `GRANT EXECUTE ON FUNCTION "aux"."odd"("pg_catalog"."char", _int4, "aux"."My ) Type") TO r`}},
	{"function of any types", `SELECT aux.kind('a'::text, 1)`,
		[]string{`GRANT USAGE ON SCHEMA "aux" TO r`, `GRANT EXECUTE ON FUNCTION "aux"."kind"("pg_catalog"."any", "pg_catalog"."any") TO r`}},
	{"type", `SELECT $1::text::aux.mood`, []string{`GRANT USAGE ON SCHEMA "aux" TO r`}},
	{"nothing", `SELECT $1::int + 1`, nil},
}

// TestOf_NamesWhatTheServerChecks: with the grants the statement runs, and with
// any one right, or column of it, less it does not.
func TestOf_NamesWhatTheServerChecks(t *testing.T) {
	t.Parallel()
	for _, c := range statements {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn, role := withRole(t, objectsSQL)
			if c.name == "merge" && pgtest.Value[int](t, conn, "SELECT current_setting('server_version_num')::int") < 150000 {
				t.Skip("PostgreSQL 14 has no MERGE")
			}
			needs := of(t, conn, c.sql)
			var grants []string
			for _, g := range grantAll(t, conn, role, needs) {
				grants = append(grants, strings.ReplaceAll(g, pgx.Identifier{role}.Sanitize(), "r"))
			}
			require.Equal(t, c.grants, grants)
			require.NoError(t, runAs(t, conn, role, c.sql))
			require.Empty(t, missingAs(t, conn, role, needs.Privileges))

			for _, p := range single(needs.Privileges) {
				revoke := strings.Replace(strings.Replace(Grant(role, p), "GRANT", "REVOKE", 1), " TO ", " FROM ", 1)
				pgtest.Exec(t, conn, revoke)
				require.ErrorContains(t, runAs(t, conn, role, c.sql), "42501", revoke)
				require.Equal(t, []Privilege{p}, missingAs(t, conn, role, needs.Privileges), revoke)
				grantAll(t, conn, role, needs)
			}
		})
	}
}

// TestOf_KnowsWhatDependenciesDoNot is why the server's tree is read: PostgreSQL records the same dependencies for both
// statements of a pair, and the rights to one of them do not suffice for the other.
func TestOf_KnowsWhatDependenciesDoNot(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string][2]string{
		"the whole row":   {`SELECT x FROM app.u`, `SELECT x FROM app.u WHERE u IS NOT NULL`},
		"what is locked":  {`SELECT x FROM app.u`, `SELECT x FROM app.u FOR UPDATE`},
		"what is written": {`INSERT INTO app.t (id, a) VALUES (1, 'a')`, `UPDATE app.t SET id = 1, a = 'a'`},
		"what is read":    {`UPDATE app.u SET x = 1, y = 'a'`, `UPDATE app.u SET x = 1, y = 'a' WHERE x = 2`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, role := withRole(t, objectsSQL)
			var recorded [2]string
			for i, statement := range pair {
				pgtest.Exec(t, conn, fmt.Sprintf("CREATE FUNCTION app.f%d() RETURNS void LANGUAGE sql BEGIN ATOMIC %s; END", i, statement))
				recorded[i] = pgtest.Value[string](t, conn, fmt.Sprintf(`
					SELECT string_agg(format('%%s.%%s', refobjid::regclass, refobjsubid), ' ' ORDER BY refobjid, refobjsubid)
					FROM pg_depend
					WHERE objid = 'app.f%d'::regproc AND refclassid = 'pg_class'::regclass`, i))
			}
			require.Equal(t, recorded[0], recorded[1])
			grantAll(t, conn, role, of(t, conn, pair[0]))
			require.NoError(t, runAs(t, conn, role, pair[0]))
			require.ErrorContains(t, runAs(t, conn, role, pair[1]), "42501")
		})
	}
}

func grantAll(t testing.TB, conn *pgx.Conn, role string, needs Needs) []string {
	t.Helper()
	var all []string
	for _, on := range ByObject(needs.Privileges) {
		all = append(all, Grant(role, on...))
		pgtest.Exec(t, conn, all[len(all)-1])
	}
	return all
}

// single takes privileges apart, down to one column each.
func single(privileges []Privilege) []Privilege {
	var all []Privilege
	for _, p := range privileges {
		if len(p.Columns) == 0 {
			all = append(all, p)
		}
		for _, column := range p.Columns {
			one := p
			one.Columns = []string{column}
			all = append(all, one)
		}
	}
	return all
}

func TestOf_LeavesNothingAndExecutesNothing(t *testing.T) {
	t.Parallel()
	conn, _ := withRole(t, objectsSQL)
	before := pgtest.Value[int](t, conn, "SELECT count(*) FROM pg_proc")
	of(t, conn, `INSERT INTO app.u (x) SELECT nextval('app.numbers') / 0`)
	require.Equal(t, before, pgtest.Value[int](t, conn, "SELECT count(*) FROM pg_proc"))
	require.Zero(t, pgtest.Value[int](t, conn, "SELECT count(*) FROM app.u"))
	require.False(t, pgtest.Value[bool](t, conn, "SELECT is_called FROM app.numbers"))
}

func TestOf_SaysWhatItCannotLookInto(t *testing.T) {
	t.Parallel()
	conn, _ := withRole(t, objectsSQL+`
		CREATE FUNCTION app.note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER note BEFORE INSERT ON app.u FOR EACH ROW EXECUTE FUNCTION app.note();
		CREATE FUNCTION app.safe() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER safe BEFORE INSERT ON app.t FOR EACH ROW EXECUTE FUNCTION app.safe();
		CREATE PROCEDURE app.work() LANGUAGE sql AS '';`)
	require.Equal(t, []string{`function "aux"."double"(int8)`, `triggers of "app"."u"`},
		of(t, conn, `INSERT INTO app.u (x) VALUES (aux.double($1))`).BlindSpots)
	pgtest.Exec(t, conn, "CREATE FUNCTION aux.\"a\nb\"() RETURNS bigint LANGUAGE sql AS 'SELECT 1'")
	require.Equal(t, []string{`function "aux".U&"a\+00000Ab"()`}, of(t, conn, "SELECT aux.\"a\nb\"()").BlindSpots, "in one line, as in a grant")
	require.Empty(t, of(t, conn, `SELECT x FROM app.u`).BlindSpots, "nothing is inserted")
	require.Empty(t, of(t, conn, `INSERT INTO app.t (a) VALUES ($1)`).BlindSpots, "it runs with its owner's rights")

	for _, utility := range []string{`CALL app.work()`, `LOCK TABLE app.u`, `SET LOCAL work_mem = '1MB'`} {
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		_, err = Of(t.Context(), tx, utility)
		require.ErrorIs(t, err, ErrUtility, utility)
		_, err = tx.Exec(t.Context(), "SELECT 1")
		require.NoError(t, err, "the transaction stays usable")
		require.NoError(t, tx.Rollback(t.Context()))
	}
}

func TestOf_LetsNoSecondCommandThrough(t *testing.T) {
	t.Parallel()
	conn, _ := withRole(t, objectsSQL)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = Of(t.Context(), tx, `SELECT 1; END; DROP TABLE app.u; SELECT 1`)
	require.ErrorContains(t, err, "multiple commands")
	require.Equal(t, 1, pgtest.Value[int](t, tx, "SELECT count(*) FROM pg_tables WHERE schemaname = 'app' AND tablename = 'u'"))
}

func TestParseTree_RefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, tree := range []string{
		`:relid 5 :requiredPerms 2 :checkAsUser 0 :readCols (b 8) `,
		`:relid 5 :requiredPerms 32 :checkAsUser 0 :selectedCols (b) :insertedCols (b) :updatedCols (b)`,
	} {
		_, err := parseTree(tree)
		require.ErrorIs(t, err, errTree)
	}
}

func TestMissing_StopsAtASchemaThatMayNotBeUsed(t *testing.T) {
	t.Parallel()
	conn, role := withRole(t, objectsSQL)
	needs := of(t, conn, `SELECT x FROM app.u`)
	require.Equal(t, needs.Privileges[:1], missingAs(t, conn, role, needs.Privileges))
	require.Equal(t, Schema, needs.Privileges[0].On)
}

func TestMissing_EachColumnIsAsGoodAsTheTable(t *testing.T) {
	t.Parallel()
	conn, role := withRole(t, objectsSQL)
	pgtest.Exec(t, conn, `GRANT USAGE ON SCHEMA app TO `+role+`; GRANT SELECT (x, y) ON app.u TO `+role)
	require.Empty(t, missingAs(t, conn, role, of(t, conn, `SELECT u.* , u FROM app.u`).Privileges))
	require.Empty(t, missingAs(t, conn, role, of(t, conn, `SELECT count(*) FROM app.u`).Privileges))
	pgtest.Exec(t, conn, `REVOKE SELECT (x) ON app.u FROM `+role)
	require.Len(t, missingAs(t, conn, role, of(t, conn, `SELECT u FROM app.u`).Privileges), 1)
	require.Empty(t, missingAs(t, conn, role, of(t, conn, `SELECT count(*) FROM app.u`).Privileges), "any column will do")
}

func TestMerge(t *testing.T) {
	t.Parallel()
	p := func(right string, columns ...string) Privilege {
		return Privilege{On: Table, Name: "t", Right: right, Columns: columns}
	}
	anyColumn := Privilege{On: Table, Name: "t", Right: "SELECT", Columns: []string{}}
	require.Equal(t, []Privilege{p("SELECT", "a", "b"), p("UPDATE", "c")}, Merge([]Privilege{p("UPDATE", "c"), p("SELECT", "b", "a"), p("SELECT", "b")}))
	require.Equal(t, []Privilege{p("SELECT")}, Merge([]Privilege{p("SELECT", "b"), p("SELECT"), anyColumn}))
	require.Equal(t, []Privilege{p("SELECT", "b")}, Merge([]Privilege{anyColumn, p("SELECT", "b")}))
	require.Equal(t, []Privilege{anyColumn}, Merge([]Privilege{anyColumn, anyColumn}))
}

// withRole is a session of a superuser, and a role with no rights.
func withRole(t testing.TB, sql string) (*pgx.Conn, string) {
	t.Helper()
	conn := pgtest.Connect(t, pgtest.URL(t))
	pgtest.Exec(t, conn, sql)
	return conn, pgtest.Role(t, conn, "od_", "")
}

func of(t testing.TB, conn *pgx.Conn, statement string) Needs {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	needs, err := Of(t.Context(), tx, statement)
	require.NoError(t, err)
	return needs
}

// runAs executes a statement under a role, with NULLs, and undoes it.
func runAs(t testing.TB, conn *pgx.Conn, role, statement string) error {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	pgtest.Exec(t, tx, "SET LOCAL ROLE "+role)
	prepared, err := conn.PgConn().Prepare(t.Context(), "", statement, nil)
	if err != nil {
		return err
	}
	arguments := make([][]byte, len(prepared.ParamOIDs))
	return tx.Conn().PgConn().ExecParams(t.Context(), statement, arguments, nil, nil, nil).Read().Err
}

func missingAs(t testing.TB, conn *pgx.Conn, role string, privileges []Privilege) []Privilege {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	pgtest.Exec(t, tx, "SET LOCAL ROLE "+role)
	missing, err := Missing(t.Context(), tx, privileges)
	require.NoError(t, err)
	return missing
}

// A server that is not PostgreSQL answers needsSQL: an operator runs what is made of it.
func TestObject_IsMadeOfNamesAlone(t *testing.T) {
	t.Parallel()
	const hostile = `int) \! id #`
	long := strings.Repeat("a", 256) // a reader who cuts it would cut its quote
	got, err := object{Kind: "FUNCTION", Right: "EXECUTE", Schema: hostile, Name: hostile, Arguments: []string{"pg_catalog", hostile, hostile, "int4"}}.sql()
	require.NoError(t, err)
	const quoted = `"` + hostile + `"`
	require.Equal(t, quoted+"."+quoted+`("pg_catalog".`+quoted+", "+quoted+`."int4")`, got)
	for _, o := range []object{
		{Kind: hostile, Right: "EXECUTE", Schema: "a"},
		{Kind: "FUNCTION", Right: hostile, Schema: "a"},
		{Kind: "", Right: hostile, Schema: "a"},
		{Kind: "FUNCTION", Right: "EXECUTE", Schema: "a", Arguments: []string{"a"}},
		{Kind: "TABLE", Right: "SELECT", Schema: "a", Name: long},
		{Kind: "SCHEMA", Right: "USAGE", Schema: long},
		{Kind: "", Right: "function", Schema: "a", Name: "f", Arguments: []string{"a", long}},
		{Kind: "TABLE", Right: "SELECT", Schema: "a", Name: "t", Columns: []string{"a", long}},
	} {
		_, err := o.sql()
		require.Error(t, err, o)
	}
}

// The server also answers which columns are missing.
func TestLacks_HasNoColumnThatWasNotAskedAbout(t *testing.T) {
	t.Parallel()
	p := Privilege{On: Table, Name: `"t"`, Right: "SELECT", Columns: []string{"a", "b"}}
	got, err := p.lacks([]string{"b"})
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, got.Columns)
	_, err = p.lacks([]string{"b", "c"})
	require.Error(t, err)
}

// A name is masked by itself, so the command keeps its quotes.
func TestMasked_KeepsTheQuotesOfACommand(t *testing.T) {
	t.Parallel()
	set := secret.New(`sword"fish`, "bookings-2026")
	p := Privilege{On: Function, Name: `"a""sword""fish"."bookings"("pg_catalog"."sword""fish", int4)`, Right: "EXECUTE"}
	require.Equal(t, `GRANT EXECUTE ON FUNCTION "a""[secret]"."bookings"("pg_catalog"."[secret]", int4) TO "r"`, Grant("r", p.Masked(set.Replace)))
	table := Privilege{On: Table, Name: `"t"`, Right: "SELECT", Columns: []string{`sword"fish`, "b"}}
	require.Equal(t, `GRANT SELECT ("[secret]", "b") ON "t" TO "r"`, Grant("r", table.Masked(set.Replace)))
	require.Equal(t, []string{`sword"fish`, "b"}, table.Columns, "the privilege itself is as it was")
}

// The name of each type that PostgreSQL has, as a grant spells it, is that type to the server.
func TestTypeName_MeansTheType(t *testing.T) {
	t.Parallel()
	conn := pgtest.Connect(t, pgtest.URL(t))
	rows, err := conn.Query(t.Context(), "SELECT oid, typname::text FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace ORDER BY oid LIMIT 10000")
	require.NoError(t, err)
	types, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		OID  uint32
		Name string
	}])
	require.NoError(t, err)
	require.Greater(t, len(types), 100)
	for _, want := range types {
		var got uint32
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT $1::text::regtype::oid", typeName("pg_catalog", want.Name)).Scan(&got), want.Name)
		require.Equal(t, want.OID, got, want.Name)
	}
}
