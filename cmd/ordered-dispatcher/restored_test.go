package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRestored_MovesEveryProcess: those that run, and one that halted over the restore; the one
// that an operator paused stays so.
func TestRestored_MovesEveryProcess(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 3)
	config := processes(t, map[string]string{"a": "stdout: {}", "b": "stdout: {}", "c": "stdout: {}"})
	code, _, stderr := do(t, address, "run", "-c", config, "--drain")
	require.Equal(t, 0, code, stderr)
	code, _, stderr = do(t, address, "pause", "c")
	require.Equal(t, 0, code, stderr)

	code, stdout, stderr := do(t, address, "restored", "--all", "--dry-run")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "dry run, nothing is changed. Without --dry-run: a goes on from at.int:")
	code, stdout, stderr = do(t, address, "restored", "--all", "--reason", "the snapshot of 04:00")
	require.Equal(t, 0, code, stderr)
	for _, process := range []string{"a", "b", "c"} {
		require.Regexp(t, `(?m)^`+process+` goes on from at\.int:\S+, under numbers that were not used before \(sequence \d+0000003, epoch \d{14,}\)`, stdout)
	}
	require.Contains(t, stdout, "it stays paused: see `ordered-dispatcher status c`")
	code, stdout, stderr = do(t, address, "history", "a")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "the snapshot of 04:00")
	require.Contains(t, stdout, "restored")
}
