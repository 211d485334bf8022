package table

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// fixed finds a problem, executes its fix as it is written, and finds the
// problem gone.
func fixed(t testing.TB, admin pgtest.Session, s *Source, problem string) {
	t.Helper()
	f := found(t, s, problem)
	for statement := range strings.SplitSeq(f.Fix, ";\n") { // as psql does: each in a transaction of its own
		exec(t, admin, statement)
	}
	findings, err := s.Inspect(t.Context())
	require.NoError(t, err)
	for _, f := range findings {
		require.NotContains(t, f.Problem, problem, "after %s", f.Fix)
	}
	s.layout = nil
}

// found returns the finding of a problem; one that refuses is also what Read says.
func found(t testing.TB, s *Source, problem string) Finding {
	t.Helper()
	findings, err := s.Inspect(t.Context())
	require.NoError(t, err)
	for _, f := range findings {
		if !strings.Contains(f.Problem, problem) {
			continue
		}
		if f.Severity == Refuse {
			s.layout = nil
			_, err := s.Read(t.Context(), "", 1)
			require.ErrorContains(t, err, f.Problem+"; fix: "+f.Fix)
		}
		return f
	}
	require.FailNow(t, "not found: "+problem, "%v", findings)
	return Finding{}
}

// sound finds nothing.
func sound(t testing.TB, s *Source) {
	t.Helper()
	findings, err := s.Inspect(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings)
}

func TestInspect_FindsNothingWrongWithAGoodTable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql    string
		config Config
	}{
		"created_at":            {bookingsSQL, Config{}},
		"id":                    {bookingsSQL, Config{Order: ID}},
		"id, created_at read":   {bookingsSQL, Config{Order: ID, Columns: Columns{CreatedAt: "created_at"}}},
		"partitioned":           {partitionedSQL, Config{}},
		"no partition yet":      {partitionedSQL + `DROP TABLE app.bookings_a, app.bookings_b`, Config{}},
		"serial":                {`CREATE SCHEMA app; CREATE TABLE app.bookings (id bigserial PRIMARY KEY)`, Config{Order: ID}},
		"shared sequence":       {`CREATE SCHEMA app; CREATE SEQUENCE app.s; CREATE TABLE app.bookings (id int PRIMARY KEY DEFAULT nextval('app.s'))`, Config{Order: ID}},
		"descending index":      {bookingsSQL + `DROP INDEX app.bookings_order; CREATE INDEX ON app.bookings (created_at DESC, id DESC)`, Config{}},
		"wider index":           {bookingsSQL + `DROP INDEX app.bookings_order; CREATE INDEX ON app.bookings (created_at, id, note)`, Config{}},
		"partial index":         {bookingsSQL + `DROP INDEX app.bookings_order; CREATE INDEX ON app.bookings (created_at, id) WHERE note = 'a'`, Config{Where: "note = 'a' AND id > 3"}},
		"domain":                {bookingsSQL + `CREATE DOMAIN app.moment AS timestamptz NOT NULL; ALTER TABLE app.bookings ALTER created_at TYPE app.moment`, Config{}},
		"owner's row security":  {bookingsSQL + `ALTER TABLE app.bookings ENABLE ROW LEVEL SECURITY`, Config{}},
		"index with an INCLUDE": {bookingsSQL + `DROP INDEX app.bookings_order; CREATE UNIQUE INDEX ON app.bookings (created_at, id) INCLUDE (note)`, Config{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t, c.sql)
			sound(t, bookings(t, pool, c.config))
		})
	}
}

func TestInspect_MissingTableNamesWhatWasPerhapsMeant(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`CREATE TABLE app."Orders" (); CREATE SCHEMA shop; CREATE TABLE shop.bookings (); CREATE TABLE shop."größe" ()`)
	for table, fix := range map[string]string{
		"app.payments":   "create it, or name another in source.table",
		"bookings":       "write source.table as app.bookings or shop.bookings",
		"nowhere.orders": `write source.table as app."Orders", with the double quotes`,
		"app.Orders":     `write source.table as app."Orders", with the double quotes`,
		"GRößE":          `write source.table as shop."größe", with the double quotes`,
	} {
		f := found(t, bookings(t, pool, Config{Table: table}), "table "+table+" does not exist")
		require.Equal(t, Finding{Refuse, "table " + table + " does not exist", fix}, f)
	}
}

