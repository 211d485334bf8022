package daemon_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
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
	var n int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM public.model").Scan(&n))
	require.Equal(t, 20, n)
	require.False(t, daemon.Wrong(doctor(t, config)))
	_, text, _ := status(t, config, "b")
	require.Regexp(t, `b +running +0 +0s +20 `, text)
}
