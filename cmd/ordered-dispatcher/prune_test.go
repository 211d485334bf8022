package main_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrune_ShowsWhatWentAndWhoHoldsRowsBack(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 3)
	execute(t, pool, "UPDATE public.bookings SET created_at = timestamptz '2026-01-01 00:00Z' + id * interval '1 minute'")
	path := processes(t, map[string]string{"a": "stdout: {}"})
	code, _, stderr := do(t, address, "run", "--drain", "-c", path)
	require.Zero(t, code, stderr)
	code, _, stderr = do(t, address, "prune", "-c", path)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "the file has no rule of retention: add one, as in `retention: {public.bookings: {keep: 168h}}`")

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	path = file(t, string(text)+"retention: {public.bookings: {keep: 1h}}\n")
	code, stdout, stderr := do(t, address, "prune", "-c", path, "--dry-run")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "public.bookings (delete): 3 rows would be removed in 1 transaction, up to at.int:2026-01-01T00:03:00.000000Z/00000000000000000003\n")

	execute(t, pool, "UPDATE public.cursor SET position = 'at.int:2026-01-01T00:01:00.000000Z/00000000000000000001', state = 'paused'")
	code, stdout, stderr = do(t, address, "prune", "-c", path, "public.bookings")
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "public.bookings (delete): 1 row removed in 1 transaction, up to at.int:2026-01-01T00:01:00.000000Z/00000000000000000001\n"+
		"  a (paused) has not passed row 2 of 2026-01-01T00:02:00Z: ordered-dispatcher resume a; if nobody runs it any more: ordered-dispatcher process forget a --reason …")
	require.Contains(t, stderr, "retention of public.bookings with keep 1h0m0s would pass the cursor of a, so it stopped there")

	code, _, stderr = do(t, address, "seek", "a", "-c", path, "--to-start", "--reason", "again")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "were removed (retention, mode delete), so this replay would lack them")
	code, _, stderr = do(t, address, "seek", "a", "-c", path, "--to-start", "--reason", "again", "--pruned")
	require.Zero(t, code, stderr)

	code, stdout, stderr = do(t, address, "erase", "public.bookings", "-c", path, "--key", "3", "--by", "id", "--reason", "request 7", "--dry-run")
	require.Equal(t, 1, code, stdout)
	require.Contains(t, stderr, "process a has yet to deliver row 3 of that key. Nothing was erased")
	code, _, stderr = do(t, address, "run", "--drain", "-c", path)
	require.Equal(t, 1, code, stderr) // it is paused
	execute(t, pool, "UPDATE public.cursor SET state = 'running'")
	code, _, stderr = do(t, address, "run", "--drain", "-c", path)
	require.Zero(t, code, stderr)
	insert(t, pool, 1)
	code, _, stderr = do(t, address, "run", "--drain", "-c", path)
	require.Zero(t, code, stderr)
	code, stdout, stderr = do(t, address, "erase", "public.bookings", "-c", path, "--key", "4", "--by", "id", "--reason", "request 7")
	require.Zero(t, code, stderr)
	require.Equal(t, "public.bookings: 1 row erased, 0 rows in the archive table, 0 dead letters; noted in the history of a\n", stdout)
	code, stdout, stderr = do(t, address, "history", "a")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "request 7")
}
