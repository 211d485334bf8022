package main_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestClaimsCollect_ReportsWhatItRemoves(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, must(t, address, "migrate", "outbox"))
	dir := t.TempDir()
	orphan := filepath.Join(dir, "8f", "8f1d000000000000000000000000ffff")
	require.NoError(t, os.Mkdir(filepath.Dir(orphan), 0o750))
	require.NoError(t, os.WriteFile(orphan, []byte("payload"), 0o600))
	past := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(orphan, past, past))
	config := file(t, "processes:\n  a: {source: {table: public.outbox, preset: outbox}, sink: {stdout: {}}, start: beginning, claims: "+dir+"}\n")

	require.Equal(t, dir+": 0 objects removed, 0 bytes\n", must(t, address, "claims", "collect", "-c", config))
	require.Equal(t, dir+": 1 object would be removed, 7 bytes\n", must(t, address, "claims", "collect", "-c", config, "--older-than", "1h", "--dry-run"))
	require.FileExists(t, orphan)
	require.Equal(t, dir+": 1 object removed, 7 bytes\n", must(t, address, "claims", "collect", "-c", config, "--older-than", "1h"))
	require.NoFileExists(t, orphan)
	code, _, stderr := do(t, address, "claims", "collect", "-c", config, "--also", "public.none")
	require.Equal(t, 2, code, stderr)
	require.Contains(t, stderr, "there is no table public.none: write it with its schema")
}
