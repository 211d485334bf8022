package daemon_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

func TestPool_NoHostGetsThePasswordThatAFileHasForAnother(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pgpass")
	require.NoError(t, os.WriteFile(file, []byte("a:*:*:*:hers\n"), 0o600))
	database := "host=a,b user=u dbname=d passfile='" + file + "'"
	_, err := daemon.PoolError(database)
	require.ErrorContains(t, err, "has not the same password for each")
	_, err = migrations.Status(t.Context(), migrations.Config{ConnString: database})
	require.ErrorContains(t, err, "has not the same password for each")
	require.NoError(t, os.WriteFile(file, []byte("*:*:*:*:ours\n"), 0o600))
	_, err = daemon.PoolError(database)
	require.NoError(t, err)
}
