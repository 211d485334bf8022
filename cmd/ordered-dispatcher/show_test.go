package main_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShow_PrintsWhatAReceiverLacks(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 3)
	config := processes(t, map[string]string{"a": "stdout: {}"})
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"show", "a", "-c", config}, 2, "--after=SEQUENCE"},
		{[]string{"show", "a", "--after=1"}, 2, "name it with -c FILE"},
		{[]string{"show", "a", "--after=-1", "-c", config}, 2, "--after must not be negative"},
		{[]string{"show", "a", "--after=1", "--limit=0", "-c", config}, 2, "--limit must be between"},
		{[]string{"show", "b", "--after=1", "-c", config}, 2, `there is no process "b"`},
		{[]string{"show", "a", "--after=1", "-c", config}, 2, "a has not run yet"},
	} {
		code, stdout, stderr := do(t, address, c.args...)
		require.Equal(t, c.code, code, stderr)
		require.Contains(t, stderr, c.stderr)
		require.Empty(t, stdout)
	}
	code, _, stderr := do(t, address, "run", "-c", config, "--drain")
	require.Zero(t, code, stderr)
	code, stdout, stderr := do(t, address, "show", "a", "--after=1", "--limit=1", "-c", config)
	require.Zero(t, code, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], `"ordered-dedup-key":"public.bookings/2/`)
	require.Contains(t, lines[1], `{"end":{"from":"`)
	code, stdout, _ = do(t, address, "show", "a", "--after=3", "-c", config)
	require.Zero(t, code)
	require.Contains(t, stdout, `{"end":{"sequence":"3"`)
}