func TestInspect_MissingColumnListsThoseThereAre(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL)
	for role, columns := range map[string]Columns{
		"id":         {ID: "nope"},
		"created_at": {CreatedAt: "nope"},
		"key":        {Key: "nope"},
		"type":       {Type: "nope"},
		"headers":    {Headers: "nope"},
		"payload":    {Payload: "nope"},
	} {
		f := found(t, bookings(t, pool, Config{Columns: columns}), "table app.bookings has no column nope")
		if role == "created_at" {
			require.Equal(t, "name a timestamptz of app.bookings in source.columns.created_at: created_at; or set source.order: id, since a sequence assigns column id", f.Fix)
			continue
		}
		require.Equal(t, "name it in source.columns."+role+": app.bookings has created_at, id, note", f.Fix)
	}
	alone, err := bookings(t, pool, Config{Columns: Columns{ID: "nope"}}).Inspect(t.Context())
	require.NoError(t, err)
	require.Len(t, alone, 1, "no index is proposed on a column that is not there")
	both, err := bookings(t, pool, Config{Columns: Columns{ID: "a", CreatedAt: "b"}}).Inspect(t.Context())
	require.NoError(t, err)
	require.Len(t, both, 2, "every fault at once")
}

// Where no column could order by time, the ids that a sequence assigns do.
func TestInspect_WithoutATimeProposesTheOrderThatThereIs(t *testing.T) {
	t.Parallel()
	const missing = "table app.bookings has no column created_at"
	for name, c := range map[string]struct{ sql, fix string }{
		"identity": {`CREATE TABLE app.bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)`, "set source.order: id, since a sequence assigns column id"},
		"serial":   {`CREATE TABLE app.bookings (id serial PRIMARY KEY, name text)`, "set source.order: id, since a sequence assigns column id"},
		"another name": {`CREATE TABLE app.bookings (id uuid PRIMARY KEY, made timestamptz NOT NULL DEFAULT clock_timestamp())`,
			"name a timestamptz of app.bookings in source.columns.created_at: made"},
		"ids of applications": {`CREATE TABLE app.bookings (id bigint PRIMARY KEY, made text)`,
			`the order needs a column that the database assigns. As the owner: ALTER TABLE app.bookings ADD COLUMN "created_at" timestamptz NOT NULL DEFAULT now(), ` +
				`ALTER COLUMN "created_at" SET DEFAULT clock_timestamp(), which gives the rows that are there one time, and so the order of their ids`},
		"random ids": {`CREATE TABLE app.bookings (id uuid PRIMARY KEY, at timestamp, day date)`,
			`the order needs a column that the database assigns. As the owner: ALTER TABLE app.bookings ADD COLUMN "created_at" timestamptz NOT NULL DEFAULT now(), ` +
				`ALTER COLUMN "created_at" SET DEFAULT clock_timestamp(). Then the rows that app.bookings holds get one time. They come in the order of their ids, ` +
				`which are of type uuid: unless those grow, this is a random order; if their order matters, before the process first runs: ` +
				`UPDATE "app"."bookings" SET "created_at" = "at" AT TIME ZONE 'the zone of its values' WHERE "created_at" = (SELECT min("created_at") FROM "app"."bookings"); ` +
				`-- or = "day"::timestamp AT TIME ZONE 'the zone of its values'; or begin after them, with start: end`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t, "CREATE SCHEMA app; "+c.sql)
			require.Equal(t, c.fix, found(t, bookings(t, pool, Config{}), missing).Fix)
		})
	}
}

func TestInspect_OfAViewSaysNothingElse(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`CREATE VIEW app.some AS SELECT id AS number, note FROM app.bookings`)
	findings, err := bookings(t, pool, Config{Table: "app.some"}).Inspect(t.Context())
	require.NoError(t, err)
	require.Len(t, findings, 1, "%v", findings)
	require.Contains(t, findings[0].Problem, "app.some is a view")
}

