package main_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// confined is a role that has what `grants` prints for workers and operators, and what it prints in comments.
func confined(t testing.TB, address, config string, pool *pgxpool.Pool) (support, comments string) {
	t.Helper()
	role := pgtest.Role(t, pool, "support_", "LOGIN PASSWORD 'secret'")
	code, stdout, stderr := do(t, address, "grants", "-c", config, "--role", role, "--operator", role)
	require.Zero(t, code, stderr)
	execute(t, pool, stdout)
	return pgtest.As(t, address, role, "secret"), strings.Join(regexp.MustCompile(`(?m)^-- (GRANT .*;)$`).FindAllString(stdout, -1), "\n")
}

func TestDeadLetter_ReplayTakesTheRightThatGrantsNamesInAComment(t *testing.T) {
	t.Parallel()
	address, config, pool, takes, taken := refused(t, 1)
	support, comments := confined(t, address, config, pool)
	takes.Store(new("1"))

	code, stdout, stderr := do(t, support, "dead-letter", "show", "1")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, `"withheld": true`)
	code, _, stderr = do(t, support, "dead-letter", "show", "1", "--payload")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "`ordered-dispatcher grants --operator` names the right, SELECT (headers, payload)")
	code, _, stderr = do(t, support, "dead-letter", "replay", "1", "-c", config)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "permission denied for table dead_letter")
	require.Contains(t, stderr, "the right for dead-letter replay, which it prints as a comment")
	require.Empty(t, taken())
	code, stdout, _ = do(t, support, "dead-letter", "list")
	require.Zero(t, code)
	require.Contains(t, stdout, "open")

	execute(t, pool, strings.ReplaceAll(comments, "-- ", ""))
	code, _, stderr = do(t, support, "dead-letter", "replay", "1", "-c", config)
	require.Zero(t, code, stderr)
	require.Equal(t, []string{"1"}, taken())
	_, stdout, _ = do(t, support, "dead-letter", "show", "1", "--payload")
	require.Contains(t, stdout, `"id":1`)
}
