package migrations_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

// versionTable is what goose makes; it is how a stranger makes it, too.
const versionTable = `CREATE TABLE public.ordered_dispatcher_migration (id serial PRIMARY KEY, version_id bigint NOT NULL,
	is_applied boolean NOT NULL, tstamp timestamp NOT NULL DEFAULT now());
INSERT INTO public.ordered_dispatcher_migration (version_id, is_applied) VALUES (0, true);
GRANT ALL ON public.ordered_dispatcher_migration TO PUBLIC;
GRANT ALL ON SEQUENCE public.ordered_dispatcher_migration_id_seq TO PUBLIC;`

// evil is a function that makes its owner a superuser, if a superuser runs it.
const evil = `CREATE FUNCTION public.evil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('ALTER ROLE %I SUPERUSER', '{role}'); RETURN NEW; END $$;
CREATE FUNCTION public.evil_now() RETURNS timestamp LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('ALTER ROLE %I SUPERUSER', '{role}'); RETURN now(); END $$;`

// stranger is a role that may create objects in public, and its session.
func stranger(t *testing.T) (string, *pgx.Conn) {
	t.Helper()
	pool := pgtest.Database(t)
	role := pgtest.Role(t, pool, "mallory_", "")
	pgtest.Exec(t, pool, "GRANT CREATE, USAGE ON SCHEMA public TO "+role)
	t.Cleanup(func() { // tables and triggers of others depend on what the stranger made
		_, err := pool.Exec(context.Background(), "DROP OWNED BY "+role+" CASCADE")
		require.NoError(t, err)
	})
	return role, pgtest.Connect(t, as(t, role))
}

// as is the address of the database with another role.
func as(t *testing.T, role string) string {
	t.Helper()
	return pgtest.With(t, pgtest.URL(t), "role", role)
}

func isSuper(t *testing.T, role string) bool {
	t.Helper()
	return pgtest.Value[bool](t, pgtest.Database(t), "SELECT rolsuper FROM pg_roles WHERE rolname = $1", role)
}

func TestUp_RunsNoCodeOfAStranger(t *testing.T) {
	t.Parallel()
	for name, squat := range map[string]string{
		"version table with a trigger":  versionTable + `CREATE TRIGGER t BEFORE INSERT ON public.ordered_dispatcher_migration FOR EACH ROW EXECUTE FUNCTION public.evil();`,
		"version table with a default":  versionTable + `ALTER TABLE public.ordered_dispatcher_migration ALTER tstamp SET DEFAULT public.evil_now();`,
		"version table with a rule":     versionTable + `CREATE RULE r AS ON INSERT TO public.ordered_dispatcher_migration DO ALSO SELECT public.evil_now();`,
		"version table as a view":       `CREATE VIEW public.ordered_dispatcher_migration AS SELECT 1 AS id, 0::bigint AS version_id, true AS is_applied, public.evil_now() AS tstamp;`,
		"version table that only waits": versionTable,
		"cursor":                        `CREATE TABLE public.cursor (process_name text);`,
		"audit":                         `CREATE TABLE public.cursor_event (id bigint);`,
		"dead letters":                  `CREATE VIEW public.dead_letter AS SELECT 1 AS id;`,
		"past":                          `CREATE SEQUENCE public.cursor_past;`,
		"function":                      `CREATE FUNCTION public.cursor_set_updated_at() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			role, conn := stranger(t)
			pgtest.Exec(t, conn, strings.ReplaceAll(evil, "{role}", role)+squat, pgx.QueryExecModeSimpleProtocol)
			before := tables(t, pgtest.Database(t), "public")
			_, err := migrations.Up(t.Context(), migrations.Config{ConnString: pgtest.URL(t)})
			require.ErrorIs(t, err, migrations.ErrStranger)
			require.ErrorContains(t, err, role)
			require.False(t, isSuper(t, role), "her code ran as a superuser")
			require.Equal(t, before, tables(t, pgtest.Database(t), "public"))
			_, err = migrations.Down(t.Context(), migrations.Config{ConnString: pgtest.URL(t)})
			require.ErrorIs(t, err, migrations.ErrStranger)
			require.False(t, isSuper(t, role))
		})
	}
}

func TestUp_RefusesASchemaOfAStranger(t *testing.T) {
	t.Parallel()
	role, _ := stranger(t)
	pgtest.Exec(t, pgtest.Database(t), "CREATE SCHEMA od AUTHORIZATION "+role)
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: pgtest.URL(t), Schema: "od"})
	require.ErrorIs(t, err, migrations.ErrStranger)
	require.ErrorContains(t, err, `schema "od" belongs to role "`+role+`"`)
	_, err = migrations.Up(t.Context(), migrations.Config{ConnString: as(t, role), Schema: "od"})
	require.NoError(t, err, "its owner may")
	_, err = migrations.Up(t.Context(), migrations.Config{ConnString: as(t, role)})
	require.NoError(t, err, "and in public, whose owner is trusted")
}

func TestUp_RefusesCodeOfAStrangerAtATableOfItsOwn(t *testing.T) {
	t.Parallel()
	role, conn := stranger(t)
	pool := pgtest.Database(t)
	config := migrations.Config{ConnString: pgtest.URL(t)}
	_, err := migrations.Up(t.Context(), config)
	require.NoError(t, err)
	pgtest.Exec(t, conn, strings.ReplaceAll(evil, "{role}", role), pgx.QueryExecModeSimpleProtocol)
	pgtest.Exec(t, pool, "CREATE TRIGGER strange BEFORE INSERT ON public.cursor_event FOR EACH ROW EXECUTE FUNCTION public.evil()")
	_, err = migrations.Up(t.Context(), config)
	require.ErrorIs(t, err, migrations.ErrStranger)
	require.ErrorContains(t, err, "cursor_event calls evil")
}

// A stranger makes the table between the look and the use.
func TestUp_AStrangerWhoComesBetweenIsRefused(t *testing.T) {
	t.Parallel()
	role, conn := stranger(t)
	address, l := pgtest.Proxy(t, pgtest.URL(t))
	found := l.Hold(link.Client, func(data []byte) bool { return strings.Contains(string(data), "migrations.version_table") })
	done := make(chan error, 1)
	go func() {
		_, err := migrations.Up(t.Context(), migrations.Config{ConnString: address})
		done <- err
	}()
	select {
	case <-found:
	case err := <-done:
		require.FailNow(t, "the version table was not made by us", "%v", err)
	}
	pgtest.Exec(t, conn, strings.ReplaceAll(evil, "{role}", role)+versionTable+
		`CREATE TRIGGER t BEFORE INSERT ON public.ordered_dispatcher_migration FOR EACH ROW EXECUTE FUNCTION public.evil();`, pgx.QueryExecModeSimpleProtocol)
	l.Release()
	require.ErrorContains(t, <-done, "these migrations did not make it")
	require.False(t, isSuper(t, role))
}
