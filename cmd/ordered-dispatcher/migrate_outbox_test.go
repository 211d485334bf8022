package main_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// outboxConfig is a process that reads public.outbox with a preset.
func outboxConfig(t testing.TB, preset string) string {
	t.Helper()
	return file(t, "processes:\n  a: {source: {table: public.outbox, preset: "+preset+"}, sink: {stdout: {}}, start: beginning}\n")
}

func TestMigrateOutbox_AppliesWhatItPrints(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"plain": nil, "raw": {"--raw"}, "partitioned": {"--partitioned"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, pool := database(t, 0)
			const columns = `SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, NULL), attnotnull, attidentity, pg_get_expr(adbin, adrelid)), ', ' ORDER BY attnum)
				FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid = 'public.outbox'::regclass AND attnum > 0`
			pgtest.Exec(t, pool, must(t, address, append([]string{"migrate", "outbox"}, args...)...))
			printed := text(t, pool, columns)
			pgtest.Exec(t, pool, "DROP TABLE public.outbox")

			apply := append([]string{"migrate", "outbox", "--apply"}, args...)
			require.Contains(t, must(t, address, apply...), "public.outbox made\n")
			require.Equal(t, printed, text(t, pool, columns))
			require.Contains(t, must(t, address, apply...), "public.outbox is there already\n")
			payload := "'1'"
			if name == "raw" {
				payload = `'\x31'`
			}
			pgtest.Exec(t, pool, "INSERT INTO public.outbox (type, payload) VALUES ('a', "+payload+")")
			config := outboxConfig(t, "outbox")
			require.Contains(t, must(t, address, "doctor", "-c", config), "0 errors, 0 warnings")
			require.Contains(t, must(t, address, "run", "--drain", "-c", config), `"type":"a"`)
		})
	}
}

func TestMigrateOutbox_RefusesAnotherTable(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, "CREATE TABLE public.outbox (id bigint)")
	code, _, stderr := do(t, address, "migrate", "outbox", "--apply")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "there is a table of that name without created_at timestamp with time zone")
	for _, table := range []string{"outbox", "a.b.c", ".outbox", "public."} {
		code, _, stderr = do(t, address, "migrate", "outbox", "--apply", "--table", table)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "write a schema and a name")
	}
	code, _, stderr = do(t, "", "migrate", "outbox", "--apply")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "no database is named")
	code, _, stderr = do(t, "postgres://nobody@127.0.0.1:1/none", "migrate", "outbox", "--apply")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "start the server, or correct host and port")
}

// An INSERT on a day without a partition fails with PostgreSQL's message. Once the partition is there, the row is
// written and delivered. No record is lost.
func TestMigratePartitions_MakesRoomForWhatFailedBefore(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, must(t, address, "migrate", "outbox", "--partitioned"))
	config := outboxConfig(t, "outbox")
	require.Empty(t, must(t, address, "run", "--drain", "-c", config))
	const insert = "INSERT INTO public.outbox (type, payload) VALUES ('a', '1')"
	_, err := pool.Exec(t.Context(), insert)
	require.ErrorContains(t, err, `no partition of relation "outbox" found for row (SQLSTATE 23514)`)

	out := must(t, address, "migrate", "partitions", "--ahead", "2")
	require.Equal(t, 3, strings.Count(out, `"public"."outbox_2`), out)
	require.Equal(t, 3, strings.Count(out, `" made`), out)
	pgtest.Exec(t, pool, insert)
	require.Contains(t, must(t, address, "run", "--drain", "-c", config), `"type":"a"`)
	require.Contains(t, must(t, address, "doctor", "-c", config), "0 errors, 0 warnings")
	require.Contains(t, must(t, address, "partitions", "-c", config), "public.outbox_2")

	code, _, stderr := do(t, address, "migrate", "partitions", "--ahead", "0")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "--ahead must be between 1 and 366, got 0")
	code, _, stderr = do(t, address, "migrate", "partitions", "--table", "public.bookings")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "not partitioned by a range of created_at: migrate outbox --partitioned makes such a table")
	code, _, stderr = do(t, address, "migrate", "partitions", "--table", "public.outbx")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "there is no such table")
	require.NotContains(t, stderr, "--partitioned")
}

func TestMigrateFollow_ItsSQLMakesATableThatDoctorFindsReady(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, `CREATE TABLE public.outbox (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), aggregatetype text NOT NULL, aggregateid text NOT NULL, type text NOT NULL, payload jsonb)`)
	config := outboxConfig(t, "debezium")
	code, _, _ := do(t, address, "doctor", "-c", config)
	require.Equal(t, 1, code)
	for statement := range strings.Lines(must(t, address, "migrate", "follow", "--table", "public.outbox")) {
		pgtest.Exec(t, pool, statement)
	}
	pgtest.Exec(t, pool, `INSERT INTO public.outbox (aggregatetype, aggregateid, type, payload) VALUES ('booking', 'k', 'booking.created', '{}')`)
	require.Contains(t, must(t, address, "doctor", "-c", config), "0 errors, 0 warnings")
	require.Contains(t, must(t, address, "run", "--drain", "-c", config), `"type":"booking.created"`)
	require.Equal(t, "-- public.outbox is ready\n", must(t, address, "migrate", "follow", "--table", "public.outbox"))

	pgtest.Exec(t, pool, "CREATE VIEW public.v AS SELECT * FROM public.outbox")
	code, stdout, stderr := do(t, address, "migrate", "follow", "--table", "public.v")
	require.Equal(t, 1, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "public.v: error: public.v is a view: its inserters hold no lock that a fence could see\n    fix: name the table behind it in source.table\n")
	require.Contains(t, stderr, "migrate follow found something: 1 error")
	require.NotContains(t, stderr, "doctor")
}

// Where a table has ids of another name, no column is added: init takes these, too.
func TestMigrateFollow_TakesTheIdsThatInitTakes(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, `CREATE TABLE public.visits (visit_id uuid NOT NULL DEFAULT gen_random_uuid(), created_at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (created_at, visit_id)) PARTITION BY RANGE (created_at);
		CREATE TABLE public.visits_rest PARTITION OF public.visits DEFAULT`)
	out := must(t, address, "migrate", "follow", "--table", "public.visits")
	require.Equal(t, "-- The ids are those of visit_id: name it in source.columns.id. With --id, migrate follow takes another column.\n-- public.visits is ready\n", out)
	code, stdout, _ := do(t, address, "migrate", "follow", "--table", "public.visits", "--id", "number")
	require.Equal(t, 0, code, "only a note")
	require.Contains(t, stdout, `ADD COLUMN "number" bigserial;`)
}
