package main_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	shellLine = regexp.MustCompile(`(?m)^ *ordered-dispatcher (.+)$`)
	sqlBlock  = regexp.MustCompile("(?s)```sql\n(.*?)```")
	words     = regexp.MustCompile(`"[^"]*"|\S+`)
)

// TestRecovery_ThePagesCommandsAndQueriesWork: in the order in which they stand there, on a
// process that has delivered.
func TestRecovery_ThePagesCommandsAndQueriesWork(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/recovery.md")
	require.NoError(t, err)
	address, pool := database(t, 3)
	config := processes(t, map[string]string{"booking_sms": "stdout: {}"})
	code, _, stderr := do(t, address, "run", "-c", config, "--drain")
	require.Zero(t, code, stderr)
	lines := shellLine.FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(lines), 10)
	for _, line := range lines {
		args := words.FindAllString(line[1], -1)
		for i, arg := range args {
			args[i] = strings.Trim(strings.ReplaceAll(arg, "dispatcher.yaml", config), `"`)
		}
		code, stdout, stderr := do(t, address, args...)
		if args[0] == "doctor" { // the tests' role is a superuser
			require.Contains(t, stdout, "\n0 errors, ", line[1])
			continue
		}
		require.Zero(t, code, "%s: %s%s", line[1], stdout, stderr)
	}
	blocks := sqlBlock.FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		execute(t, pool, "SET search_path = public; "+block[1])
	}
}
