package table

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestRead_NeedsNoMoreThanSelectOnItsColumns(t *testing.T) {
	t.Parallel()
	admin := database(t, bookingsSQL+`INSERT INTO app.bookings (note) VALUES ('a')`)
	name, pool := user(t, admin)
	exec(t, admin, fmt.Sprintf(`GRANT USAGE ON SCHEMA app TO %[1]s; GRANT SELECT (id, created_at, xmin) ON app.bookings TO %[1]s`, name))

	s := bookings(t, pool, Config{Columns: Columns{Payload: "id"}})
	require.Equal(t, []string{"1"}, ids(readAll(t, s, "", 10)))
	at, err := s.At(t.Context(), time.Now())
	require.NoError(t, err)
	_, err = s.Read(t.Context(), at, 1)
	require.NoError(t, err)
	late, err := s.Late(t.Context(), at, "3", true)
	require.NoError(t, err)
	require.NotEmpty(t, late.Reason)
}

// A role's search_path may put functions and operators of its own before those
// of PostgreSQL, and may make the server print a foreign now() as now().
func TestRead_HostileSearchPathChangesNothing(t *testing.T) {
	t.Parallel()
	admin := database(t, bookingsSQL+`
		CREATE SCHEMA hostile;
		CREATE FUNCTION hostile.never(a oid, b oid) RETURNS boolean LANGUAGE sql RETURN false;
		CREATE OPERATOR hostile.= (FUNCTION = hostile.never, LEFTARG = oid, RIGHTARG = oid);
		CREATE FUNCTION hostile.never(a name, b name) RETURNS boolean LANGUAGE sql RETURN false;
		CREATE OPERATOR hostile.= (FUNCTION = hostile.never, LEFTARG = name, RIGHTARG = name);
		CREATE FUNCTION hostile.never(a bigint, b bigint) RETURNS boolean LANGUAGE sql RETURN false;
		CREATE OPERATOR hostile.> (FUNCTION = hostile.never, LEFTARG = bigint, RIGHTARG = bigint);
		CREATE FUNCTION hostile.set_config(text, text, boolean) RETURNS text LANGUAGE sql RETURN 'ignored';
		CREATE FUNCTION hostile.to_regclass(text) RETURNS regclass LANGUAGE sql RETURN NULL;
		CREATE FUNCTION hostile.pg_is_in_recovery() RETURNS boolean LANGUAGE sql RETURN true;
		CREATE FUNCTION hostile.clock_timestamp() RETURNS timestamptz LANGUAGE sql RETURN timestamptz '2020-01-01';
		CREATE FUNCTION hostile.now() RETURNS timestamptz LANGUAGE sql RETURN pg_catalog.clock_timestamp();
		INSERT INTO app.bookings DEFAULT VALUES;`)
	name, _ := user(t, admin)
	exec(t, admin, fmt.Sprintf(`GRANT USAGE ON SCHEMA app, hostile TO %[1]s; GRANT SELECT ON app.bookings TO %[1]s; GRANT SELECT ON SEQUENCE app.bookings_id_seq TO %[1]s;
		ALTER ROLE %[1]s SET search_path = hostile, pg_catalog, app`, name))
	pool := login(t, admin, name, "hostile, pg_catalog, app")

	s := bookings(t, pool, Config{Table: "bookings", Where: "id > 0"})
	require.Equal(t, []string{"1"}, ids(readAll(t, s, "", 10)))
	findings, err := s.Inspect(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings)
	_, err = s.Writers(t.Context())
	require.NoError(t, err)
	lag, err := s.Lag(t.Context(), "")
	require.NoError(t, err)
	require.EqualValues(t, 1, lag.Records)
	_, err = s.End(t.Context())
	require.NoError(t, err)

	exec(t, admin, `ALTER TABLE app.bookings ALTER created_at SET DEFAULT hostile.now()`)
	findings, err = s.Inspect(t.Context())
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.Contains(t, findings[0].Problem, "defaults to hostile.now(), which is not the database's clock")
}

