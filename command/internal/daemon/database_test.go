package daemon_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
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

func exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

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

// drain runs processes until they are caught up.
func drain(t testing.TB, config daemon.Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return daemon.Run(ctx, daemon.RunConfig{
		Config: config, Drain: true, Grace: time.Second, Stdout: io.Discard, Logger: slog.New(slog.DiscardHandler),
	})
}

// role is a new role that may log in as what the test's URL says and then is
// no more than what it is granted.
func role(t testing.TB, pool *pgxpool.Pool) (name, address string) {
	t.Helper()
	name = "od_" + strings.ToLower(rand.Text())
	exec(t, pool, "CREATE ROLE "+name)
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), "DROP OWNED BY "+name+"; DROP ROLE "+name)
		require.NoError(t, err)
	})
	return name, with(t, pgtest.URL(t), "role", name)
}

// with adds a setting to a URL.
func with(t testing.TB, address, setting, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	query := u.Query()
	query.Set(setting, value)
	u.RawQuery = query.Encode()
	return u.String()
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
