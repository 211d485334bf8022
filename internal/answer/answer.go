package answer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNone: the pool gave no connection, or the database no answer, in time. What was asked for may have been done.
var ErrNone = errors.New("no answer in time")

// Wait is for how long a connection and then an answer are waited for.
type Wait struct{ Connection, Answer time.Duration }

// FromDatabase is what Overdue names where a connection is there.
const FromDatabase = "answer from the database"

// Overdue names a deadline of ours: err came of a call under within, which ends a timeout after it was made of ctx.
func Overdue(ctx, within context.Context, awaited string, timeout time.Duration, err error) error {
	if err == nil || ctx.Err() != nil || within.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: no %s within %v: %w", ErrNone, awaited, timeout, err)
}

// Within calls f, which asks a database something on a connection that is there. The context of f ends after timeout.
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
			pool.Reset() // there was room: it was the server of an idle connection that said nothing
		}
		most := strconv.Itoa(int(pool.Config().MaxConns))
		return nil, Overdue(ctx, within, "connection to the database, of a pool of "+most+",", timeout, err)
	}
	return conn, nil
}

// OnConn lends f a connection of the pool, and a context that ends when an answer has been waited for long enough.
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
