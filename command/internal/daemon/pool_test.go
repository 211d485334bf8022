package daemon_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

func withDatabase(t testing.TB, address, name string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	u.Path = "/" + name
	return u.String()
}

func TestPool_Defaults(t *testing.T) {
	t.Parallel()
	config := daemon.PoolConfig(t, "postgres://u@h/d", 5)
	require.EqualValues(t, 12, config.MaxConns)
	require.Equal(t, pgx.QueryExecModeExec, config.ConnConfig.DefaultQueryExecMode)
	require.Equal(t, "ordered-dispatcher", config.ConnConfig.RuntimeParams["application_name"])
	require.Equal(t, 10*time.Second, config.ConnConfig.ConnectTimeout)
	require.Nil(t, config.ConnConfig.ValidateConnect, "one host: whoever answers")

	require.NotNil(t, daemon.PoolConfig(t, "postgres://u@h1,h2/d", 5).ConnConfig.ValidateConnect, "several hosts: the primary")
}

func TestPool_TheConnectionStringWins(t *testing.T) {
	t.Parallel()
	config := daemon.PoolConfig(t, "postgres://u@h1,h2/d?pool_max_conns=3&application_name=mine&connect_timeout=2&target_session_attrs=any", 5)
	require.EqualValues(t, 3, config.MaxConns)
	require.Equal(t, "mine", config.ConnConfig.RuntimeParams["application_name"])
	require.Equal(t, 2*time.Second, config.ConnConfig.ConnectTimeout)
	require.Nil(t, config.ConnConfig.ValidateConnect)
}

// A pool on which processes wait for each other's connections delivered a part, and
// then nothing, without a word.
func TestRun_RefusesAPoolThatIsTooSmall(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	two := stdoutProcess + "  b: {source: {table: public.bookings}, sink: {stdout: {}}, start: beginning}\n"
	err := drain(t, configure(t, with(t, pgtest.URL(t), "pool_max_conns", "5"), two))
	require.ErrorContains(t, err, "pool_max_conns in the connection string allows 5 connections, and 2 processes need 6: remove it, or raise it to 6")
	require.Equal(t, daemon.ExitUsage, daemon.ExitCode(err))
	require.NoError(t, drain(t, configure(t, with(t, pgtest.URL(t), "pool_max_conns", "6"), two)))
}

func TestDrain_WorksThroughPgBouncerInTransactionMode(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "CREATE TABLE public.model (id bigint PRIMARY KEY)")
	insert(t, pool, 20)
	config := configure(t, pgtest.PgBouncer(t, pgtest.URL(t)), stdoutProcess+
		"  b: {source: {table: public.bookings}, sink: {sql: {statement: INSERT INTO public.model VALUES (@id)}}}\n")
	require.NoError(t, drain(t, config))
	require.Equal(t, 20, count(t, pool, "SELECT count(*) FROM public.model"))
	require.False(t, daemon.Wrong(doctor(t, config)))
	_, text, _ := status(t, config, "b")
	require.Regexp(t, `b +running +0 +0s +20 `, text)
}

func TestPool_NoHostGetsThePasswordThatAFileHasForAnother(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pgpass")
	require.NoError(t, os.WriteFile(file, []byte("a:*:*:*:hers\n"), 0o600))
	database := "host=a,b user=u dbname=d passfile='" + file + "'"
	_, err := daemon.PoolError(database)
	require.ErrorContains(t, err, "does not have the same password for all of them")
	_, err = migrations.Status(t.Context(), migrations.Config{ConnString: database})
	require.ErrorContains(t, err, "does not have the same password for all of them")
	require.NoError(t, os.WriteFile(file, []byte("*:*:*:*:ours\n"), 0o600))
	_, err = daemon.PoolError(database)
	require.NoError(t, err)
}

func TestPool_AStrangerIsNotHeardOutBeforeTheLogin(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]tcptest.Moment{"before the password": tcptest.Greeting, "after it": tcptest.Login} {
		address := tcptest.Postgres(t, at, tcptest.Long(2<<20))
		pool, err := pgxpool.NewWithConfig(t.Context(), daemon.PoolConfig(t, "postgres://u@"+address+"/d?sslmode=disable", 1))
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		err = pool.Ping(t.Context())
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "22000", "%s: the message was read to its end", name)
	}
}

func TestPool_TakesLargeMessagesAfterTheLogin(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.NewWithConfig(t.Context(), daemon.PoolConfig(t, pgtest.URL(t), 1))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	require.Len(t, pgtest.Value[string](t, pool, "SELECT pg_catalog.repeat('x', 3000000)"), 3_000_000)
}

// The driver keeps each parameter that a server reports, and bounds one message alone.
func TestPool_AStrangerSaysOneMiBInAllBeforeTheLogin(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]int{"small messages": 10, "long ones": 60_000} {
		for when, at := range map[string]tcptest.Moment{"before the password": tcptest.Greeting, "after it": tcptest.Login} {
			address, sent := tcptest.PostgresFlood(t, at, func(int) pgproto3.BackendMessage {
				return &pgproto3.ParameterStatus{Name: "p", Value: strings.Repeat("v", value)}
			})
			pool, err := pgxpool.NewWithConfig(t.Context(), daemon.PoolConfig(t, "postgres://u@"+address+"/d?sslmode=disable&connect_timeout=60", 1))
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			require.ErrorContains(t, pool.Ping(t.Context()), "before the login", "%s, %s", name, when)
			require.Less(t, sent(), int64(1<<26), "%s, %s", name, when)
		}
	}
}

// TestConnect_NamesAPoolerWhoseConnectionsAreAllInUse: it takes the connection, and is silent.
func TestConnect_NamesAPoolerWhoseConnectionsAreAllInUse(t *testing.T) {
	t.Parallel()
	database(t)
	address := pgtest.Bouncer{PoolMode: "session", PoolSize: 1}.Start(t, pgtest.URL(t))
	inUse := pgtest.Pool(t, address, pgtest.PoolConfig{})
	require.NoError(t, inUse.Ping(t.Context()))
	config := configure(t, address, stdoutProcess)
	err := askStatus(t.Context(), config)
	require.ErrorContains(t, err, "or whether a pooler in between has all of its connections in use")
	findings, err := daemon.Doctor(t.Context(), config)
	require.NoError(t, err)
	require.Len(t, findings, 1)
	requireFinding(t, findings, daemon.Finding{"", daemon.Refuse, "cannot connect",
		"or give a pooler in between more connections, if all that it has are in use"})
}
