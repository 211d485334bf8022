package cursor_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// piled is how many versions of the row a stranger's snapshot keeps, on some seventy pages.
const piled = 2000

// mostBlocks is more than a checkpoint reads of table and index, and less than one that looks through what is piled up.
const mostBlocks = 40

func TestAdvance_LooksThroughNoVersionsThatAStrangersSnapshotKeeps(t *testing.T) {
	t.Parallel()
	for _, lease := range []struct {
		name    string
		acquire func(context.Context, *cursor.Store) (*cursor.Lease, error)
	}{
		{"each", func(ctx context.Context, s *cursor.Store) (*cursor.Lease, error) { return s.Acquire(ctx, "sms") }},
		{"in a transaction", func(ctx context.Context, s *cursor.Store) (*cursor.Lease, error) { return s.AcquireTx(ctx, "sms", 0) }},
	} {
		for _, first := range []string{"ANALYZE", "VACUUM ANALYZE"} { // the smallest table has a plan of its own
			t.Run(lease.name+" after "+first, func(t *testing.T) {
				t.Parallel()
				pool := database(t)
				s := created(t, pool, "a")
				exec(t, pool, first+` dispatch.cursor`)
				l, err := lease.acquire(t.Context(), s)
				require.NoError(t, err)
				t.Cleanup(l.Release)
				n := advanceTimes(t, l, 0, 10) // plans are made
				snapshot(t, pool)
				n = advanceTimes(t, l, n, piled)
				cursor.Unplanned(l)
				n, before := advanceUntil(t, l, n, pool, int64(n))
				_, after := advanceUntil(t, l, n, pool, before.updates+200)
				require.Less(t, (after.blocks-before.blocks)/(after.updates-before.updates), int64(mostBlocks))
			})
		}
	}
}

// advanceTimes returns how many advances there were in all.
func advanceTimes(t *testing.T, l *cursor.Lease, from, n int) int {
	t.Helper()
	for i := range n {
		require.NoError(t, l.Advance(t.Context(), cursor.Position(fmt.Sprintf("int:%020d", from+i+1)), 1))
	}
	return from + n
}

// snapshot is held until the test ends.
func snapshot(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(conn.Release)
	for _, sql := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1 FROM dispatch.cursor"} {
		exec(t, conn, sql)
	}
}

// counted is what the server has counted of the cursor table: blocks that were read of it and its index, and updates.
type counted struct{ blocks, updates int64 }

// advanceUntil goes on until the server has counted that many updates. It does so now and then.
func advanceUntil(t *testing.T, l *cursor.Lease, n int, pool *pgxpool.Pool, updates int64) (int, counted) {
	t.Helper()
	for began := time.Now(); ; {
		n = advanceTimes(t, l, n, 10)
		var c counted
		require.NoError(t, pool.QueryRow(t.Context(), `
			SELECT heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit, n_tup_upd
			FROM pg_catalog.pg_statio_all_tables
			JOIN pg_catalog.pg_stat_all_tables USING (relid)
			WHERE relid = 'dispatch.cursor'::regclass`).Scan(&c.blocks, &c.updates))
		if c.updates >= updates {
			return n, c
		}
		require.Less(t, time.Since(began), patience, "%d updates are counted", c.updates)
	}
}

func TestAdvance_GoesOnWhereTheVersionIsNotTheOneThatWasNoted(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	exec(t, pool, `
		CREATE FUNCTION public.again() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			UPDATE dispatch.cursor SET updated_at = clock_timestamp() WHERE process_name = NEW.process_name;
			RETURN NULL;
		END $$;
		CREATE TRIGGER again AFTER UPDATE ON dispatch.cursor FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION public.again()`)
	l := acquire(t, s)
	advanceTimes(t, l, 0, 3)
	require.NoError(t, l.Context().Err())
	require.Equal(t, int64(3), l.Sequence())
}
