package answer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNone means that the pool gave no connection, or the database no answer, in time. The database may have done what
// was asked.
var ErrNone = errors.New("no answer in time")

// Wait is how long to wait for a connection, and then for an answer.
type Wait struct{ Connection, Answer time.Duration }

// FromDatabase is the text for Overdue when the connection exists.
const FromDatabase = "answer from the database"

// Overdue names a deadline of ours. err is the error of a call under within, a context that was made from ctx with
// this timeout.
func Overdue(ctx, within context.Context, awaited string, timeout time.Duration, err error) error {
	if err == nil || ctx.Err() != nil || within.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: no %s within %v: %w", ErrNone, awaited, timeout, err)
}

// Within calls f, which asks a database something on an open connection. The context of f ends after timeout.
func Within(ctx context.Context, timeout time.Duration, f func(context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return Overdue(ctx, within, FromDatabase, timeout, f(within))
}

// Conn takes a connection of the pool, or makes one. The caller releases it.
func Conn(ctx context.Context, pool *pgxpool.Pool, timeout time.Duration) (*pgxpool.Conn, error) {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := pool.Acquire(within)
	if err != nil {
		if stat := pool.Stat(); ctx.Err() == nil && within.Err() != nil && stat.AcquiredConns() < stat.MaxConns() {
			pool.Reset() // there was room, so the server of an idle connection did not answer
		}
		most := strconv.Itoa(int(pool.Config().MaxConns))
		return nil, Overdue(ctx, within, "connection to the database, of a pool of "+most+",", timeout, OneLine(err))
	}
	return conn, nil
}

// OnConn lends f a connection of the pool, and a context that ends when the wait for an answer is over.
func OnConn(ctx context.Context, pool *pgxpool.Pool, wait Wait, f func(context.Context, *pgxpool.Conn) error) error {
	conn, err := Conn(ctx, pool, wait.Connection)
	if err != nil {
		return err
	}
	defer conn.Release()
	err = Within(ctx, wait.Answer, func(ctx context.Context) error {
		return Heard(ctx, conn.Conn(), func(ctx context.Context) error { return f(ctx, conn) })
	})
	if errors.Is(err, ErrSilent) {
		pool.Reset()
	}
	return err
}
