package main_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// eventuallyTrue waits until a query of one boolean is true.
func eventuallyTrue(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	require.Eventually(t, func() bool { return pgtest.Value[bool](t, pool, sql) }, patience, 10*time.Millisecond, sql)
}

// noOperator: no transaction of an operator's decision is open.
const noOperator = `SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'ordered-dispatcher operator %'`

// TestSwitch_ACommandThatIsKilledChangesNothing: by SIGKILL, while it waits for the new version, and within the change.
func TestSwitch_ACommandThatIsKilledChangesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change, reached string
		behind          bool
	}{
		"while it waits": {"SELECT 1", `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%/* cursor.look */%')`, true},
		"in the change":  {"SELECT pg_advisory_xact_lock(7)", `SELECT EXISTS (SELECT FROM pg_locks WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND locktype = 'advisory' AND objid = 7 AND NOT granted)`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, pool := database(t, 2)
			version := func(name string) string {
				return name + ": {source: {table: public.bookings}, start: beginning, sink: {sql: {statement: SELECT 1}}}"
			}
			config := file(t, "processes: {"+version("v1")+", "+version("v2")+"}")
			must(t, address, "run", "--drain", "-c", config)
			pgtest.Exec(t, pool, "CREATE VIEW public.balance AS SELECT 1 AS version")
			if c.behind {
				insert(t, pool, 1)
				must(t, address, "run", "--drain", "-c", file(t, "processes: {"+version("v1")+"}"))
			}
			other := pgtest.Begin(t, pool, "SELECT pg_advisory_xact_lock(7)")

			p := start(t, address, "process", "switch", "v1", "v2", "-c", config, "--reason=x",
				"--sql=CREATE OR REPLACE VIEW public.balance AS SELECT 2 AS version", "--sql="+c.change)
			eventuallyTrue(t, pool, c.reached)
			p.signal(syscall.SIGKILL)
			require.Equal(t, -1, p.wait())
			require.NoError(t, other.Rollback(context.WithoutCancel(t.Context()))) // the server hears of it once its statement ends

			eventuallyTrue(t, pool, noOperator)
			require.Equal(t, 1, pgtest.Value[int](t, pool, "SELECT version FROM public.balance"))
			require.Zero(t, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.cursor_event WHERE action LIKE 'switched%'"))
			pgtest.Exec(t, pool, "SELECT FROM public.cursor WHERE process_name = 'v1' FOR UPDATE NOWAIT")
			if c.behind {
				must(t, address, "run", "--drain", "-c", config)
			}
			must(t, address, "process", "switch", "v1", "v2", "-c", config, "--reason=x", "--sql=CREATE OR REPLACE VIEW public.balance AS SELECT 2 AS version")
			require.Equal(t, 2, pgtest.Value[int](t, pool, "SELECT version FROM public.balance"))
		})
	}
}
