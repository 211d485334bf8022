package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Session runs statements: a *pgx.Conn, a pgx.Tx or a *pgxpool.Pool.
type Session interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Exec runs one statement. Without args it may be several.
func Exec(t testing.TB, on Session, sql string, args ...any) {
	t.Helper()
	if _, err := on.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Value returns the one value that a query yields.
func Value[T any](t testing.TB, on Session, sql string, args ...any) (v T) {
	t.Helper()
	if err := on.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// Connect opens a session that no pool shares, closed when the test ends.
func Connect(t testing.TB, address string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Begin runs SQL in a transaction that is open until the test ends it, or ends itself.
func Begin(t testing.TB, on interface {
	Begin(context.Context) (pgx.Tx, error)
}, sql string) pgx.Tx {
	t.Helper()
	tx, err := on.Begin(t.Context())
	if err != nil {
		t.Fatalf("begin: %v", err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	Exec(t, tx, sql)
	return tx
}

// Role creates a role of the test's own, whose name begins with the prefix. Roles outlive the database, so the test's
// end drops it, with what it owns and what it was granted. That fails if objects of others depend on what it owns: a
// test that leaves such objects cleans them up itself.
func Role(t testing.TB, on Session, prefix, attributes string) (name string) {
	t.Helper()
	name = prefix + strings.ToLower(rand.Text())
	quoted := pgx.Identifier{name}.Sanitize()
	Exec(t, on, "CREATE ROLE "+quoted+" "+attributes)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if _, err := on.Exec(ctx, fmt.Sprintf("DROP OWNED BY %[1]s; DROP ROLE %[1]s", quoted)); err != nil {
			t.Errorf("drop role %s: %v", quoted, err)
		}
	})
	return name
}

// As returns the URL of a database for another user.
func As(t testing.TB, address, user, password string) string {
	t.Helper()
	return altered(t, address, func(u *url.URL) { u.User = url.UserPassword(user, password) })
}

// With returns the URL of a database with one more setting.
func With(t testing.TB, address, setting, value string) string {
	t.Helper()
	return altered(t, address, func(u *url.URL) {
		query := u.Query()
		query.Set(setting, value)
		u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // PostgreSQL does not take + for a space
	})
}

func altered(t testing.TB, address string, alter func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("read the address of a database: %v", err)
	}
	alter(u)
	return u.String()
}
