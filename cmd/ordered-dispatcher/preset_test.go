package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// A preset is all that the table which the program prints needs, and Debezium's table once it has a time.
func TestPreset_NamesTheColumnsOfAKnownTable(t *testing.T) {
	t.Parallel()
	for preset, rows := range map[string]string{
		"outbox": `INSERT INTO public.outbox (aggregate_type, aggregate_id, key, type, payload, headers)
			VALUES ('booking', '4711', 'k', 'booking.created', '{"seats": 2}', '{"tenant": "x"}')`,
		"debezium": `DROP TABLE public.outbox;
			CREATE TABLE public.outbox (id uuid PRIMARY KEY, aggregatetype text NOT NULL, aggregateid text NOT NULL, type text NOT NULL, payload jsonb);
			` + strings.Replace(fromDebezium(t), " CONCURRENTLY", "", 1) + `
			INSERT INTO public.outbox (id, aggregatetype, aggregateid, type, payload)
			VALUES ('00000000-0000-0000-0000-000000000001', 'booking', 'k', 'booking.created', '{"seats": 2}')`,
	} {
		t.Run(preset, func(t *testing.T) {
			t.Parallel()
			address, pool := database(t, 0)
			pgtest.Exec(t, pool, must(t, address, "migrate", "outbox"))
			pgtest.Exec(t, pool, rows)
			config := file(t, "processes:\n  a: {source: {table: public.outbox, preset: "+preset+"}, sink: {stdout: {}}, start: beginning}\n")
			require.Contains(t, must(t, address, "doctor", "-c", config), "0 errors, 0 warnings")
			out := must(t, address, "run", "--drain", "-c", config)
			require.Contains(t, out, `"key":"k","type":"booking.created"`)
			require.Contains(t, out, `"payload":{"seats":2}`)
			require.Equal(t, preset == "outbox", strings.Contains(out, `"headers":{"tenant":"x"}`), out)
		})
	}
}

// fromDebezium returns the SQL of docs/producers.md that makes Debezium's table a source.
func fromDebezium(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "producers.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "## From Debezium\n")
	require.True(t, found)
	_, section, found = strings.Cut(section, "```sql\n")
	require.True(t, found)
	sql, _, found := strings.Cut(section, "\n```\n")
	require.True(t, found)
	return sql
}

// The document's SQL writes no row of the table that there is, and the program finds no fault afterwards.
func TestPreset_TheSQLForDebeziumWritesNoRowAnewAndLeavesNothingToFind(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, `CREATE TABLE public.outbox (id uuid PRIMARY KEY, aggregatetype varchar(255) NOT NULL, aggregateid varchar(255) NOT NULL, type varchar(255) NOT NULL, payload jsonb);
		INSERT INTO public.outbox SELECT gen_random_uuid(), 'booking', 'old', 'booking.created', '{}' FROM generate_series(1, 1000)`)
	const where = "SELECT pg_relation_filepath('public.outbox') || ' ' || count(*) || ' ' || max(xmin::text) FROM public.outbox"
	before := pgtest.Value[string](t, pool, where)
	for statement := range strings.SplitSeq(strings.TrimSuffix(fromDebezium(t), ";"), ";\n") {
		pgtest.Exec(t, pool, statement)
	}
	require.Equal(t, before, pgtest.Value[string](t, pool, where), "no row is written anew")

	config := file(t, "processes:\n  a: {source: {table: public.outbox, preset: debezium}, sink: {stdout: {}}, start: end}\n")
	must(t, address, "check", "-c", config)
	require.Contains(t, must(t, address, "doctor", "-c", config), "0 errors, 0 warnings")
	require.Empty(t, must(t, address, "run", "--drain", "-c", config), "it begins after the old rows")
	pgtest.Exec(t, pool, `INSERT INTO public.outbox VALUES ('00000000-0000-0000-0000-000000000001', 'booking', 'new', 'booking.created', '{}')`)
	out := must(t, address, "run", "--drain", "-c", config)
	require.Equal(t, 1, strings.Count(out, "\n"), out)
	require.Contains(t, out, `"key":"new","type":"booking.created"`)
	require.Contains(t, must(t, address, "doctor", "-c", config), "0 errors, 0 warnings")
}

// The program reads the name of an outbox as it reads source.table.
func TestMigrateOutbox_ReadsNamesAsTheSourceDoes(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	for name, want := range map[string]string{
		"public.MyBox":        `"public"."mybox"`,
		`public."My.""Table"`: `"public"."My.""Table"`,
	} {
		sql := must(t, address, "migrate", "outbox", "--table="+name)
		require.Contains(t, sql, "CREATE TABLE IF NOT EXISTS "+want+" (")
		pgtest.Exec(t, pool, sql)
		config := file(t, "processes:\n  a: {source: {table: '"+name+"', preset: outbox}, sink: {stdout: {}}, start: beginning}\n")
		require.Contains(t, must(t, address, "doctor", "-c", config), "0 errors, 0 warnings", name)
	}
	for name, want := range map[string]string{
		"":                                  "--table: the name is empty: write a schema and a name, such as public.outbox",
		"public.":                           "a part is empty",
		"a.b.c":                             "name a.b.c has more than a schema and a name",
		"public.my-box":                     "'-' needs double quotes",
		"public." + strings.Repeat("x", 64): "has 64 bytes, and PostgreSQL keeps only 63",
	} {
		code, _, stderr := do(t, address, "migrate", "outbox", "--table="+name)
		require.Equal(t, 2, code, name)
		require.Contains(t, stderr, want)
	}
}

func TestPreset_AColumnThatIsNamedComesBefore(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, must(t, address, "migrate", "outbox", "--table=public.events", "--raw"))
	pgtest.Exec(t, pool, `INSERT INTO public.events (aggregate_id, key, type, payload) VALUES ('4711', 'k', 'booking.created', '\x7b7d')`)
	config := file(t, "processes:\n  a: {source: {table: public.events, preset: outbox, columns: {key: aggregate_id}}, sink: {stdout: {}}, start: beginning}\n")
	require.Contains(t, must(t, address, "run", "--drain", "-c", config), `"key":"4711","type":"booking.created"`)
}
