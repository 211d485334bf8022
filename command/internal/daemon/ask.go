package daemon

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// What the daemon and its commands ask the database themselves is answered within
// askTimeout, on a connection that comes within connWait, or not at all. Stores
// and sources have deadlines of their own.
const (
	connWait   = connectTimeout + 5*time.Second
	askTimeout = 10 * time.Second
)

// ask runs f in a transaction in which names without a schema mean PostgreSQL's own.
func ask(ctx context.Context, pool *pgxpool.Pool, f func(context.Context, pgx.Tx) error) error {
	return onConn(ctx, pool, func(ctx context.Context, conn *pgxpool.Conn) error {
		return prepared.Within(ctx, conn, func(tx pgx.Tx) error { return f(ctx, tx) })
	})
}

// onConn lends f a connection. Every question of this package goes through here.
func onConn(ctx context.Context, pool *pgxpool.Pool, f func(context.Context, *pgxpool.Conn) error) error {
	return answer.OnConn(ctx, pool, answer.Wait{Connection: connWait, Answer: askTimeout}, f)
}

// binary has the values of a query come in the binary form, so that the DateStyle of a role
// has no say in times.
const binary = pgx.QueryExecModeDescribeExec
