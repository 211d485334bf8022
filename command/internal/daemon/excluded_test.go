package daemon_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// TestDoctor_AMigrationWhoseCommitWaitsForAStandbyIsNotToBeEnded: it keeps all readers from its table, the doctor said to end what
// they wait for, and a record that was delivered then was lost in the failover. The doctor and status name the session, and say why not
// to end it; to a role that cannot see what it waits for, too.
func TestDoctor_AMigrationWhoseCommitWaitsForAStandbyIsNotToBeEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ alter, process string }{
		"of the source":  {"ALTER TABLE public.bookings ALTER customer SET DEFAULT 'd'", "a"},
		"of the cursors": {"ALTER TABLE od.cursor SET (autovacuum_enabled = true); ALTER TABLE od.cursor ALTER holder SET DEFAULT ''", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, pool, _ := ownServer(t)
			insert(t, pool, 1)
			whole := configure(t, server.URL(), stdoutProcess)
			config := grantee(t, pool, whole)
			over := withoutAStandby(t, pool, func(ctx context.Context) { _, _ = pool.Exec(ctx, c.alter) })
			waiting(t, pool)
			defer over()

			for _, as := range []struct {
				config      daemon.Config
				which, keep string
			}{
				{whole, "whose COMMIT waits for a synchronous standby", cursor.KeepReplicating},
				{config, "which may be a COMMIT that waits for a synchronous standby", keepHidden},
			} {
				text := looked(t, as.config)
				require.Regexp(t, `pid \d+ .*, `+as.which+` has locked (the table; next: |a table of the cursors; )`, text)
				require.Contains(t, text, as.keep)
				findings, err := daemon.DoctorWithin(t.Context(), as.config, 7*time.Second)
				require.NoError(t, err)
				f := requireFinding(t, findings, daemon.Finding{c.process, daemon.Refuse, "a check did not end in time", as.keep})
				require.Contains(t, f.Problem, as.which)
				requireNoEnd(t, text, findings)
				for _, f := range findings {
					require.NotContains(t, f.Fix, "end what they wait for")
				}
			}
		})
	}
}

// TestStatus_NamesWhoIsInLineToLockTheTable: a look at the source waits after it, and nothing was found that has locked the table.
func TestStatus_NamesWhoIsInLineToLockTheTable(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	open(t, "reads", "SELECT FROM public.bookings")
	conn := session(t, "SELECT 1")
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE public.bookings IN ACCESS EXCLUSIVE MODE")
		ended <- err
	}()
	eventually(t, func() bool {
		return count(t, pool, fmt.Sprintf("SELECT count(*) FROM pg_locks WHERE pid = %d AND NOT granted", conn.PgConn().PID())) == 1
	})
	const who = `; pid \d+ .application "importer".* waits for a lock of all of `
	require.Regexp(t, who+`the table, and who reads that waits after it; next: end its transaction, or: SELECT pg_terminate_backend`, looked(t, config))
	f := requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Refuse, "a check did not end in time", "SELECT pg_terminate_backend"})
	require.Regexp(t, who+`a table, and who reads that waits after it$`, f.Problem)
	exec(t, pool, f.Fix)
	require.Error(t, <-ended)
	require.Empty(t, looked(t, config))
}

// looked is what status says, or its error.
func looked(t *testing.T, config daemon.Config) string {
	t.Helper()
	reader, err := daemon.NewStatusReader(t.Context(), daemon.StatusConfig{Config: config})
	require.NoError(t, err)
	defer reader.Close()
	all, err := reader.Read(t.Context())
	if err != nil {
		return err.Error()
	}
	return all[0].Problem
}
