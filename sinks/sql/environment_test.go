package sql_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// Not parallel: it sets a variable.
func TestRemote_SendsNoPasswordThatTheEnvironmentHasForAnotherServer(t *testing.T) {
	t.Setenv("PGPASSWORD", "of-the-cursors-database")
	t.Setenv("HOME", t.TempDir())
	sent := make(chan string, 16)
	address := tcptest.Postgres(t, tcptest.Login, func(password string) *pgproto3.ErrorResponse {
		sent <- password
		return &pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: "no"}
	})
	for url, password := range map[string]string{
		"postgres://ledger@" + address + "/d?sslmode=disable":     "",
		"postgres://ledger:own@" + address + "/d?sslmode=disable": "own",
	} {
		remote, err := sql.NewRemote(sql.Config{URL: url, Statements: []string{"SELECT 1"}})
		require.NoError(t, err)
		_, err = remote.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
		require.Error(t, err)
		require.NoError(t, remote.Close())
		require.Equal(t, password, <-sent)
	}
}

func TestNewRemote_TheURLNamesItsUser(t *testing.T) {
	t.Setenv("PGUSER", "cursor")
	_, err := sql.NewRemote(sql.Config{URL: "postgres://h/d", Statements: []string{"SELECT 1"}})
	require.ErrorContains(t, err, "url: the connection string names no user")
	for _, url := range []string{" postgres://u:swordfish@h/d?sslmode=disable", "postgresx://u:swordfish@h/d?sslmode=disable"} {
		_, err = sql.NewRemote(sql.Config{URL: url, Statements: []string{"SELECT 1"}})
		require.ErrorContains(t, err, "url")
		require.NotContains(t, err.Error(), "swordfish")
	}
}
