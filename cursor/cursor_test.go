package cursor_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

const schema = "dispatch"

// patience bounds the wait for an event that must come. It is shorter than two
// minutes, after which a lease of ten is pinged.
const patience = 30 * time.Second

// database makes the cursor tables; its cleanup audits what the test did.
func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Database(t)
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: pgtest.URL(t), Schema: schema})
	require.NoError(t, err)
	audit(t, pool)
	return pool
}

// audit records every change of a cursor, and fails the test if one ever went
// back: position, sequence and epoch only grow, but for the position of a seek,
// which takes a new epoch and other numbers, and that of a cursor without a place.
func audit(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	exec(t, pool, `
		CREATE TABLE dispatch.audit (
			n bigint GENERATED ALWAYS AS IDENTITY, process text, backward boolean, step text);
		CREATE FUNCTION dispatch.audit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
		BEGIN
			INSERT INTO dispatch.audit (process, backward, step) VALUES (
				new.process_name,
				new.position < old.position AND old.position <> 'unplaced' AND (new.epoch = old.epoch OR new.sequence = old.sequence)
					OR new.sequence < old.sequence OR new.epoch < old.epoch,
				old.position || ' -> ' || new.position || ', epoch ' || old.epoch || ' -> ' || new.epoch);
			RETURN NULL;
		END $$;
		CREATE TRIGGER audit AFTER UPDATE ON dispatch.cursor FOR EACH ROW EXECUTE FUNCTION dispatch.audit()`)
	t.Cleanup(func() {
		rows, err := pool.Query(context.Background(), `SELECT step FROM dispatch.audit WHERE backward ORDER BY n`)
		if err != nil {
			return // the test took the tables away
		}
		steps, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		require.Empty(t, steps, "a cursor went back")
	})
}

func exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func store(t testing.TB, pool *pgxpool.Pool, worker string) *cursor.Store {
	t.Helper()
	s, err := cursor.NewStore(pool, cursor.Config{Schema: schema, Worker: worker})
	require.NoError(t, err)
	return s
}

// created is a store whose process "sms" exists.
func created(t testing.TB, pool *pgxpool.Pool, worker string) *cursor.Store {
	t.Helper()
	s := store(t, pool, worker)
	_, err := s.Create(t.Context(), "sms", "")
	require.NoError(t, err)
	return s
}

func acquire(t testing.TB, s *cursor.Store) *cursor.Lease {
	t.Helper()
	lease, err := s.Acquire(t.Context(), "sms")
	require.NoError(t, err)
	t.Cleanup(lease.Release)
	return lease
}

// over waits for the end of a lease and returns its cause.
func over(t testing.TB, lease *cursor.Lease) error {
	t.Helper()
	select {
	case <-lease.Context().Done():
		return cause(lease)
	case <-time.After(patience):
		t.Fatal("the lease did not end")
		return nil
	}
}
