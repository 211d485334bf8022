package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// timeout bounds each step of making and dropping a database. The server writes and removes files for it: on a machine whose
// disk is busy with other tests, that has taken more than a minute.
const timeout = 5 * time.Minute

// databases holds the database of every running test.
var databases sync.Map // testing.TB -> func() string

// URL returns the address of the test's own, empty database, the same at each call. The first call creates the
// database. It is dropped when the test ends, even if sessions are still connected to it.
func URL(t testing.TB) string {
	t.Helper()
	create := sync.OnceValue(func() string { return create(t) })
	once, _ := databases.LoadOrStore(t, create)
	address := once.(func() string)()
	if address == "" {
		t.FailNow() // the first call has logged the reason
	}
	return address
}

// create returns "" if it failed: a goroutine that ends inside a sync.OnceValue would leave the next caller guessing.
func create(t testing.TB) string {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	address, drop, err := Create(ctx, t.Name())
	t.Cleanup(func() { databases.Delete(t) })
	if err != nil {
		t.Error(err)
		return ""
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := drop(ctx); err != nil {
			t.Error(err)
		}
	})
	return address
}

// Create makes an empty database on the shared server, for a caller without a testing.TB such as an Example. hint
// becomes part of its name. drop removes the database, even if sessions are connected.
func Create(ctx context.Context, hint string) (address string, drop func(context.Context) error, err error) {
	server, err := shared()
	if err != nil {
		return "", nil, err
	}
	name := databaseName(hint)
	if err := createDatabase(ctx, server, name); err != nil {
		return "", nil, err
	}
	address, err = withDatabase(server, name)
	return address, func(ctx context.Context) error { return dropDatabase(ctx, server, address, name) }, err
}

var unusual = regexp.MustCompile(`[^a-z0-9]+`)

// databaseName keeps to 63 bytes: PostgreSQL cuts off longer names without an error.
func databaseName(hint string) string {
	hint = unusual.ReplaceAllString(strings.ToLower(hint), "_")
	return fmt.Sprintf("test_%.40s_%.12s", hint, strings.ToLower(rand.Text()))
}

// createDatabase copies template0: no session can be connected to it, which would make the copy fail.
func createDatabase(ctx context.Context, server, name string) error {
	return onServer(ctx, server, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "/* pgtest.create */ CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" TEMPLATE template0")
		if err != nil {
			return fmt.Errorf("create a test database: %w; the user of DATABASE_URL needs CREATEDB", err)
		}
		return nil
	})
}

func dropDatabase(ctx context.Context, server, address, name string) error {
	return onServer(ctx, server, func(conn *pgx.Conn) error {
		if err := rollbackPrepared(ctx, conn, address, name); err != nil {
			return fmt.Errorf("drop test database %q: %w", name, err)
		}
		_, err := conn.Exec(ctx, "/* pgtest.drop */ DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
		if err != nil {
			return fmt.Errorf("drop test database %q: %w", name, err)
		}
		return nil
	})
}

const selectPrepared = `/* pgtest.prepared */
SELECT gid
FROM pg_catalog.pg_prepared_xacts
WHERE database = $1`

// rollbackPrepared ends the prepared transactions that a test left. Even FORCE does not drop a database that has
// some, and they can be ended only from within it.
func rollbackPrepared(ctx context.Context, conn *pgx.Conn, address, name string) error {
	rows, err := conn.Query(ctx, selectPrepared, name)
	if err != nil {
		return err
	}
	gids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(gids) == 0 {
		return err
	}
	return onServer(ctx, address, func(conn *pgx.Conn) error {
		for _, gid := range gids {
			if _, err := conn.Exec(ctx, "/* pgtest.rollback */ ROLLBACK PREPARED "+quote(gid)); err != nil {
				return err
			}
		}
		return nil
	})
}

// onServer connects for one errand. It does not keep connections: tests count sessions and stop servers.
func onServer(ctx context.Context, address string, errand func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("connect to the test server: %w; is DATABASE_URL right?", err)
	}
	defer conn.Close(ctx)
	return errand(conn)
}

// withDatabase replaces the database in an address of either form that PostgreSQL knows: a URL or key=value pairs,
// of which the last one of a key counts.
func withDatabase(address, name string) (string, error) {
	if !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://") {
		return address + " dbname=" + name, nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("read DATABASE_URL: %w", err)
	}
	u.Path = "/" + name
	return u.String(), nil
}

func quote(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }
