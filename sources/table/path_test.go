package table

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// pathCases are what a name may find. STRANGER is a role of another, READER the one that
// reads, SUPER a superuser.
var pathCases = map[string]struct {
	sql, path, problem, fix string
}{
	"every role may create ahead": {
		"GRANT CREATE ON SCHEMA early TO PUBLIC", "early, app",
		"table bookings is app.bookings, and every role may create early.bookings, which comes first in the search_path of role READER", "write source.table as app.bookings",
	},
	"one role may create ahead": {
		"GRANT CREATE ON SCHEMA early TO STRANGER", "early, app",
		"table bookings is app.bookings, and role STRANGER may create early.bookings, which comes first in the search_path of role READER", "write source.table as app.bookings",
	},
	"the reader may not use the schema yet": {
		"GRANT CREATE ON SCHEMA early TO STRANGER; REVOKE ALL ON SCHEMA early FROM READER", "early, app", "role STRANGER may create early.bookings", "write source.table as app.bookings",
	},
	"a role may make the schema of the reader's name": {
		"GRANT CREATE ON DATABASE DATABASE TO STRANGER", `"$user", app`,
		"table bookings is app.bookings, and role STRANGER may make the schema of READER.bookings", "write source.table as app.bookings",
	},
	"a stranger was faster": {
		"GRANT CREATE ON SCHEMA early TO STRANGER; CREATE TABLE early.bookings (LIKE app.bookings); ALTER TABLE early.bookings OWNER TO STRANGER; GRANT SELECT ON early.bookings TO READER", "early, app",
		"table bookings is early.bookings, which role STRANGER made, and there is app.bookings too, later in the search_path of role READER",
		"write source.table as app.bookings, or as early.bookings if it is meant",
	},
	"names that need quotes": {
		`CREATE SCHEMA "A ""b, c"; GRANT CREATE ON SCHEMA "A ""b, c" TO STRANGER`, `EARLY, "A ""b, c" ,app`, `role STRANGER may create "A ""b, c"."bookings"`, "write source.table as app.bookings",
	},
	"no user's schema, and nothing ahead": {"", `"$user", app`, "", ""},
	"a table in an open schema that is first": {
		"GRANT CREATE ON SCHEMA app TO PUBLIC", `"$user", app, early`, "", "",
	},
	"an open schema later": {"GRANT CREATE ON SCHEMA early TO PUBLIC", `app, early`, "", ""},
	"the owner of the table may create ahead": {
		"GRANT CREATE ON SCHEMA early TO STRANGER; ALTER TABLE app.bookings OWNER TO STRANGER", "early, app", "", "",
	},
	"the reader may create ahead": {"GRANT CREATE ON SCHEMA early TO READER", "early, app", "", ""},
	"one who may be superuser":    {"GRANT CREATE ON SCHEMA early TO STRANGER; GRANT SUPER TO STRANGER", "early, app", "", ""},
	"two tables of one owner": {
		"CREATE TABLE early.bookings (LIKE app.bookings INCLUDING ALL); GRANT SELECT ON early.bookings TO READER; GRANT SELECT ON ALL SEQUENCES IN SCHEMA early TO READER", "early, app", "", "",
	},
}

// TestInspect_ANameWithoutSchemaIsRefusedWhereAnotherCouldTakeItsPlace: and nowhere else.
func TestInspect_ANameWithoutSchemaIsRefusedWhereAnotherCouldTakeItsPlace(t *testing.T) {
	t.Parallel()
	for name, c := range pathCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := database(t, bookingsSQL+`CREATE SCHEMA early`)
			stranger, _ := user(t, admin)
			reader, _ := user(t, admin)
			exec(t, admin, "GRANT USAGE ON SCHEMA early, app TO "+reader+"; GRANT SELECT ON ALL TABLES IN SCHEMA app TO "+reader+"; GRANT SELECT ON ALL SEQUENCES IN SCHEMA app TO "+reader)
			words := strings.NewReplacer("STRANGER", stranger, "READER", reader, "SUPER", pgtest.Value[string](t, admin, "SELECT current_user"),
				"DATABASE DATABASE", "DATABASE "+pgtest.Value[string](t, admin, "SELECT quote_ident(current_database())"))
			exec(t, admin, words.Replace(c.sql))
			pool := login(t, admin, reader, c.path)
			s := bookings(t, pool, Config{Table: "bookings"})
			for range 2 { // a second look is no acceptance
				findings, err := s.Inspect(t.Context())
				require.NoError(t, err)
				if c.problem == "" {
					require.Empty(t, findings)
					continue
				}
				require.Len(t, findings, 1)
				require.Equal(t, Refuse, findings[0].Severity)
				require.Contains(t, findings[0].Problem, words.Replace(c.problem))
				require.Equal(t, words.Replace(c.fix), findings[0].Fix)
				_, err = s.Read(t.Context(), "", 10)
				require.True(t, processor.IsPermanent(err), "%v", err)
			}
			findings, err := bookings(t, pool, Config{}).Inspect(t.Context())
			require.NoError(t, err)
			require.Empty(t, findings, "with its schema the name means one table")
		})
	}
}