func TestInspect_WrongTypesAreRefused(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`ALTER TABLE app.bookings ADD n numeric NOT NULL DEFAULT 1, ADD u uuid NOT NULL DEFAULT gen_random_uuid()`)
	f := found(t, bookings(t, pool, Config{Columns: Columns{ID: "n"}}), "column n of app.bookings is of type numeric: an id must be bigint, integer, smallint, uuid or text")
	require.Equal(t, "name a column of another type in source.columns.id", f.Fix)
	f = found(t, bookings(t, pool, Config{Order: ID, Columns: Columns{ID: "u"}}), "column u of app.bookings is of type uuid: order id is for integers that a sequence assigns")
	require.Equal(t, "order by created_at", f.Fix)
	f = found(t, bookings(t, pool, Config{Columns: Columns{Headers: "note"}}), "column note of app.bookings is of type text: headers are a JSON object of strings")
	require.Equal(t, "name a json or jsonb column in source.columns.headers", f.Fix)

	exec(t, pool, `ALTER TABLE app.bookings ALTER created_at DROP DEFAULT, ALTER created_at TYPE date`)
	s := bookings(t, pool, Config{})
	fixed(t, pool, s, "column created_at of app.bookings is of type date, not timestamptz")
	fixed(t, pool, s, "column created_at of app.bookings has no default")
	sound(t, s)
}

func TestInspect_NullableColumnsAreRefused(t *testing.T) {
	t.Parallel()
	pool, byID := sourceOn(t, bookingsSQL+`
		ALTER TABLE app.bookings ALTER created_at DROP NOT NULL, ALTER id DROP IDENTITY, DROP CONSTRAINT bookings_pkey, ALTER id DROP NOT NULL;
		CREATE SEQUENCE app.s;
		ALTER TABLE app.bookings ALTER id SET DEFAULT nextval('app.s');`, Config{Order: ID, Columns: Columns{CreatedAt: "created_at"}})
	const id = "column id of app.bookings may be NULL, and a row without it has no place in the order"
	found(t, byID, id)
	s := bookings(t, pool, Config{})
	fixed(t, pool, s, "column created_at of app.bookings may be NULL")
	fixed(t, pool, s, id)
	sound(t, s)
	fixed(t, pool, byID, `no index of app.bookings gives the order ("id")`)
	sound(t, byID)
}

// A table that inherits may drop the constraint, up to PostgreSQL 17.
func TestInspect_NullableColumnsOfTablesBelowAreRefused(t *testing.T) {
	t.Parallel()
	pool := database(t, `CREATE SCHEMA app;
		CREATE TABLE app.bookings (id bigint NOT NULL DEFAULT 1, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), note text);
		CREATE UNIQUE INDEX ON app.bookings (created_at, id);
		CREATE TABLE app.child () INHERITS (app.bookings); CREATE UNIQUE INDEX ON app.child (created_at, id);
		CREATE TABLE app.grandchild () INHERITS (app.child); CREATE UNIQUE INDEX ON app.grandchild (created_at, id);`)
	if pgtest.Value[int](t, pool, `SELECT current_setting('server_version_num')::int`) >= 180_000 {
		t.Skip("since PostgreSQL 18 a table that inherits cannot drop the constraint")
	}
	s := bookings(t, pool, Config{})
	sound(t, s)
	exec(t, pool, `ALTER TABLE app.child ALTER created_at DROP NOT NULL; ALTER TABLE app.grandchild ALTER created_at DROP NOT NULL, ALTER id DROP NOT NULL`)
	fixed(t, pool, s, "column created_at of app.child, a part of app.bookings, may be NULL")
	fixed(t, pool, s, "column id of app.grandchild, a part of app.bookings, may be NULL")
	sound(t, s)
}

// Receivers take UTF-8, and in it the ids of some databases sort otherwise.
func TestInspect_WhatIsNotUTF8OrSortsOtherwiseInItIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ server, client, problem string }{
		"ids in another order": {"WIN1252", "UTF8", "column id of app.bookings is a text, and the database is in WIN1252"},
		"never converted":      {"SQL_ASCII", "UTF8", ""},
		"in the same order":    {"LATIN1", "UTF8", ""},
		"as the server has it": {"UTF8", "SQL_ASCII", ""},
		"to fewer than UTF8":   {"UTF8", "LATIN1", "client_encoding of role"},
		"as bytes":             {"LATIN1", "SQL_ASCII", "client_encoding of role"},
		"as it is":             {"LATIN1", "LATIN1", "client_encoding of role"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := encoded(t, c.server, c.client)
			exec(t, pool, `CREATE SCHEMA app; CREATE TABLE app.bookings (id text COLLATE "C" PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp());
				CREATE INDEX ON app.bookings (created_at, id)`)
			s := bookings(t, pool, Config{})
			if c.problem == "" {
				sound(t, s)
				return
			}
			f := found(t, s, c.problem)
			require.Equal(t, Refuse, f.Severity)
			if c.client == "UTF8" {
				return
			}
			exec(t, pool, f.Fix)
			pool.Reset()
			sound(t, s)
			exec(t, pool, `ALTER ROLE CURRENT_USER IN DATABASE `+pool.Config().ConnConfig.Database+` RESET client_encoding`)
		})
	}
}