// With one snapshot for all statements the fence would protect nothing, and a
// plan that sorts would read the whole backlog. The where clause looks at the
// settings under which it is evaluated.
func TestRead_SettingsOfTheRoleChangeNothing(t *testing.T) {
	t.Parallel()
	admin := database(t, bookingsSQL+`INSERT INTO app.bookings DEFAULT VALUES`)
	name, _ := user(t, admin)
	exec(t, admin, fmt.Sprintf(`GRANT USAGE ON SCHEMA app TO %[1]s; GRANT SELECT ON app.bookings TO %[1]s;
		ALTER ROLE %[1]s SET default_transaction_isolation = 'serializable';
		ALTER ROLE %[1]s SET default_transaction_deferrable = on;
		ALTER ROLE %[1]s SET default_transaction_read_only = on;
		ALTER ROLE %[1]s SET row_security = on;
		ALTER ROLE %[1]s SET enable_indexscan = off;
		ALTER ROLE %[1]s SET jit = on;
		ALTER ROLE %[1]s SET DateStyle = 'German';
		ALTER ROLE %[1]s SET bytea_output = 'escape';
		ALTER ROLE %[1]s SET IntervalStyle = 'iso_8601';
		ALTER ROLE %[1]s SET extra_float_digits = -10;
		ALTER ROLE %[1]s SET quote_all_identifiers = on;
		ALTER ROLE %[1]s SET standard_conforming_strings = off;
		ALTER ROLE %[1]s SET statement_timeout = '2s';
		ALTER ROLE %[1]s SET TimeZone = 'Asia/Tokyo'`, name))
	pool := login(t, admin, name, "")
	for setting, want := range map[string]string{
		"transaction_isolation": "read committed",
		"transaction_read_only": "on",
		"row_security":          "off",
		"enable_indexscan":      "on",
		"enable_seqscan":        "off",
		"enable_sort":           "off",
		"jit":                   "off",
		"search_path":           "pg_catalog",
		"TimeZone":              "UTC",
		"DateStyle":             "ISO, DMY", // ISO; the order of fields is the role's
		"bytea_output":          "hex",
		"IntervalStyle":         "postgres",
		"extra_float_digits":    "1",
		"quote_all_identifiers": "off",
		"statement_timeout":     "30s",

		"standard_conforming_strings": "on",
		"application_name":            pgtest.Value[string](t, pool, "SELECT concat('"+applicationRead+" ', right(current_setting('application_name'), "+applicationRest+"))"),
	} {
		s := bookings(t, pool, Config{Where: fmt.Sprintf("current_setting('%s') = '%s'", setting, want)})
		require.Equal(t, []string{"1"}, ids(readAll(t, s, "", 10)), setting)
	}
	exec(t, admin, fmt.Sprintf(`ALTER ROLE %s SET default_transaction_isolation = 'repeatable read'`, name))
	s := bookings(t, login(t, admin, name, ""), Config{Where: "current_setting('transaction_isolation') = 'read committed'"})
	require.Equal(t, []string{"1"}, ids(readAll(t, s, "", 10)))
}

// A default is known by how the server prints it: now() taken for another function lost rows.
func TestInspect_QuotedIdentifiersChangeNothing(t *testing.T) {
	t.Parallel()
	admin := database(t, `CREATE SCHEMA app;
		CREATE TABLE app.bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now());
		CREATE UNIQUE INDEX ON app.bookings (created_at, id);
		CREATE TABLE app.numbered (id bigserial PRIMARY KEY)`)
	name, _ := user(t, admin)
	exec(t, admin, fmt.Sprintf("GRANT USAGE ON SCHEMA app TO %[1]s; GRANT SELECT ON ALL TABLES IN SCHEMA app TO %[1]s; GRANT SELECT ON ALL SEQUENCES IN SCHEMA app TO %[1]s", name))
	inspect := func() (all [][]Finding) {
		pool := login(t, admin, name, "")
		for _, c := range []Config{{Table: "app.bookings"}, {Table: "app.numbered", Order: ID}} {
			findings, err := bookings(t, pool, c).Inspect(t.Context())
			require.NoError(t, err)
			all = append(all, findings)
		}
		return all
	}
	want := inspect()
	require.Contains(t, fmt.Sprint(want[0]), "pg_read_all_stats")
	exec(t, admin, fmt.Sprintf("ALTER ROLE %s SET quote_all_identifiers = on", name))
	require.Equal(t, want, inspect())
}

// No setting of a read outlives it.
func TestRead_LeavesTheSessionAsItWas(t *testing.T) {
	t.Parallel()
	admin := database(t, bookingsSQL)
	pool := pgtest.Pool(t, admin.Config().ConnString(), pgtest.PoolConfig{MaxConns: 1, SearchPath: "app"})
	settings := func() string {
		return pgtest.Value[string](t, pool, `SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings WHERE source IN ('session', 'client', 'interactive') OR name LIKE 'enable_%' OR name LIKE '%timeout'`)
	}
	before := settings()
	s := bookings(t, pool, Config{})
	read(t, s, "", 10)
	s.mustEnd(t)
	_, err := s.Lag(t.Context(), "")
	require.NoError(t, err)
	_, err = s.Writers(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, settings())
	require.EqualValues(t, 1, pool.Stat().NewConnsCount())
}

func TestRead_WorksThroughPgBouncerInTransactionMode(t *testing.T) {
	t.Parallel()
	admin := database(t, bookingsSQL+`INSERT INTO app.bookings SELECT FROM generate_series(1, 5)`)
	pool := pgtest.Pool(t, pgtest.PgBouncer(t, admin.Config().ConnString())+"&default_query_exec_mode=exec", pgtest.PoolConfig{})
	for _, order := range []Order{CreatedAt, ID} {
		s := bookings(t, pool, Config{Order: order})
		require.Len(t, readAll(t, s, "", 2), 5)
		sound(t, s)
		s.mustEnd(t)
		_, err := s.Writers(t.Context())
		require.NoError(t, err)
		lag, err := s.Lag(t.Context(), "")
		require.NoError(t, err)
		require.EqualValues(t, 5, lag.Records)
	}
}
