package answer_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
)

// connect returns the error of connecting.
func connect(t testing.TB, address string) error {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = answer.Conn(t.Context(), pool, time.Minute)
	var connectErr *pgconn.ConnectError
	require.ErrorAs(t, err, &connectErr)
	return err
}

// TestConn_NamesEachCauseOnceInOneLine: the driver tries each address with TLS and without it.
func TestConn_NamesEachCauseOnceInOneLine(t *testing.T) {
	t.Parallel()
	closed, other := tcptest.Closed(t), tcptest.Closed(t)
	refused := func(address string) string {
		return address + " (127.0.0.1): dial error: dial tcp " + address + ": connect: connection refused"
	}
	require.EqualError(t, connect(t, "postgres://u@"+closed+"/d"), "failed to connect to `user=u database=d`: "+refused(closed))
	require.EqualError(t, connect(t, "postgres://u@"+closed+","+other+"/d"), "failed to connect to `user=u database=d`: "+refused(closed)+"; "+refused(other))
}

// TestConn_NamesTheAnswerOfAServerAlone: and not that it refused TLS before.
func TestConn_NamesTheAnswerOfAServerAlone(t *testing.T) {
	t.Parallel()
	wrong := pgtest.With(t, pgtest.As(t, pgtest.URL(t), "postgres", "wrong"), "sslmode", "prefer")
	err := connect(t, wrong)
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, "28P01", pgErr.Code)
	require.Contains(t, err.Error(), "password authentication failed")
	require.NotContains(t, err.Error(), "TLS")
	require.NotContains(t, err.Error(), "\n")
}

// TestConn_NamesAllHostsThatFail: any of them may be the one to repair.
func TestConn_NamesAllHostsThatFail(t *testing.T) {
	t.Parallel()
	wrong, err := url.Parse(pgtest.As(t, pgtest.URL(t), "postgres", "wrong"))
	require.NoError(t, err)
	closed := tcptest.Closed(t)
	wrong.Host = closed + "," + wrong.Host
	err = connect(t, wrong.String())
	require.ErrorContains(t, err, closed)
	require.ErrorContains(t, err, "password authentication failed")
}
