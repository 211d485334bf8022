package table

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRead_NeedsNoMoreThanSelectOnItsColumns(t *testing.T) {
	t.Parallel()
	admin := database(t, bookingsSQL+`INSERT INTO app.bookings (note) VALUES ('a')`)
	name, pool := user(t, admin)
	exec(t, admin, fmt.Sprintf(`GRANT USAGE ON SCHEMA app TO %[1]s; GRANT SELECT (id, created_at) ON app.bookings TO %[1]s`, name))

	s := bookings(t, pool, Config{Columns: Columns{Payload: "id"}})
	require.Equal(t, []string{"1"}, ids(readAll(t, s, "", 10)))
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
	exec(t, admin, fmt.Sprintf(`GRANT USAGE ON SCHEMA app, hostile TO %[1]s; GRANT SELECT ON app.bookings TO %[1]s;
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
