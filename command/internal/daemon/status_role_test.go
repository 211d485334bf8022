package daemon_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestStatus_NeverNamesAWorkerAsAWriter: who asks has another role than the worker, as
// an operator has.
func TestStatus_NeverNamesAWorkerAsAWriter(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "ALTER TABLE public.bookings ALTER COLUMN created_at SET DEFAULT now()")
	config := configure(t, pgtest.URL(t), stdoutProcess)
	require.NoError(t, drain(t, config))
	role, address := stranger(t, pool)
	exec(t, pool, fmt.Sprintf(`GRANT ALL ON SCHEMA od TO %[1]q; GRANT ALL ON ALL TABLES IN SCHEMA od, public TO %[1]q; GRANT pg_read_all_stats TO %[1]q`, role))
	asked := config
	asked.Database = address

	insert(t, pool, 1)
	open(t, config.Watching("ordered-dispatcher"), "SELECT") // the worker, of the owner's role
	for _, name := range []string{cursor.ApplicationLease + "a", "ordered-dispatcher read x", cursor.ApplicationOperator + "a"} {
		open(t, name, "SELECT")
	}
	exec(t, pool, "UPDATE od.cursor SET position = ''")
	all, text, document := status(t, asked, "")
	for _, w := range all[0].Holding {
		require.False(t, w.Ours, "%+v", w)
	}
	require.NotContains(t, text, cursor.ApplicationLease)
	require.Len(t, document["held_back_by"], 1, "the session of no such name, which is not ended in this test")
	for _, f := range doctor(t, asked) {
		require.NotContains(t, f.Problem, cursor.ApplicationLease)
	}

	// A worker of another role waits for them.
	other := pgtest.Pool(t, address, pgtest.PoolConfig{ApplicationName: config.Watching("second")})
	exec(t, other, "INSERT INTO od.cursor_event (process_name, actor, action, detail) SELECT process_name, actor, action, detail FROM od.cursor_event WHERE action = 'watch'")
	_, text, _ = status(t, asked, "")
	require.Regexp(t, `a: records are held back by a session of the dispatcher, of another role than its worker: pid \d+ .application "ordered-dispatcher lease a".*; next: run all of the dispatcher as one role`, text)
	require.NotRegexp(t, `ordered-dispatcher lease a.*pg_terminate_backend`, text)
	findings := doctor(t, asked) // a note at first, a warning later
	require.True(t, slices.ContainsFunc(findings, func(f daemon.Finding) bool {
		return strings.Contains(f.Problem, `application "ordered-dispatcher lease a"`) && strings.HasPrefix(f.Fix, "run all of the dispatcher as one role")
	}), "%+v", findings)
}
