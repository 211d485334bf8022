package desk

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/stdout"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

const (
	schema   = "od"
	patience = time.Minute
)

// fixture is a database with a table of bookings, and a configuration of processes on it.
func fixture(t testing.TB, processes string) (*pgxpool.Pool, daemon.Config) {
	t.Helper()
	pool := pgtest.Database(t)
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: pgtest.URL(t), Schema: schema})
	require.NoError(t, err)
	pgtest.Exec(t, pool, `
		CREATE TABLE public.bookings (
			id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
			customer text NOT NULL DEFAULT 'c',
			payload jsonb NOT NULL DEFAULT '{}'
		);
		CREATE UNIQUE INDEX ON public.bookings (created_at, id);
		CREATE INDEX ON public.bookings (customer);`)
	kinds := daemon.Kinds{Sinks: []sinks.Spec{stdout.Spec(), webhook.Spec()}}
	config, err := daemon.Parse("f.yaml", []byte("schema: "+schema+"\nprocesses:\n"+processes), func(string) (string, bool) { return "", false }, kinds)
	require.NoError(t, err)
	config.Database = pgtest.URL(t)
	return pool, config
}

func insert(t testing.TB, pool *pgxpool.Pool, customer string, n int) {
	t.Helper()
	pgtest.Exec(t, pool, `INSERT INTO public.bookings (customer) SELECT $1 FROM generate_series(1, $2)`, customer, n)
}

const (
	source = "source: {table: public.bookings, columns: {key: customer, payload: payload}}"
	plain  = "  a: {" + source + ", sink: {stdout: {}}, poll: 20ms, start: beginning}\n"
)

// toWebhook is process a with a receiver.
func toWebhook(url, more string) string {
	return "  a: {" + source + ", sink: {webhook: {url: " + url + ", secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}}, poll: 20ms, start: beginning" + more + "}\n"
}

// sit is a desk until the test ends.
func sit(t testing.TB, config daemon.Config) *Desk { return sitWith(t, Config{Config: config}) }

func sitWith(t testing.TB, c Config) *Desk {
	t.Helper()
	c.Logger, c.Stdout = slog.New(slog.DiscardHandler), io.Discard
	d, err := New(context.WithoutCancel(t.Context()), c)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// work runs a worker until the returned function is called, or the test ends.
func work(t testing.TB, config daemon.Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- daemon.Run(ctx, daemon.RunConfig{Config: config, Grace: time.Second, Stdout: io.Discard, Logger: slog.New(slog.DiscardHandler)})
	}()
	ended := false
	stop = func() {
		if !ended {
			ended = true
			cancel()
			<-done
		}
	}
	t.Cleanup(stop)
	return stop
}

// until waits until process a is as wanted.
func until(t testing.TB, d *Desk, wanted func(Process) bool) (p Process) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		p, err = d.Process(t.Context(), "a", Full)
		return err == nil && wanted(p)
	}, patience, 20*time.Millisecond)
	return p
}

func delivered(n int64) func(Process) bool { return func(p Process) bool { return p.Sequence == n } }

func waits(n int64) func(Process) bool {
	return func(p Process) bool { return p.Waiting != nil && p.Waiting.Records == n }
}

func because(c Cause) func(Process) bool {
	return func(p Process) bool { return p.Hold != nil && p.Hold.Cause == c }
}

// decided is a decision from its preview to its end.
func decided(t testing.TB, d *Desk, o Order) Decided {
	t.Helper()
	p, err := d.Preview(t.Context(), o)
	require.NoError(t, err)
	done, err := d.Decide(t.Context(), o, Approval{Reason: "a test", Expect: p.Expect, Actor: "alice"})
	require.NoError(t, err)
	return done
}

// many are n processes on one table.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  p%04d: {source: {table: public.bookings}, sink: {stdout: {}}, start: beginning}\n", i)
	}
	return b.String()
}

// left is a desk over a process that has delivered one record, and whose worker has ended.
func left(t testing.TB) (*pgxpool.Pool, *Desk) {
	t.Helper()
	pool, config := fixture(t, plain)
	insert(t, pool, "ann", 1)
	stop := work(t, config)
	d := sit(t, config)
	until(t, d, delivered(1))
	stop()
	return pool, d
}

// linked is a desk that reaches its database through a link that can fail.
func linked(t testing.TB) (*Desk, *pgtest.Link) {
	t.Helper()
	_, config := fixture(t, plain)
	var link *pgtest.Link
	config.Database, link = pgtest.Proxy(t, config.Database)
	return sit(t, config), link
}
