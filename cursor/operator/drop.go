package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// detachTimeout is how long a partition waits for the transactions that use its table.
const detachTimeout = 20 * time.Second

// errPooler refuses a session that a pooler would give to others, with the lock and the settings.
var errPooler = errors.New("a connection pooler is in between, and to drop partitions takes a session of its own: connect to PostgreSQL directly, for example with a file for `ordered-dispatcher prune` alone")

const ownSessionSQL = `/* cursor.own_session */ SELECT pg_catalog.pg_backend_pid()`

const dropLockSQL = `/* cursor.drop_lock */ SELECT pg_try_advisory_lock(hashtextextended('` + dropLock + `' || $1, 0))`

// Drop calls f while no other session drops partitions of a table. It returns ErrBusy, without a wait, if one does.
// detach runs a statement that detaches a partition and cannot run in a transaction. It waits for transactions that use
// the table for up to 20 s. If its context ends, the server has ended the statement when it returns. Its session is the
// one that has the right to drop: if this program dies meanwhile, the server goes on with the statement, and the right
// lasts as long. Lock and settings are the session's, so a connection through a pooler is refused, and the session is
// closed.
func (o *Operator) Drop(ctx context.Context, table string, f func(ctx context.Context, detach func(context.Context, string) error) error) error {
	conn, err := o.db.Connect(ctx)
	if err != nil {
		return err
	}
	session := conn.Hijack() // so that no other statement gets its settings
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = session.Close(closing)
	}()
	run := func(ctx context.Context, statements ...string) error {
		err := ending(ctx, session, func(ctx context.Context) error {
			return answer.Within(ctx, detachTimeout+tables.Margin, func(ctx context.Context) error {
				for _, sql := range statements {
					if _, err := session.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil {
			return o.db.WithFix("detach a partition of "+visible.Line(table), err)
		}
		return nil
	}
	var pid uint32 // a pooler greets with one of its own
	err = answer.Within(ctx, o.db.Timeout, func(ctx context.Context) error {
		return session.QueryRow(ctx, ownSessionSQL, pgx.QueryExecModeExec).Scan(&pid)
	})
	if err == nil && pid != session.PgConn().PID() {
		err = errPooler
	}
	if err != nil {
		return o.db.WithFix("detach a partition of "+visible.Line(table), err)
	}
	if err := run(ctx,
		"SET search_path = pg_catalog, pg_temp",
		"SET lock_timeout = "+tables.Milliseconds(detachTimeout),
		"SET statement_timeout = "+tables.Milliseconds(detachTimeout)); err != nil {
		return err
	}
	var alone bool
	err = answer.Within(ctx, pruneTimeout, func(ctx context.Context) error {
		return session.QueryRow(ctx, dropLockSQL, pgx.QueryExecModeExec, table).Scan(&alone)
	})
	if err != nil {
		return o.db.WithFix("detach a partition of "+visible.Line(table), err)
	}
	if !alone {
		return o.held(ctx, ErrBusy, dropLock+table)
	}
	return f(ctx, func(ctx context.Context, statement string) error { return run(ctx, statement) })
}

// endTimeout is how long the server has to end a statement.
const endTimeout = 5 * time.Second

// ending calls f, which runs a statement. If ctx ends, it asks the server to end the statement, and waits for its word:
// a connection that is just closed leaves the statement running for a moment.
func ending(ctx context.Context, session *pgx.Conn, f func(context.Context) error) error {
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		asking, done := context.WithTimeout(within, endTimeout)
		defer done()
		_ = session.PgConn().CancelRequest(asking)
		<-asking.Done() // f has returned, or the server is silent
		cancel()
	})()
	err := f(within)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}
