package processor_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const schema = "dispatch"

// database makes the cursor tables and a table of bookings.
func database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Database(t)
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: pool.Config().ConnString(), Schema: schema})
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `CREATE TABLE dispatch.bookings (
		id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
		customer text NOT NULL,
		payload jsonb NOT NULL DEFAULT '{}')`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `CREATE INDEX ON dispatch.bookings (created_at, id)`)
	require.NoError(t, err)
	return pool
}

func insert(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `INSERT INTO dispatch.bookings (customer) SELECT 'c' || i FROM generate_series(1, $1::int) i`, n)
	require.NoError(t, err)
}

func store(t testing.TB, pool *pgxpool.Pool) *cursor.Store {
	t.Helper()
	s, err := cursor.NewStore(pool, cursor.Config{Schema: schema})
	require.NoError(t, err)
	return s
}

func source(t testing.TB, pool *pgxpool.Pool) *table.Source {
	t.Helper()
	s, err := table.New(pool, table.Config{Table: "dispatch.bookings"})
	require.NoError(t, err)
	return s
}

// receiver is a sink that remembers.
type receiver struct {
	mu  sync.Mutex
	got []processor.Delivery
}

func (r *receiver) Deliver(_ context.Context, d processor.Delivery) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, d)
	return nil
}

func (r *receiver) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for _, d := range r.got {
		ids = append(ids, d.ID)
	}
	return ids
}

func process(t testing.TB, pool *pgxpool.Pool, dispatch processor.Dispatch, change func(*processor.Config)) *processor.Process {
	t.Helper()
	config := processor.Config{
		Process:  "sms",
		Store:    store(t, pool),
		Source:   source(t, pool),
		Dispatch: dispatch,
		Logger:   slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&config)
	}
	p, err := processor.New(config)
	require.NoError(t, err)
	return p
}

func TestDrain_DeliversEveryRecordInOrderOnce(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1200)
	sink := &receiver{}
	began := time.Now()
	require.NoError(t, process(t, pool, processor.Each(sink), nil).Drain(t.Context()))
	t.Log(time.Since(began))
	require.Len(t, sink.got, 1200)
	for i, d := range sink.got {
		require.EqualValues(t, i+1, d.Sequence)
		require.Equal(t, 1, d.Attempt)
	}
	row, err := store(t, pool).Look(t.Context(), "sms")
	require.NoError(t, err)
	require.Equal(t, sink.got[1199].Position, row.Position)
	require.EqualValues(t, 1200, row.Sequence)
}
