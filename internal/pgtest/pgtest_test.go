package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestDatabase_IsTheTestsOwnAndEmpty(t *testing.T) {
	t.Parallel()
	mine := Database(t)
	Exec(t, mine, "CREATE TABLE public.t ()")
	require.Equal(t, URL(t), URL(t))
	require.Equal(t, "t", Value[string](t, Database(t), "SELECT relname FROM pg_catalog.pg_class WHERE relnamespace = 'public'::regnamespace"))

	t.Run("another", func(t *testing.T) {
		Exec(t, Database(t), "CREATE TABLE public.t ()")
	})
}

func TestDatabase_ForgottenSchemaFails(t *testing.T) {
	t.Parallel()
	pool := Database(t)
	Exec(t, pool, "CREATE TABLE public.t ()")
	_, err := pool.Exec(t.Context(), "SELECT FROM t")
	require.ErrorContains(t, err, "42P01")
	Exec(t, Pool(t, URL(t), PoolConfig{SearchPath: `"$user", public`}), "SELECT FROM t")
}

func TestPool_SettingsReachTheSession(t *testing.T) {
	t.Parallel()
	pool := Pool(t, URL(t), PoolConfig{ApplicationName: "me", MaxConns: 3})
	require.Equal(t, "me", Value[string](t, pool, "SHOW application_name"))
	require.EqualValues(t, 3, pool.Config().MaxConns)
	require.Equal(t, t.Name(), Value[string](t, Database(t), "SHOW application_name"))
}

func TestDatabase_IsDroppedWhateverIsLeftInIt(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("leaves things", func(t *testing.T) {
		address := URL(t)
		session, err := pgx.Connect(t.Context(), address)
		require.NoError(t, err)
		Exec(t, session, "BEGIN; CREATE TABLE public.t (); PREPARE TRANSACTION 'it''s left'")
		name = Value[string](t, session, "SELECT pg_catalog.current_database()")
		// session stays open
	})
	require.Equal(t, "false", Value[string](t, Database(t),
		"SELECT EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = $1)::text", name))
}

func TestRole_IsDroppedWithWhatItOwnsAndWasGranted(t *testing.T) {
	t.Parallel()
	pool := Database(t)
	Exec(t, pool, "CREATE TABLE public.t ()")
	var name string
	t.Run("has things", func(t *testing.T) {
		name = Role(t, pool, `Quoted "x" `, "LOGIN PASSWORD 'secret'")
		quoted := pgx.Identifier{name}.Sanitize()
		Exec(t, pool, "GRANT SELECT ON public.t TO "+quoted+"; CREATE SCHEMA AUTHORIZATION "+quoted)
		require.Equal(t, name, Value[string](t, Connect(t, As(t, pool.Config().ConnString(), name, "secret")), "SELECT session_user"))
		require.Equal(t, name, Value[string](t, Connect(t, With(t, pool.Config().ConnString(), "role", name)), "SELECT current_user"))
	})
	require.Zero(t, Value[int](t, pool, "SELECT count(*) FROM pg_catalog.pg_roles WHERE rolname = $1", name))
	require.Zero(t, Value[int](t, pool, "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1", name))
}

func TestBegin_IsRolledBack(t *testing.T) {
	t.Parallel()
	pool := Database(t)
	t.Run("writes", func(t *testing.T) {
		tx := Begin(t, pool, "CREATE TABLE public.t ()")
		require.Equal(t, 1, Value[int](t, tx, "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = 'public'"))
	})
	require.Zero(t, Value[int](t, pool, "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = 'public'"))
}

func TestExecAndValue_AFailureNamesTheStatement(t *testing.T) {
	t.Parallel()
	pool := Database(t)
	r := ending(func(r *recorder) { r.TB = t; Exec(r, pool, "SELECT 1/0") })
	require.Contains(t, r.fatal, "SELECT 1/0: ERROR: division by zero")
	r = ending(func(r *recorder) { r.TB = t; Value[int](r, pool, "SELECT 1/$1", 0) })
	require.Contains(t, r.fatal, "SELECT 1/$1: ERROR: division by zero")
}

