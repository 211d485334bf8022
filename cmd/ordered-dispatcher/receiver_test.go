package main_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

const receiverSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// inboxReceiver is a handler of package inbox that wants no gap. It notes what it applies in the table applied.
type inboxReceiver struct {
	pool   *pgxpool.Pool
	box    *inbox.Inbox
	url    string
	poison atomic.Int64 // a sequence that it can never apply
}

func newInboxReceiver(t *testing.T, pool *pgxpool.Pool) *inboxReceiver {
	t.Helper()
	r := &inboxReceiver{pool: pool}
	var err error
	r.box, err = inbox.New(inbox.Config{Receiver: "c", RefuseGaps: true})
	require.NoError(t, err)
	pgtest.Exec(t, pool, r.box.SQL())
	pgtest.Exec(t, pool, "CREATE TABLE public.applied (n int GENERATED ALWAYS AS IDENTITY, body jsonb)")
	h, err := r.box.Handler(pool, inbox.HandlerConfig{Secret: receiverSecret, Logger: slog.New(slog.DiscardHandler)}, r.apply)
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *inboxReceiver) apply(ctx context.Context, tx pgx.Tx, req inbox.Request) error {
	if req.Sequence == r.poison.Load() {
		return fmt.Errorf("no such account: %w", inbox.ErrPoison)
	}
	_, err := tx.Exec(ctx, "INSERT INTO public.applied (body) VALUES ($1)", req.Body)
	return err
}

// applied lists the ids of the rows, in the order of their effects.
func (r *inboxReceiver) applied(t *testing.T) string {
	t.Helper()
	return pgtest.Value[string](t, r.pool, "SELECT coalesce(string_agg(body->>'id', ' ' ORDER BY n), '') FROM public.applied")
}

// in runs f in a transaction of the receiver.
func (r *inboxReceiver) in(t *testing.T, f func(tx pgx.Tx) error) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), r.pool, f))
}

func (r *inboxReceiver) config(t *testing.T, source, more string) string {
	t.Helper()
	return file(t, fmt.Sprintf("processes: {a: {source: {%s}, start: beginning, sink: {webhook: {url: %q, secret: %q}}%s}}", source, r.url, receiverSecret, more))
}

// halts drains, and returns why the process has halted.
func halts(t *testing.T, address, config string) string {
	t.Helper()
	code, _, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Equal(t, 3, code, stderr)
	return stderr
}

// The receiver is restored from a backup that lacks the last two records.
func TestReceiver_ASeekToBeforeItsLastRecordClosesItsGap(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 5)
	r := newInboxReceiver(t, pool)
	config := r.config(t, "table: public.bookings", "")
	must(t, address, "run", "--drain", "-c", config)
	pgtest.Exec(t, pool, "DELETE FROM public.inbox WHERE dedup_key ~ '/[45]/'; DELETE FROM public.applied WHERE n > 3; UPDATE public.inbox_process SET sequence = 3")
	insert(t, pool, 1)
	require.Contains(t, halts(t, address, config), "the receiver has number 3, this one is 6, and it wants those between: `seek` to before the last record that it has")
	must(t, address, "seek", "a", "--to-id", "3", "--reason", "the error says so", "-c", config)
	must(t, address, "resume", "a", "--reason", "x")
	must(t, address, "run", "--drain", "-c", config)
	require.Equal(t, "1 2 3 4 5 6", r.applied(t))
}

func TestReceiver_AcceptsTheGapOfADeadLetterAndItsReplay(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 4)
	r := newInboxReceiver(t, pool)
	r.poison.Store(2)
	config := r.config(t, "table: public.bookings", ", on_poison: dead_letter")
	require.Contains(t, halts(t, address, config), "have it accept the gap through 2 (AcceptGap of package inbox)")
	r.in(t, func(tx pgx.Tx) error { return r.box.AcceptGap(t.Context(), tx, "a", "", 2) })
	must(t, address, "retry", "a", "--reason", "x")
	must(t, address, "run", "--drain", "-c", config)
	require.Equal(t, "1 3 4", r.applied(t))
	r.poison.Store(0)
	must(t, address, "dead-letter", "replay", "1", "--reason", "x", "-c", config)
	require.Equal(t, "1 3 4 2", r.applied(t))
}

// Two databases have a process of one name, and a table without created_at: their records have equal dedup keys.
func TestReceiver_RefusesTheSecondSenderOfAName(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	r := newInboxReceiver(t, pool)
	const table = "CREATE TABLE public.t (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text); INSERT INTO public.t (v) VALUES ('x'), ('y'), ('z')"
	config := r.config(t, "table: public.t, order: id", "")
	pgtest.Exec(t, pool, table)
	must(t, address, "run", "--drain", "-c", config)
	t.Run("other", func(t *testing.T) {
		other, otherPool := database(t, 0)
		pgtest.Exec(t, otherPool, table)
		require.Contains(t, halts(t, other, config), "the receiver has records of another cursor under the name 'a': rename this process if both send")
		require.Equal(t, "1 2 3", r.applied(t))
		origin := pgtest.Value[string](t, otherPool, "SELECT origin::text FROM public.cursor")
		r.in(t, func(tx pgx.Tx) error { return r.box.AcceptOrigin(t.Context(), tx, "a", origin) })
		pgtest.Exec(t, otherPool, "INSERT INTO public.t (v) VALUES ('w')") // this database has replaced the first one
		must(t, other, "retry", "a", "--reason", "x")
		must(t, other, "run", "--drain", "-c", config)
		require.Equal(t, "1 2 3 4", r.applied(t))
	})
}
