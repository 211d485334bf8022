package prepared_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

const sumSQL = `/* prepared.test */ SELECT $1::int + 1`

// left counts the statements prepared in the session that answers.
func left(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	result := conn.PgConn().ExecParams(t.Context(), `SELECT count(*) FROM pg_prepared_statements`, nil, nil, nil, nil).Read()
	require.NoError(t, result.Err)
	return string(result.Rows[0][0])
}

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// sum sends a statement twice in one flush.
func sum(t *testing.T, conn *pgx.Conn) error {
	t.Helper()
	require.NoError(t, prepared.Ready(t.Context(), conn, nil, sumSQL))
	results, err := prepared.Exec(t.Context(), conn,
		prepared.Statement{SQL: sumSQL, Args: [][]byte{[]byte("1")}},
		prepared.Statement{SQL: sumSQL, Args: [][]byte{[]byte("41")}}).ReadAll()
	if err == nil {
		require.Equal(t, "2", string(results[0].Rows[0][0]))
		require.Equal(t, "42", string(results[1].Rows[0][0]))
	}
	return err
}

func TestReady_PreparesOnceOnADirectConnection(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	require.NoError(t, sum(t, conn))
	require.NoError(t, sum(t, conn))
	require.Equal(t, "1", left(t, conn))
	require.Equal(t, byte('I'), conn.PgConn().TxStatus())
}

func TestReady_LeavesNothingOnAPooledSession(t *testing.T) {
	t.Parallel()
	address := pgtest.PgBouncer(t, pgtest.URL(t))
	for range 3 {
		conn := connect(t, address)
		require.NoError(t, sum(t, conn))
		require.Equal(t, "0", left(t, conn))
	}
}

func TestExec_ClosesASessionThatForgotItsStatements(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	require.NoError(t, sum(t, conn))
	_, err := conn.Exec(t.Context(), "DISCARD ALL")
	require.NoError(t, err)
	require.ErrorContains(t, sum(t, conn), "are no longer valid")
	require.True(t, conn.IsClosed())
	require.NoError(t, sum(t, connect(t, pgtest.URL(t))))
}
