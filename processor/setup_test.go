package processor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const schema = "dispatch"

// database makes the cursor tables and a table of bookings.
func database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return databaseOn(t, pgtest.URL(t))
}

func databaseOn(t testing.TB, address string) *pgxpool.Pool {
	t.Helper()
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: address, Schema: schema})
	require.NoError(t, err)
	pool := pgtest.Pool(t, address, pgtest.PoolConfig{})
	exec(t, pool, `
		CREATE TABLE dispatch.bookings (
			id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
			customer text NOT NULL,
			payload jsonb NOT NULL DEFAULT '{}');
		CREATE INDEX ON dispatch.bookings (created_at, id);
		CREATE TABLE dispatch.effect (id bigint NOT NULL)`)
	return pool
}

func insert(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	exec(t, pool, `INSERT INTO dispatch.bookings (customer) SELECT 'c' || i FROM generate_series(1, $1::int) i`, n)
}

func store(t testing.TB, pool *pgxpool.Pool) *cursor.Store {
	t.Helper()
	s, err := cursor.NewStore(pool, cursor.Config{Schema: schema})
	require.NoError(t, err)
	return s
}

// created makes the cursor of process sms.
func created(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	_, err := store(t, pool).Create(t.Context(), "sms", "")
	require.NoError(t, err)
}

func source(t testing.TB, pool *pgxpool.Pool) *table.Source {
	t.Helper()
	return sourceOf(t, pool, table.Config{Table: "dispatch.bookings"})
}

func sourceOf(t testing.TB, pool *pgxpool.Pool, c table.Config) *table.Source {
	t.Helper()
	s, err := table.New(pool, c)
	require.NoError(t, err)
	return s
}

// receiver is a sink that remembers what it was called with, in order, and
// answers as its script says: nil means success.
type receiver struct {
	answer func(ctx context.Context, d processor.Delivery) error

	mu  sync.Mutex
	got []processor.Delivery
}

func (r *receiver) Deliver(ctx context.Context, d processor.Delivery) error {
	r.mu.Lock()
	r.got = append(r.got, d)
	r.mu.Unlock()
	if r.answer == nil {
		return nil
	}
	return r.answer(ctx, d)
}

func (r *receiver) DeliverTx(ctx context.Context, tx pgx.Tx, d processor.Delivery) error {
	if _, err := tx.Exec(ctx, `INSERT INTO dispatch.effect (id) VALUES ($1)`, d.ID); err != nil {
		return err
	}
	return r.Deliver(ctx, d)
}

// attempts are the calls as "id/attempt".
func (r *receiver) attempts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []string
	for _, d := range r.got {
		calls = append(calls, fmt.Sprintf("%s/%d", d.ID, d.Attempt))
	}
	return calls
}

// attemptsOf are the deliveries of one record.
func (r *receiver) attemptsOf(id string) (found []processor.Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.got {
		if d.ID == id {
			found = append(found, d)
		}
	}
	return found
}

func (r *receiver) calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

// failing makes an error of the first n deliveries of a record.
func failing(id string, n int, err error) func(context.Context, processor.Delivery) error {
	return func(_ context.Context, d processor.Delivery) error {
		if d.ID == id && d.Attempt <= n {
			return err
		}
		return nil
	}
}

// quick keeps tests of failures short.
func quick(c *processor.Config) {
	c.Retry = processor.Retry{Initial: time.Millisecond, Max: 5 * time.Millisecond}
}

// start runs a process until the test, or the returned function, stops it; the
// function returns what Run did.
func start(t testing.TB, p *processor.Process) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			return errors.New("Run did not return")
		}
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// patience bounds the wait for an event that must come.
const patience = 2 * time.Minute

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 2*time.Millisecond, what)
}

func row(t testing.TB, pool *pgxpool.Pool) cursor.Row {
	t.Helper()
	row, err := store(t, pool).Look(t.Context(), "sms")
	if !errors.Is(err, cursor.ErrUnknown) { // not made yet
		require.NoError(t, err)
	}
	return row
}

// halts waits until the process is halted, and returns its failure, which is of that class.
func halts(t testing.TB, pool *pgxpool.Pool, class cursor.Class) cursor.Failure {
	t.Helper()
	eventually(t, "the process halts", func() bool { return row(t, pool).State == cursor.Halted })
	failure := row(t, pool).Failure
	require.Equal(t, class, failure.Class)
	return *failure
}

// alice decides.
var alice = cursor.Decision{Actor: "alice", Reason: "the worst day", Timeout: patience}

// decide has alice decide on the process, which is not refused.
func decide(t testing.TB, pool *pgxpool.Pool, act func(*operator.Operator, context.Context, string, cursor.Decision) (operator.Change, error)) operator.Change {
	t.Helper()
	change, err := act(operator.New(store(t, pool)), t.Context(), "sms", alice)
	require.NoError(t, err)
	return change
}

// seek is alice's decision to go to a position.
func seek(t testing.TB, pool *pgxpool.Pool, to cursor.Position) operator.Change {
	t.Helper()
	change, err := operator.New(store(t, pool)).Seek(t.Context(), "sms", to, alice)
	require.NoError(t, err)
	return change
}

var exec = pgtest.Exec

func process(t testing.TB, pool *pgxpool.Pool, dispatch processor.Dispatch, change func(*processor.Config)) *processor.Process {
	t.Helper()
	config := processor.Config{
		Process:  "sms",
		Store:    store(t, pool),
		Source:   source(t, pool),
		Dispatch: dispatch,
		Start:    processor.Beginning,
		Logger:   slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&config)
	}
	p, err := processor.New(config)
	require.NoError(t, err)
	return p
}

// logbook keeps what is logged.
type logbook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

func (l *logbook) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
