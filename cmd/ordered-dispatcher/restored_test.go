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
	require.Contains(t, stdout, "dry run, nothing is changed. Without --dry-run: a would go on from at.int:")
	code, stdout, stderr = do(t, address, "restored", "--all", "--reason", "the snapshot of 04:00")
	require.Equal(t, 0, code, stderr)
	for _, process := range []string{"a", "b", "c"} {
		require.Regexp(t, `(?m)^`+process+` goes on from at\.int:\S+, with new numbers \(sequence \d+0000003, epoch \d{14,}\)`, stdout)
	}
	require.Contains(t, stdout, "it stays paused: see `ordered-dispatcher status c`")
	code, stdout, stderr = do(t, address, "history", "a")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "the snapshot of 04:00")
	require.Contains(t, stdout, "restored")
}

// TestRestored_OnWhatMayBeAnOldPrimaryNeedsFenced: of all cursors, also those of processes that have not noticed.
func TestRestored_OnWhatMayBeAnOldPrimaryNeedsFenced(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 3)
	config := processes(t, map[string]string{"a": "stdout: {}", "b": "stdout: {}"})
	code, _, stderr := do(t, address, "run", "-c", config, "--drain")
	require.Equal(t, 0, code, stderr)
	const halted = "UPDATE public.cursor SET state = 'halted', failed_class = 'old_primary', failed_record_id = '', failed_position = position, failed_attempts = 0, failed_error = 'it is an old one', " +
		"first_failed_at = now(), last_failed_at = now(), next_attempt_at = now() WHERE process_name = 'b'"
	execute(t, pool, halted)
	for _, args := range [][]string{{"restored", "--all", "--reason=x"}, {"restored", "--all", "--dry-run"}, {"restored", "b", "--reason=x"}, {"retry", "b"}, {"seek", "b", "-c", config, "--to-start", "--reason=x"}} {
		code, stdout, stderr := do(t, address, args...)
		require.Equal(t, 1, code, args)
		require.Empty(t, stdout, args)
		require.Contains(t, stderr, "this server may be an old primary, where nothing must be decided", args)
		require.Contains(t, stderr, "it is an old one", args)
		require.Contains(t, stderr, "nothing was changed", args)
	}
	for _, args := range [][]string{{"restored", "--all", "--reason=x", "--fenced"}, {"restored", "b", "--reason=x", "--fenced"}, {"retry", "b", "--fenced"}, {"seek", "b", "-c", config, "--to-start", "--reason=x", "--fenced"}} {
		execute(t, pool, halted)
		code, _, stderr := do(t, address, args...)
		require.Equal(t, 0, code, stderr)
	}
}