// TestRead_ASessionOfAnotherEncodingReadsUTF8: sessions that were not looked at may have another one.
func TestRead_ASessionOfAnotherEncodingReadsUTF8(t *testing.T) {
	t.Parallel()
	pool := encoded(t, "UTF8", "UTF8")
	exec(t, pool, `CREATE SCHEMA app; CREATE TABLE app.bookings (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), customer text);
		CREATE INDEX ON app.bookings (created_at, id); INSERT INTO app.bookings (id, customer) VALUES (1, 'Zoé')`)
	s := bookings(t, pool, Config{Columns: Columns{Key: "customer"}})
	sound(t, s)
	_, err := s.Read(t.Context(), "", 10)
	require.NoError(t, err)
	for _, conn := range pool.AcquireAllIdle(t.Context()) {
		exec(t, conn, `SET client_encoding = 'LATIN1'`)
		conn.Release()
	}
	page, err := s.Read(t.Context(), "", 10)
	require.NoError(t, err)
	require.Len(t, page.Records, 1)
	require.Equal(t, "Zoé", page.Records[0].Key)
}

// encoded is a pool of a database of an encoding, in sessions of another one.
func encoded(t *testing.T, server, client string) *pgxpool.Pool {
	t.Helper()
	admin := pgtest.Database(t)
	name := admin.Config().ConnConfig.Database + "_encoded"
	exec(t, admin, fmt.Sprintf(`CREATE DATABASE %s ENCODING '%s' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`, name, server))
	t.Cleanup(func() {
		_, err := admin.Exec(context.WithoutCancel(t.Context()), `DROP DATABASE `+name+` WITH (FORCE)`)
		require.NoError(t, err)
	})
	exec(t, admin, fmt.Sprintf(`ALTER DATABASE %s SET client_encoding = '%s'`, name, client))
	address, err := url.Parse(admin.Config().ConnString())
	require.NoError(t, err)
	address.Path = "/" + name
	return pgtest.Pool(t, address.String(), pgtest.PoolConfig{})
}

func TestInspect_DefaultThatWeakensThePromise(t *testing.T) {
	t.Parallel()
	for change, problem := range map[string]string{
		`SET DEFAULT now()`:             "defaults to now(), which is taken before the table is locked: every open transaction of this database, a long report too, holds delivery up, and records wait 1s",
		`SET DEFAULT CURRENT_TIMESTAMP`: "defaults to CURRENT_TIMESTAMP, which is taken before the table is locked",
		`DROP DEFAULT`:                  "has no default: a stamp of the application's clock may be older than what was delivered, and only the latency of 5ms protects such a record",
		`SET DEFAULT 'now'`:             "defaults to '20",
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, bookingsSQL+`ALTER TABLE app.bookings ALTER created_at `+change, Config{})
			f := found(t, s, "column created_at of app.bookings "+problem)
			require.Equal(t, Warn, f.Severity)
			exec(t, pool, f.Fix)
			sound(t, s)
		})
	}
}

func TestInspect_DefaultOfAPartitionCounts(t *testing.T) {
	t.Parallel()
	pool, whole := sourceOn(t, partitionedSQL+`
		ALTER TABLE ONLY app.bookings_b1 ALTER created_at SET DEFAULT now();
		ALTER TABLE ONLY app.bookings_a ALTER created_at SET DEFAULT now();`, Config{})
	f := found(t, whole, "defaults to now(), which is taken before the table is locked")
	require.Regexp(t, `column created_at of app\.bookings_(a|b1), a part of app\.bookings, `, f.Problem)
	fixed(t, pool, whole, "defaults to now()")
	sound(t, whole)

	exec(t, pool, `ALTER TABLE ONLY app.bookings ALTER created_at SET DEFAULT now()`)
	leaf := bookings(t, pool, Config{Table: "app.bookings_b1"})
	f = found(t, leaf, "column created_at of app.bookings defaults to now()")
	require.Equal(t, `ALTER TABLE app.bookings ALTER COLUMN "created_at" SET DEFAULT clock_timestamp()`, f.Fix)
	fixed(t, pool, leaf, "defaults to now()")
	sound(t, leaf)
	sound(t, whole)
}
