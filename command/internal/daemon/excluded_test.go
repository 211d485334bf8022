package daemon_test

import (
	"context"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
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
				require.NotContains(t, fixes(findings), "end what they wait for")
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
	untilTrue(t, pool, "SELECT count(*) = 1 FROM pg_locks WHERE pid = $1 AND NOT granted", conn.PgConn().PID())
	const who = `; pid \d+ .application "importer".* waits for a lock of all of `
	require.Regexp(t, who+`the table, and who reads that waits after it; next: end its transaction, or: SELECT pg_terminate_backend`, looked(t, config))
	f := requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Refuse, "a check did not end in time", "SELECT pg_terminate_backend"})
	require.Regexp(t, who+`a table, and who reads that waits after it$`, f.Problem)
	exec(t, pool, f.Fix)
	require.Error(t, waittest.Receive(t, ended, "the statement ends"))
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

// TestDoctor_ACheckThatFindsAPoolersConnectionsInUseSaysSo: it said to find whose lock the check waited for, and to end that session.
func TestDoctor_ACheckThatFindsAPoolersConnectionsInUseSaysSo(t *testing.T) {
	t.Parallel()
	const patience = 5 * time.Second
	pool, _ := drained(t, stdoutProcess)
	address := pgtest.Bouncer{PoolSize: 1}.Start(t, pgtest.URL(t))
	table := begin(t, pool, "LOCK TABLE public.bookings")
	other := pgtest.Connect(t, with(t, address, "default_query_exec_mode", "exec"))

	config := configure(t, address, stdoutProcess)
	var findings []daemon.Finding
	ended := make(chan error, 2)
	go func() {
		var err error
		findings, err = daemon.DoctorWithin(t.Context(), config, patience)
		ended <- err
	}()
	untilTrue(t, pool, "SELECT count(*) = 1 FROM pg_locks WHERE relation = 'public.bookings'::regclass AND NOT granted")
	go func() { // is next in line, and keeps the connection until the check has ended
		_, err := other.Exec(t.Context(), "SELECT pg_sleep($1)", patience.Seconds())
		ended <- err
	}()
	eventually(t, func() bool { return clientsInLine(t, address) })
	require.NoError(t, table.Rollback(t.Context()))
	require.NoError(t, waittest.Receive(t, ended, "the check or the statement ends"))
	require.NoError(t, waittest.Receive(t, ended, "the check or the statement ends"))
	f := requireFinding(t, findings, daemon.Finding{"a", daemon.Refuse, "a check did not end in time",
		"check whether a pooler has all its connections in use, or the server hangs. If neither: find the session that holds the lock, as a superuser"})
	require.Contains(t, f.Fix, "pg_blocking_pids")
}

// clientsInLine reports whether a client of a PgBouncer waits for a connection.
func clientsInLine(t *testing.T, address string) bool {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	u.Path = "/pgbouncer"
	conn, err := pgconn.Connect(t.Context(), u.String())
	require.NoError(t, err)
	defer conn.Close(context.Background())
	results, err := conn.Exec(t.Context(), "SHOW POOLS").ReadAll()
	require.NoError(t, err)
	at := slices.IndexFunc(results[0].FieldDescriptions, func(f pgconn.FieldDescription) bool { return f.Name == "cl_waiting" })
	return slices.ContainsFunc(results[0].Rows, func(row [][]byte) bool { return string(row[at]) != "0" })
}
