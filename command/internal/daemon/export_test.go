package daemon

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

// DoctorWithin is Doctor with another patience for one check.
func DoctorWithin(ctx context.Context, c Config, patience time.Duration) ([]Finding, error) {
	return examine(ctx, c, patience)
}

// DoctorOfRows is what the doctor finds of the processes if it had read these rows of
// their cursors before.
func DoctorOfRows(t testing.TB, c Config, rows []cursor.Row) []Finding {
	t.Helper()
	pool, store, err := c.open(t.Context())
	require.NoError(t, err)
	defer pool.Close()
	d := &doctor{config: c, patience: checkTimeout, pool: pool, store: store}
	for _, p := range c.Processes {
		d.check(t.Context(), p.Name, func(ctx context.Context) error { return d.process(ctx, p, rows) })
	}
	return d.findings
}

// CountPauses counts how often the reader waits before it looks again.
func (r *StatusReader) CountPauses() *int {
	var n int
	r.pause = func(ctx context.Context, d time.Duration) {
		n++
		pause(ctx, d)
	}
	return &n
}

// KeepPauses keeps for how long the reader waits before it looks again, and does not wait.
func (r *StatusReader) KeepPauses() *[]time.Duration {
	var all []time.Duration
	r.pause = func(_ context.Context, d time.Duration) { all = append(all, d) }
	return &all
}

// PartitionsBetween is Partitions with something that happens between two looks for writers.
func PartitionsBetween(ctx context.Context, c Config, happens func()) ([]Retention, error) {
	return partitions(ctx, c, nil, func(context.Context, time.Duration) { happens() })
}

// PoolConfig is what a connection string becomes.
func PoolConfig(t testing.TB, database string, processes int) *pgxpool.Config {
	t.Helper()
	config, err := poolConfig(database, processes)
	require.NoError(t, err)
	return config
}

