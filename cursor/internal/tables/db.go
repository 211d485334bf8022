package tables

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
)

// DB is the database that has the cursor tables of one schema. It is safe for use by several goroutines.
type DB struct {
	Pool *pgxpool.Pool
	// Schema is the quoted name of the schema.
	Schema string
	// Timeout bounds the wait for a connection, and each exchange with the server that does not commit.
	Timeout time.Duration
}

// shortestAnswer is how long a busy server may take over a short exchange.
const shortestAnswer = 5 * time.Second

// New returns the DB of a schema. lease is the time-out of leases: no exchange may take longer.
func New(pool *pgxpool.Pool, schema string, lease time.Duration) *DB {
	return &DB{Pool: pool, Schema: pgx.Identifier{schema}.Sanitize(), Timeout: max(lease, shortestAnswer)}
}

// SQL puts the schema's name into a statement, also at the start of a string literal.
func (db *DB) SQL(text string) string {
	text = strings.ReplaceAll(text, "'{schema}", "'"+strings.ReplaceAll(db.Schema, "'", "''"))
	return strings.ReplaceAll(text, "{schema}", db.Schema)
}

// Statement returns a statement with the schema's name in its text.
func (db *DB) Statement(text string, args ...string) Statement {
	return Statement{SQL: db.SQL(text), Args: args}
}

// Read are the cursor tables that some statement reads.
var Read = []string{"cursor", "cursor_event", "cursor_amended", "dead_letter"}

// Named returns the tables of Read that statements name. A lock of any other table is not in their way.
func (db *DB) Named(statements []Statement) []string {
	return slices.DeleteFunc(slices.Clone(Read), func(name string) bool {
		named := regexp.MustCompile(regexp.QuoteMeta(db.Schema+"."+name) + `\b`)
		return !slices.ContainsFunc(statements, func(one Statement) bool { return named.MatchString(one.SQL) })
	})
}

// Once runs statements on a connection of the pool, in one transaction and one network flush, and returns their
// results.
func (db *DB) Once(ctx context.Context, timeout time.Duration, begin Statement, statements ...Statement) ([]*pgconn.Result, error) {
	conn, err := db.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer GiveBack(conn)
	all := append(append([]Statement{begin, Pin}, statements...), Commit)
	results, err := FlushWithin(ctx, timeout, conn.Conn(), all...)
	if err == nil && !Committed(results, len(all)-1) {
		err = ErrNotAsLocked
	}
	if err != nil {
		return nil, err
	}
	return results[2 : len(all)-1], nil
}

// OnConnection runs f on a connection of the pool, and then ends a transaction that f left open.
func (db *DB) OnConnection(ctx context.Context, f func(*pgxpool.Conn) error) error {
	conn, err := db.Connect(ctx)
	if err != nil {
		return err
	}
	defer GiveBack(conn)
	return f(conn)
}

// Connect takes a connection of the pool, or opens one.
func (db *DB) Connect(ctx context.Context) (*pgxpool.Conn, error) {
	return answer.Conn(ctx, db.Pool, db.Timeout)
}

const giveBackTimeout = 2 * time.Second

// GiveBack ends the transaction that conn may be in and returns conn to its pool. If the server does not
// answer, the pool closes the connection instead.
func GiveBack(conn *pgxpool.Conn) {
	if !conn.Conn().IsClosed() && conn.Conn().PgConn().TxStatus() != 'I' {
		// Do not use the caller's context: a canceled one would close the connection, and the lock would stay
		// until the server notices.
		ctx, cancel := context.WithTimeout(context.Background(), giveBackTimeout)
		defer cancel()
		_, _ = Flush(ctx, conn.Conn(), Rollback)
	}
	conn.Release()
}