func TestDatabaseName_FitsWhateverTheTestIsCalled(t *testing.T) {
	t.Parallel()
	for _, hint := range []string{"", t.Name(), strings.Repeat("Very/Long ", 20), `quo"te'd größe`} {
		require.Regexp(t, `^test_[a-z0-9_]*_[a-z0-9]{12}$`, databaseName(hint))
		require.LessOrEqual(t, len(databaseName(hint)), 63)
	}
	require.NotEqual(t, databaseName("a"), databaseName("a"))
}

func TestWithDatabase_KeepsTheRestOfTheAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://u:p%40ss@h:1/old?sslmode=disable": "postgres://u:p%40ss@h:1/new?sslmode=disable",
		"postgresql:///old?host=/run/postgresql":      "postgresql:///new?host=/run/postgresql",
		"host=/run/postgresql dbname=old":             "host=/run/postgresql dbname=old dbname=new",
	} {
		got, err := withDatabase(address, "new")
		require.NoError(t, err)
		require.Equal(t, want, got)
		config, err := pgx.ParseConfig(got)
		require.NoError(t, err)
		require.Equal(t, "new", config.Database)
	}
}

func TestServer_CanBeStoppedAndRestarted(t *testing.T) {
	t.Parallel()
	server := Server(t, map[string]string{"max_connections": "20"})
	pool := Pool(t, server.URL(), PoolConfig{})
	require.Equal(t, "20", Value[string](t, pool, "SHOW max_connections"))
	require.Equal(t, "64", Value[string](t, pool, "SHOW max_prepared_transactions"))
	require.Equal(t, "on", Value[string](t, pool, "SHOW fsync"))
	require.NoError(t, server.StopImmediate(t.Context()))
	require.Error(t, pool.Ping(t.Context()))
	require.NoError(t, server.Restart(t.Context()))
	require.NoError(t, pool.Ping(t.Context()))
	require.Equal(t, "true", Value[string](t, Pool(t, Standby(t, server).URL(), PoolConfig{}), "SELECT pg_catalog.pg_is_in_recovery()::text"))
}

// TestPgBouncer_PoolsTransactions shows that it is not a mere relay: two clients share its one server connection, and
// take turns with transactions.
func TestPgBouncer_PoolsTransactions(t *testing.T) {
	t.Parallel()
	address := Bouncer{PoolSize: 1}.Start(t, URL(t)) + "&default_query_exec_mode=exec"
	one, two := Pool(t, address, PoolConfig{MaxConns: 1}), Pool(t, address, PoolConfig{MaxConns: 1})
	const backend = "SELECT pg_catalog.pg_backend_pid()::text"
	require.Equal(t, Value[string](t, one, backend), Value[string](t, two, backend))
	require.Empty(t, Value[string](t, one, "SHOW search_path"))
	require.Equal(t, Value[string](t, Database(t), "SELECT pg_catalog.current_database()"), Value[string](t, one, "SELECT pg_catalog.current_database()"))
}

// recorder stands in for a test of which is to be seen how it ends.
type recorder struct {
	testing.TB
	fatal, skipped string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// ending runs f to its end, be it a Goexit.
func ending(f func(*recorder)) *recorder {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r
}

func TestRequire_MissingProgramIsNoSilentSkipInCI(t *testing.T) {
	require := require.New(t)
	missing := func(r *recorder) { Require(r, "no-such-program") }
	t.Setenv("CI", "")
	r := ending(missing)
	require.Empty(r.fatal)
	require.Contains(r.skipped, "apt-get install no-such-program")
	t.Setenv("CI", "true")
	r = ending(missing)
	require.Contains(r.fatal, "apt-get install no-such-program")
	require.Empty(r.skipped)
}

func TestRequire_LooksBeyondPATH(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "found")
	require.NoError(t, os.WriteFile(program, nil, 0o755))
	t.Setenv("PATH", dir)
	require.Equal(t, program, Require(t, "found"))
	if matches, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench"); len(matches) > 0 {
		require.Equal(t, matches[len(matches)-1], Require(t, "pgbench"))
	}
}