func lazyPool(t testing.TB, database string) *pgxpool.Pool {
	t.Helper()
	pool, err := openPool(t.Context(), PoolConfig(t, database, 1))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// ProcessorConfig is what of a process goes to the processor, and CallTimeout how
// long a call of its sink may take there.
func ProcessorConfig(p Process, grace time.Duration) processor.Config {
	return p.processorConfig(dependencies{grace: grace})
}

// CallTimeout is how long a call of the process's sink may take.
func CallTimeout(t testing.TB, p Process) time.Duration {
	t.Helper()
	_, timeout, err := p.Sink.open(dependencies{stdout: io.Discard})
	require.NoError(t, err)
	return timeout
}

// MaxLease is for how long a transaction of the process's lease may be open, by its configuration.
func MaxLease(t testing.TB, c Config, p Process) time.Duration {
	t.Helper()
	store, err := cursor.NewStore(nil, cursor.Config{})
	require.NoError(t, err)
	bounds := c.leaseBounds(p, nil, store)
	require.NotZero(t, bounds.calls, "its sink cannot be made")
	return bounds.open
}

// Build makes a process out of its configuration, as Run does.
func Build(p Process) error {
	store, err := cursor.NewStore(nil, cursor.Config{})
	if err != nil {
		return err
	}
	_, _, err = p.build(dependencies{store: store, stdout: io.Discard})
	return err
}

// Guard looks at the partitions when a test says so.
type Guard struct{ *guard }

// NewGuard is the guard of a worker.
func NewGuard(t testing.TB, c Config) Guard {
	t.Helper()
	pool, store, err := c.open(t.Context())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	g, err := newGuard(RunConfig{Config: c, Logger: slog.New(slog.DiscardHandler)}, pool, store)
	require.NoError(t, err)
	return Guard{g}
}

// Look looks once at the partitions of a process.
func (g Guard) Look(t testing.TB, process string) {
	t.Helper()
	require.NoError(t, g.Ask(t, process))
}

// Ask looks once, and may fail.
func (g Guard) Ask(t testing.TB, process string) error {
	t.Helper()
	return g.look(t.Context(), process)
}

// Logged looks once at the partitions of all processes, and returns its log.
func (g Guard) Logged(t testing.TB) string {
	t.Helper()
	var log bytes.Buffer
	g.log = slog.New(slog.NewTextHandler(&log, nil))
	g.lookAll(t.Context())
	return log.String()
}

// LookEvery has the monitor and the guard look more often.
func (c RunConfig) LookEvery(d time.Duration) RunConfig {
	c.lookInterval = d
	return c
}

// SilentFor takes a process for wedged in which nothing happens for that long.
func (c RunConfig) SilentFor(d time.Duration) RunConfig {
	c.maxSilence = d
	return c
}

// PatientFor waits for connections that others use for that long.
func (c RunConfig) PatientFor(d time.Duration) RunConfig {
	c.connectionsPatience = d
	return c
}

// PoolError is what is wrong with a connection string.
func PoolError(database string) (*pgxpool.Config, error) { return poolConfig(database, 1) }

// Warnings are those of a start.
func Warnings(t testing.TB, c Config) (problems []string) {
	t.Helper()
	for _, e := range c.exposures(PoolConfig(t, c.Database, 1).ConnConfig) {
		problems = append(problems, e.problem)
	}
	return problems
}

// OpenPool opens a pool as Run does.
func OpenPool(t testing.TB, database string) *pgxpool.Pool { return lazyPool(t, database) }

// OpenIdlePool is OpenPool, and takes each connection that is not in use for one that has not been in use for long.
func OpenIdlePool(t testing.TB, database string) (pool *pgxpool.Pool) {
	t.Helper()
	config := PoolConfig(t, database, 1)
	askIdle(config, func() *pgxpool.Pool { return pool })
	ask := config.ShouldPing
	config.ShouldPing = func(ctx context.Context, idle pgxpool.ShouldPingParams) bool {
		idle.IdleDuration = time.Hour
		return ask(ctx, idle)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// RenewEvery has sinks look at the files of their secrets so often without a failure.
func (c RunConfig) RenewEvery(d time.Duration) RunConfig {
	c.renewInterval = d
	return c
}

// Renewed is a sink for the one process of a configuration, a webhook, that looks at its files with each
// call. made makes it, and makes it anew, with the token.
func Renewed[T processor.BatchSink](c Config, made func(token string) T) func(context.Context) error {
	p := c.Processes[0]
	p.Sink.Config = &madeConfig[T]{Bearer: p.Sink.Config.(*webhook.Config).Bearer, made: made}
	c.renewal.kinds.Sinks = []sinks.Spec{{Name: p.Sink.Kind, New: func() sinks.Config { return &madeConfig[T]{made: made} }}}
	r := &renewed{
		rotation: p.rotation(dependencies{config: c, renewInterval: time.Nanosecond}),
		sink:     sinks.Opened{Pipeline: made(p.Sink.Config.(*madeConfig[T]).Bearer)},
	}
	return func(ctx context.Context) error {
		return r.call(ctx, func(sink sinks.Opened) error { _, err := sink.Pipeline.DeliverBatch(ctx, nil); return err })
	}
}

// madeConfig has the keys of a webhook that the tests use.
type madeConfig[T processor.BatchSink] struct {
	URL    string `knob:"url" secret:"true"`
	Bearer string `knob:"bearer" secret:"true"`
	made   func(token string) T
}

func (*madeConfig[T]) Validate() error             { return nil }
func (*madeConfig[T]) Settings() map[string]string { return nil }
func (c *madeConfig[T]) Open(sinks.Environment) (sinks.Opened, error) {
	return sinks.Opened{Pipeline: c.made(c.Bearer)}, nil
}

// Watching is the application_name of a worker's sessions.
func (c Config) Watching(application string) string { return c.watching(application) }

// PruningEvery carries out rules of retention more often.
func (c RunConfig) PruningEvery(d time.Duration) RunConfig {
	c.pruneInterval = d
	return c
}

// Notifier looks at the processes when a test says so, and tells the targets.
type Notifier struct{ *notifier }

// NewNotifier is the notifier of a worker.
func NewNotifier(t testing.TB, c Config) Notifier {
	t.Helper()
	pool, store, err := c.open(t.Context())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	n, err := newNotifier(RunConfig{Config: c, Logger: slog.New(slog.DiscardHandler)}, pool, store)
	require.NoError(t, err)
	return Notifier{n}
}

// Round is one look, with the messages after it.
func (n Notifier) Round(ctx context.Context) { n.round(ctx) }

// Between is a round in which something happens after the look.
func (n Notifier) Between(t testing.TB, happens func()) {
	t.Helper()
	f, err := n.find(t.Context())
	require.NoError(t, err)
	happens()
	n.sendAll(t.Context(), f)
}

// Impatient forgets that a target could not be told, so that the next round tries it again.
func (n Notifier) Impatient() {
	for _, t := range n.targets {
		t.until = time.Time{}
	}
}

// WatchedSQL is the statement of presence.
func (c Config) WatchedSQL() string { return c.sql(watchedSQL) }
