package daemon_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	sinkexec "github.com/ordered-dispatcher/ordered-dispatcher/sinks/exec"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/pubsub"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/stdout"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

const schema = "od"

// database is migrated and has a table of bookings that nothing is wrong with.
func database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Database(t)
	migrate(t, pool, pgtest.URL(t))
	return pool
}

// migrate makes the tables in any database.
func migrate(t testing.TB, pool *pgxpool.Pool, address string) {
	t.Helper()
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: address, Schema: schema})
	require.NoError(t, err)
	exec(t, pool, `
		CREATE TABLE public.bookings (
			id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
			customer text NOT NULL DEFAULT 'c'
		);
		CREATE UNIQUE INDEX ON public.bookings (created_at, id);`)
}

var (
	exec  = pgtest.Exec
	begin = pgtest.Begin
	count = pgtest.Value[int]
	with  = pgtest.With
)

func insert(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	exec(t, pool, fmt.Sprintf("INSERT INTO public.bookings (customer) SELECT 'c' FROM generate_series(1, %d)", n))
}

// configure parses processes on the test's database, which start at the beginning
// unless they say otherwise.
func configure(t testing.TB, address, processes string) daemon.Config {
	t.Helper()
	config, err := daemon.Parse("f.yaml", []byte("schema: "+schema+"\nprocesses:\n"+processes), environment(nil), kinds)
	require.NoError(t, err)
	config.Database = address
	for i := range config.Processes {
		config.Processes[i].Start = cmp.Or(config.Processes[i].Start, processor.Beginning)
	}
	return config
}

const stdoutProcess = "  a: {source: {table: public.bookings}, sink: {stdout: {}}, poll: 20ms}\n"

// fixture is a database, and processes on it.
func fixture(t testing.TB, processes string) (*pgxpool.Pool, daemon.Config) {
	t.Helper()
	return database(t), configure(t, pgtest.URL(t), processes)
}

// newStore is the store of the cursors.
func newStore(t testing.TB, pool *pgxpool.Pool) *cursor.Store {
	t.Helper()
	s, err := cursor.NewStore(pool, cursor.Config{Schema: schema})
	require.NoError(t, err)
	return s
}

// created has the cursor of process a.
func created(t testing.TB, pool *pgxpool.Pool) *cursor.Store {
	t.Helper()
	s := newStore(t, pool)
	_, err := s.Create(t.Context(), "a", "")
	require.NoError(t, err)
	return s
}

// untilTrue waits until a question is answered with true.
func untilTrue(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	require.Eventually(t, func() bool {
		var is bool
		return pool.QueryRow(t.Context(), sql, args...).Scan(&is) == nil && is
	}, patience, 5*time.Millisecond, sql)
}

// drain runs processes until they are caught up.
func drain(t testing.TB, config daemon.Config) error {
	t.Helper()
	return drainTo(t, daemon.RunConfig{Config: config})
}

// drainTo is drain with an output or a log, or more besides.
func drainTo(t testing.TB, config daemon.RunConfig) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	config.Drain = true
	return daemon.Run(ctx, quiet(config))
}

// quiet fills in what a run needs, and most tests do not look at.
func quiet(config daemon.RunConfig) daemon.RunConfig {
	config.Grace = time.Second
	if config.Stdout == nil {
		config.Stdout = io.Discard
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return config
}

// operator decides about process a until the test ends.
func operatorOf(t testing.TB, config daemon.Config) *daemon.Operator {
	t.Helper()
	process := "a"
	if names := config.Names(); len(names) == 1 {
		process = names[0]
	}
	o, err := daemon.NewOperator(t.Context(), config, process)
	require.NoError(t, err)
	t.Cleanup(o.Close)
	return o
}

// role is a new role that may log in as what the test's URL says and then is
// no more than what it is granted.
func role(t testing.TB, pool *pgxpool.Pool) (name, address string) {
	t.Helper()
	name = pgtest.Role(t, pool, "od_", "")
	return name, with(t, pgtest.URL(t), "role", name)
}

// buffer is written by one goroutine and read by another.
type buffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// kinds are sinks with all abilities that the daemon looks for. A sink that is added needs no place here: the daemon
// knows it by its spec, and tests of its own hold that.
var kinds = daemon.Kinds{Sinks: []sinks.Spec{webhook.Spec(), rabbitmq.Spec(), nats.Spec(), kafka.Spec(), pubsub.Spec(), sql.Spec(), sinkexec.Spec(), stdout.Spec()}}