// The session's own temporary tables come before all others.
func TestInspect_ATemporaryTableTakesNoPlace(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL)
	one := pgtest.Pool(t, pool.Config().ConnString(), pgtest.PoolConfig{MaxConns: 1})
	exec(t, one, "CREATE TEMP TABLE bookings (LIKE app.bookings INCLUDING ALL); SET search_path = app")
	findings, err := bookings(t, one, Config{Table: "bookings"}).Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, refused("write source.table with the schema of the table that is meant", "table bookings is a temporary table of the worker's own session"), findings)
}

// A superuser reads a table: what its owner attaches to it runs with all rights.
func TestInspect_WarnsOfASuperuserWhoReadsTheTableOfAnother(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"the table": "ALTER TABLE app.bookings OWNER TO OWNER",
		"a type":    "CREATE TYPE app.kind AS ENUM ('x'); ALTER TYPE app.kind OWNER TO OWNER; ALTER TABLE app.bookings ADD kind app.kind",
		"a part":    "CREATE TABLE app.part () INHERITS (app.bookings); CREATE UNIQUE INDEX ON app.part (created_at, id); ALTER TABLE app.part OWNER TO OWNER",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := database(t, bookingsSQL)
			require.Empty(t, inspected(t, admin), "its own table")
			owner, pool := user(t, admin)
			t.Cleanup(func() {
				_, err := admin.Exec(context.Background(), "DROP SCHEMA app CASCADE")
				require.NoError(t, err)
			})
			exec(t, admin, "GRANT USAGE ON SCHEMA app TO "+owner+"; GRANT SELECT ON app.bookings TO "+owner+"; GRANT SELECT ON ALL SEQUENCES IN SCHEMA app TO "+owner+"; "+strings.ReplaceAll(sql, "OWNER TO OWNER", "OWNER TO "+owner))
			findings := inspected(t, admin)
			require.Len(t, findings, 1)
			require.Equal(t, Warn, findings[0].Severity)
			require.Contains(t, findings[0].Problem, "is a superuser, and role "+owner+" owns app.bookings or a type in it")
			require.Contains(t, findings[0].Fix, "run the processes as a role of their own")
			require.Empty(t, inspected(t, pool), "a role that is none")
		})
	}
}

func inspected(t testing.TB, pool *pgxpool.Pool) []Finding {
	t.Helper()
	findings, err := bookings(t, pool, Config{}).Inspect(t.Context())
	require.NoError(t, err)
	return findings
}

// A worker that starts later asks what the name meant.
func TestInspect_ANameThatMeansAnotherTableThanBeforeIsRefused(t *testing.T) {
	t.Parallel()
	admin := database(t, bookingsSQL+`CREATE SCHEMA early; CREATE TABLE early.bookings (LIKE app.bookings INCLUDING ALL)`)
	meant := func(name string, err error) Config {
		return Config{Table: "bookings", Meant: func(context.Context) (string, error) { return name, err }}
	}
	first := bookings(t, pgtest.Pool(t, admin.Config().ConnString(), pgtest.PoolConfig{SearchPath: "app"}), Config{Table: "bookings"})
	name, err := first.Name(t.Context())
	require.NoError(t, err)
	require.Equal(t, "app.bookings", name)

	pool := pgtest.Pool(t, admin.Config().ConnString(), pgtest.PoolConfig{SearchPath: "early, app"})
	s := bookings(t, pool, meant(name, nil))
	for range 2 {
		findings, err := s.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, refused("write source.table as app.bookings, or as early.bookings if it is meant",
			"table bookings meant app.bookings when the process last ran, and is early.bookings now, by the search_path of role %s", pgtest.Value[string](t, admin, "SELECT current_user")), findings)
	}
	name, err = s.Name(t.Context())
	require.NoError(t, err)
	require.Empty(t, name)
	_, err = s.Read(t.Context(), "", 10)
	require.True(t, processor.IsPermanent(err), "%v", err)

	exec(t, admin, "DROP TABLE app.bookings; DROP TABLE early.bookings; CREATE TABLE app.bookings (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp()); CREATE INDEX ON app.bookings (created_at, id)")
	for _, unchanged := range []Config{meant("app.bookings", nil), meant("", nil)} {
		name, err := bookings(t, pool, unchanged).Name(t.Context())
		require.NoError(t, err, "a table that was made anew under its name")
		require.Equal(t, "app.bookings", name)
	}
	gone := errors.New("no answer")
	_, err = bookings(t, pool, meant("", gone)).Read(t.Context(), "", 1)
	require.ErrorIs(t, err, gone)
	require.False(t, processor.IsPermanent(err))
}
