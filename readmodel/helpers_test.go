package readmodel_test

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
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/readmodel"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const patience = time.Minute

// world is an outbox of an account's events, and two versions of a table of balances.
type world struct {
	pool  *pgxpool.Pool // of people and producers
	store *cursor.Store // with a pool of the workers
}

func newWorld(t *testing.T) world {
	t.Helper()
	address := pgtest.URL(t)
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: address})
	require.NoError(t, err)
	w := world{pool: pgtest.Pool(t, address, pgtest.PoolConfig{})}
	w.store, err = cursor.NewStore(pgtest.Pool(t, address, pgtest.PoolConfig{}), cursor.Config{})
	require.NoError(t, err)
	box, err := outbox.New(outbox.Config{})
	require.NoError(t, err)
	pgtest.Exec(t, w.pool, box.SQL())
	for _, v := range []string{"v1", "v2"} {
		pgtest.Exec(t, w.pool, "CREATE SCHEMA "+v)
		pgtest.Exec(t, w.pool, "CREATE TABLE "+v+".balance (account text PRIMARY KEY, cents bigint NOT NULL)")
		_, err := w.store.Create(t.Context(), "balances@"+v, "")
		require.NoError(t, err)
	}
	pgtest.Exec(t, w.pool, "CREATE VIEW public.balance AS SELECT account, cents FROM v1.balance")
	return w
}

type credited struct {
	Account string `json:"account"`
	Cents   int64  `json:"cents"`
}

// add writes events of one type.
func (w world) add(t *testing.T, recordType string, payloads ...any) {
	t.Helper()
	var records []outbox.Record
	for _, p := range payloads {
		records = append(records, outbox.Record{Type: recordType, Payload: p})
	}
	require.NoError(t, pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error { return outbox.Add(t.Context(), tx, records...) }))
}

// credit adds an amount to the balance of a version.
func credit(version string) readmodel.Handler {
	return readmodel.On("account.credited", func(ctx context.Context, tx pgx.Tx, c credited, _ processor.Delivery) error {
		_, err := tx.Exec(ctx, "INSERT INTO "+version+".balance AS b VALUES ($1, $2) ON CONFLICT (account) DO UPDATE SET cents = b.cents + excluded.cents", c.Account, c.Cents)
		return err
	})
}

// model makes the model of a version.
func model(t *testing.T, handlers ...readmodel.Handler) *readmodel.Model {
	t.Helper()
	m, err := readmodel.New(handlers...)
	require.NoError(t, err)
	return m
}

// run runs a version until stop is called or the test ends. Up to 100 records share a transaction.
func (w world) run(t *testing.T, version string, m processor.TxSink, change ...func(*processor.Config)) (stop func()) {
	t.Helper()
	source, err := table.New(w.store.Pool(), table.Config{Table: "public.outbox", Preset: "outbox"})
	require.NoError(t, err)
	config := processor.Config{Process: "balances@" + version, Store: w.store, Source: source, Dispatch: processor.InTx(m), Poll: 5 * time.Millisecond, Checkpoint: 100}
	for _, c := range change {
		c(&config)
	}
	p, err := processor.New(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stop = func() {
		cancel()
		if err, ok := <-done; ok {
			require.NoError(t, err)
			close(done)
		}
	}
	t.Cleanup(stop)
	return stop
}

// waitFor waits until a process is as wanted.
func (w world) waitFor(t *testing.T, version string, wanted func(cursor.Row) bool) (row cursor.Row) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		row, err = w.store.Look(t.Context(), "balances@"+version)
		return err == nil && wanted(row)
	}, patience, 5*time.Millisecond)
	return row
}

// balance is what a table has for an account.
func (w world) balance(t *testing.T, table, account string) (cents int64) {
	t.Helper()
	require.NoError(t, w.pool.QueryRow(t.Context(), "SELECT coalesce(sum(cents), 0) FROM "+table+" WHERE account = $1", account).Scan(&cents))
	return cents
}
