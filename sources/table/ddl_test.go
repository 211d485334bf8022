package table

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// altered runs the statements of DDL as psql does, each in a transaction of its own. After that the table has no
// finding, neither for a reader nor for DDL.
func altered(t testing.TB, pool *pgxpool.Pool, c Config) (statements []string, findings []Finding) {
	t.Helper()
	s := bookings(t, pool, c)
	statements, findings, err := s.DDL(t.Context())
	require.NoError(t, err)
	for _, statement := range statements {
		exec(t, pool, statement)
	}
	sound(t, s)
	rows, err := s.InspectRows(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, rows)
	again, left, err := bookings(t, pool, c).DDL(t.Context())
	require.NoError(t, err)
	require.Empty(t, again)
	require.Empty(t, left)
	return statements, findings
}

const heapSQL = `CREATE SCHEMA app; CREATE TABLE app.bookings (id bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), note text);`

func TestDDL_ItsStatementsLeaveNothingToFind(t *testing.T) {
	t.Parallel()
	const (
		stamped = `ALTER TABLE app.bookings ADD COLUMN "created_at" timestamptz NOT NULL DEFAULT now(), ALTER COLUMN "created_at" SET DEFAULT clock_timestamp()`
		clocked = `ALTER TABLE "app"."bookings" ALTER COLUMN "created_at" SET DEFAULT clock_timestamp()`
		indexed = `CREATE INDEX CONCURRENTLY ON "app"."bookings" ("created_at", "id")`
		untied  = `CREATE UNIQUE INDEX CONCURRENTLY ON "app"."bookings" ("created_at", "id")`
	)
	for name, c := range map[string]struct {
		sql  string
		want []string
	}{
		"ready":               {bookingsSQL, nil},
		"ready, partitioned":  {partitionedSQL, nil},
		"now()":               {nowTable, []string{clocked}},
		"no default":          {bookingsSQL + `ALTER TABLE app.bookings ALTER created_at DROP DEFAULT`, []string{clocked}},
		"may be NULL":         {bookingsSQL + `ALTER TABLE app.bookings ALTER created_at DROP NOT NULL, ALTER created_at SET DEFAULT now()`, []string{clocked, `ALTER TABLE "app"."bookings" ALTER COLUMN "created_at" SET NOT NULL`}},
		"session's time zone": {bookingsSQL + `ALTER TABLE app.bookings ALTER created_at SET DEFAULT localtimestamp`, []string{clocked}},
		"no index":            {bookingsSQL + `DROP INDEX app.bookings_order`, []string{indexed}},
		"no key":              {heapSQL, []string{untied}},
		"no key, now()":       {heapSQL + `ALTER TABLE app.bookings ALTER created_at SET DEFAULT now()`, []string{clocked, untied}},
		"of Debezium": {`CREATE SCHEMA app;
			CREATE TABLE app.bookings (id uuid PRIMARY KEY, aggregatetype varchar(255) NOT NULL, aggregateid varchar(255) NOT NULL, type varchar(255) NOT NULL, payload jsonb)`, []string{stamped, indexed}},
		"unlogged":                 {strings.Replace(bookingsSQL, "CREATE TABLE", "CREATE UNLOGGED TABLE", 1), []string{`ALTER TABLE app.bookings SET LOGGED`}},
		"a view with its own time": {bookingsSQL + `CREATE VIEW app.v AS SELECT * FROM app.bookings; ALTER VIEW app.v ALTER created_at SET DEFAULT now()`, []string{`ALTER TABLE app.v ALTER COLUMN "created_at" SET DEFAULT clock_timestamp()`}},
		"a part with its own time": {partitionedSQL + `ALTER TABLE app.bookings_a ALTER created_at SET DEFAULT now()`, []string{clocked}},
		"partitioned, no index": {strings.Replace(partitionedSQL, "PRIMARY KEY (created_at, id, region)", "UNIQUE (id, region, created_at)", 1), []string{
			`CREATE INDEX "bookings_dispatch_order" ON ONLY app.bookings ("created_at", "id")`,
			`CREATE INDEX CONCURRENTLY "bookings_a_dispatch_order" ON app.bookings_a ("created_at", "id")`,
			`CREATE INDEX "bookings_b_dispatch_order" ON ONLY app.bookings_b ("created_at", "id")`,
			`CREATE INDEX CONCURRENTLY "bookings_b1_dispatch_order" ON app.bookings_b1 ("created_at", "id")`,
			`ALTER INDEX "app"."bookings_dispatch_order" ATTACH PARTITION "app"."bookings_a_dispatch_order"`,
			`ALTER INDEX "app"."bookings_dispatch_order" ATTACH PARTITION "app"."bookings_b_dispatch_order"`,
			`ALTER INDEX "app"."bookings_b_dispatch_order" ATTACH PARTITION "app"."bookings_b1_dispatch_order"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			statements, findings := altered(t, database(t, c.sql), Config{})
			require.Equal(t, c.want, statements)
			require.Empty(t, findings)
		})
	}
}

// The rows that are there get one time, without a rewrite of the table, and later ones get their own.
func TestDDL_AddsATimeWithoutWritingTheTableAnew(t *testing.T) {
	t.Parallel()
	pool := database(t, `CREATE SCHEMA app; CREATE TABLE app.bookings (id bigint PRIMARY KEY); INSERT INTO app.bookings SELECT generate_series(1, 100)`)
	before := pgtest.Value[int64](t, pool, "SELECT pg_relation_filenode('app.bookings')::bigint")
	altered(t, pool, Config{})
	require.Equal(t, before, pgtest.Value[int64](t, pool, "SELECT pg_relation_filenode('app.bookings')::bigint"))
	exec(t, pool, "INSERT INTO app.bookings SELECT generate_series(101, 110)")
	require.Equal(t, 11, pgtest.Value[int](t, pool, "SELECT count(DISTINCT created_at) FROM app.bookings"))
	later(t, pool)
	records := readAll(t, bookings(t, pool, Config{}), "", 1000)
	require.Len(t, records, 110)
	require.Equal(t, "1", records[0].ID)
	require.Equal(t, "110", records[109].ID)
}

func TestDDL_AddsColumnsThatAreMissingAndNotesOtherWays(t *testing.T) {
	t.Parallel()
	pool := database(t, `CREATE SCHEMA app; CREATE TABLE app.bookings (booked timestamptz, note text); INSERT INTO app.bookings (note) SELECT generate_series(1, 5)::text`)
	statements, findings := altered(t, pool, Config{})
	require.Equal(t, []string{
		`ALTER TABLE app.bookings ADD COLUMN "id" bigint GENERATED ALWAYS AS IDENTITY`,
		`ALTER TABLE app.bookings ADD COLUMN "created_at" timestamptz NOT NULL DEFAULT now(), ALTER COLUMN "created_at" SET DEFAULT clock_timestamp()`,
		`CREATE UNIQUE INDEX CONCURRENTLY ON "app"."bookings" ("created_at", "id")`,
	}, statements)
	require.Equal(t, []Finding{
		{Note, "the first statements add a column, since table app.bookings has no column id; there are other ways", "name it in source.columns.id: app.bookings has booked, note"},
		{Note, "the first statements add a column, since table app.bookings has no column created_at; there are other ways", "name a timestamptz of app.bookings in source.columns.created_at: booked; or set source.order: id, since a sequence assigns column id"},
	}, findings)
}

// PostgreSQL adds no identity to a table that has others below it.
func TestDDL_AddsIdsToATableWithOthersBelowIt(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"partitions":  `CREATE TABLE app.bookings (at timestamptz) PARTITION BY RANGE (at); CREATE TABLE app.rest PARTITION OF app.bookings DEFAULT`,
		"inheritance": `CREATE TABLE app.bookings (at timestamptz); CREATE TABLE app.child () INHERITS (app.bookings)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t, "CREATE SCHEMA app; "+sql+"; INSERT INTO app.bookings SELECT now() FROM generate_series(1, 3)")
			s := bookings(t, pool, Config{})
			statements, _, err := s.DDL(t.Context())
			require.NoError(t, err)
			require.Equal(t, `ALTER TABLE app.bookings ADD COLUMN "id" bigserial`, statements[0])
			for _, statement := range statements {
				exec(t, pool, statement)
			}
			findings, err := s.Inspect(t.Context())
			require.NoError(t, err)
			for _, f := range findings {
				require.NotEqual(t, Refuse, f.Severity, f)
			}
			later(t, pool)
			require.Equal(t, []string{"1", "2", "3"}, ids(readAll(t, s, "", 10)))
		})
	}
}

