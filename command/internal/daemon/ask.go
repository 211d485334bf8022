package daemon

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// askTimeout bounds each question of the daemon and of its commands to the database, and connWait bounds the wait for
// a connection. After that the question fails. Stores and sources have deadlines of their own.
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

// onConn lends f a connection. Every question of this package goes through it.
func onConn(ctx context.Context, pool *pgxpool.Pool, f func(context.Context, *pgxpool.Conn) error) error {
	return answer.OnConn(ctx, pool, answer.Wait{Connection: connWait, Answer: askTimeout}, f)
}

// binary makes PostgreSQL send the values of a query in binary form. So the DateStyle of a role does not change
// times.
const binary = pgx.QueryExecModeDescribeExec
