package daemon_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

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
