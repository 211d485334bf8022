package migrations_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

func TestStatus_AStrangerSaysOneMiBInAllBeforeTheLogin(t *testing.T) {
	t.Parallel()
	address, sent := tcptest.PostgresFlood(t, tcptest.Greeting, func(int) pgproto3.BackendMessage {
		return &pgproto3.ParameterStatus{Name: "p", Value: "v"}
	})
	_, err := migrations.Status(t.Context(), migrations.Config{ConnString: "postgres://u@" + address + "/d?sslmode=disable"})
	require.ErrorContains(t, err, "before the login")
	require.Less(t, sent(), int64(1<<26))
}