// A partition has no columns of its own, so the whole table gets the column.
func TestDDL_OfAPartitionChangesTheWholeTable(t *testing.T) {
	t.Parallel()
	pool := database(t, `CREATE SCHEMA app; CREATE TABLE app.whole (id bigint, region text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
		CREATE TABLE app.bookings PARTITION OF app.whole FOR VALUES IN ('a')`)
	s := bookings(t, pool, Config{})
	statements, _, err := s.DDL(t.Context())
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(statements[0], `ALTER TABLE app.whole ADD COLUMN "created_at"`), statements)
	for _, statement := range statements {
		exec(t, pool, statement)
	}
	sound(t, s)
}

func TestDDL_OfManyPartitionsHasAllOfThem(t *testing.T) {
	t.Parallel()
	pool := database(t, `CREATE SCHEMA app; CREATE TABLE app.bookings (id bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp()) PARTITION BY LIST (id);
		DO $$ BEGIN FOR n IN 1..60 LOOP EXECUTE format('CREATE TABLE app.part_%s PARTITION OF app.bookings FOR VALUES IN (%s)', n, n); END LOOP; END $$`)
	statements, _ := altered(t, pool, Config{})
	require.Len(t, statements, 121)
}

func TestDDL_NamesWhatDDLDoesNotEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, want string }{
		"no table": {`CREATE SCHEMA app`, "table app.bookings does not exist"},
		"a view":   {bookingsSQL + `ALTER TABLE app.bookings RENAME TO rows; CREATE VIEW app.bookings AS SELECT * FROM app.rows`, "app.bookings is a view"},
		"a trigger": {bookingsSQL + `CREATE FUNCTION app.f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.created_at := '2020-01-01'; RETURN NEW; END $$;
			CREATE TRIGGER f BEFORE INSERT ON app.bookings FOR EACH ROW EXECUTE FUNCTION app.f()`, "trigger f of app.bookings sets column created_at"},
		"no time zone": {bookingsSQL + `ALTER TABLE app.bookings ALTER created_at TYPE timestamp, ALTER created_at SET DEFAULT now()`, "is a timestamp without time zone"},
		"json ids":     {bookingsSQL + `ALTER TABLE app.bookings ADD json json NOT NULL, DROP id; ALTER TABLE app.bookings RENAME json TO id`, "is of type json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			statements, findings, err := bookings(t, database(t, c.sql), Config{}).DDL(t.Context())
			require.NoError(t, err)
			require.Empty(t, statements)
			require.Len(t, findings, 1)
			require.Contains(t, findings[0].Problem, c.want)
			require.NotEmpty(t, findings[0].Fix)
		})
	}
}

// What a worker's role lacks is for doctor and grants: the statements are the same whoever asks.
func TestDDL_IsTheSameForEachRole(t *testing.T) {
	t.Parallel()
	pool := database(t, nowTable)
	role := pgtest.Role(t, pool, "reader_", "LOGIN PASSWORD 'reader'")
	exec(t, pool, "GRANT USAGE ON SCHEMA app TO "+role+"; GRANT SELECT ON app.bookings TO "+role)
	as := pgtest.Pool(t, pgtest.As(t, pgtest.URL(t), role, "reader"), pgtest.PoolConfig{})
	statements, findings, err := bookings(t, as, Config{}).DDL(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{`ALTER TABLE "app"."bookings" ALTER COLUMN "created_at" SET DEFAULT clock_timestamp()`}, statements)
	require.Empty(t, findings)
}
