package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

// Bouncer describes how a PgBouncer pools. The zero value is transaction mode.
type Bouncer struct {
	// PoolMode is transaction, session or statement. Default: transaction.
	PoolMode string

	// PoolSize bounds the server connections. Default: 20.
	PoolSize int

	// SearchPath of the server connections. PgBouncer drops the one that Pool asks for. Default: empty.
	SearchPath string
}

// PgBouncer starts a PgBouncer in transaction mode in front of a database; see Bouncer.Start.
func PgBouncer(t testing.TB, address string) string {
	t.Helper()
	return Bouncer{}.Start(t, address)
}

// Start runs the real pgbouncer in front of one database until the test ends, and returns the URL through it. Clients
// need no password. Without the program the test is skipped (see Require). In transaction mode clients must not use
// prepared statements: with pgx, default_query_exec_mode=exec in the URL.
func (b Bouncer) Start(t testing.TB, address string) string {
	t.Helper()
	program := Require(t, "pgbouncer")
	target, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatalf("start PgBouncer: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	dir, err := throwaway.New(ctx)
	if err != nil {
		t.Fatalf("start PgBouncer: %v", err)
	}
	t.Cleanup(func() { b.stop(t, dir) })
	port, err := b.run(ctx, dir, program, target)
	if err != nil {
		t.Fatalf("start PgBouncer: %v; its log ends:\n%s", err, dir.Tail(bouncerLog, 20))
	}
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", url.User(target.User), port, url.PathEscape(target.Database))
}

const bouncerLog = "pgbouncer.log"

func (b Bouncer) run(ctx context.Context, dir *throwaway.Dir, program string, target *pgx.ConnConfig) (port int, err error) {
	if port, err = throwaway.FreePort(); err != nil {
		return 0, err
	}
	if err := dir.WriteFile("pgbouncer.ini", []byte(b.config(port, target))); err != nil {
		return 0, err
	}
	p, err := dir.Start(bouncerLog, program, dir.Path("pgbouncer.ini"))
	if err != nil {
		return 0, err
	}
	return port, p.AwaitListener(ctx, fmt.Sprintf("127.0.0.1:%d", port))
}

// config maps every client name to the one user that the address names, with that user's password.
func (b Bouncer) config(port int, target *pgx.ConnConfig) string {
	if b.PoolMode == "" {
		b.PoolMode = "transaction"
	}
	if b.PoolSize == 0 {
		b.PoolSize = 20
	}
	setSearchPath := "SELECT pg_catalog.set_config('search_path', " + quote(b.SearchPath) + ", false)"
	return fmt.Sprintf(`[databases]
%s = host=%s port=%d dbname=%s user=%s password=%s connect_query=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = %d
max_client_conn = 1000
ignore_startup_parameters = extra_float_digits,search_path
server_round_robin = 1
`, target.Database, quote(target.Host), target.Port, quote(target.Database), quote(target.User), quote(target.Password),
		quote(setSearchPath), port, b.PoolMode, b.PoolSize)
}

func (b Bouncer) stop(t testing.TB, dir *throwaway.Dir) {
	if t.Failed() {
		t.Logf("the end of PgBouncer's log:\n%s", dir.Tail(bouncerLog, 20))
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := dir.Close(ctx); err != nil {
		t.Error(err)
	}
}
