package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgshape"
)

// DB begins transactions: a *pgxpool.Pool or a *pgx.Conn.
type DB interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// ErrOtherTable means that the name of the outbox is taken by something that is no such outbox.
var ErrOtherTable = errors.New("it is not an outbox of this shape")

// stepTimeout bounds one transaction of Create or MakePartitions.
const stepTimeout = time.Minute

// settingsSQL bounds the wait for a lock: while a statement waits for one, producers may wait in line after it. The
// bounds of partitions are printed by DateStyle and TimeZone. Rows that row-level security would hide are an error.
const settingsSQL = `/* outbox.settings */
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL lock_timeout = '5s';
SET LOCAL row_security = off;
SET LOCAL DateStyle = 'ISO';
SET LOCAL TimeZone = 'UTC'`

// within runs f in a transaction that is committed unless f fails.
func within(ctx context.Context, db DB, timeout time.Duration, f func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, settingsSQL, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		return f(ctx, tx)
	})
}

// createLockSQL lets one session at a time look for the table and make it.
const createLockSQL = `/* outbox.lock */ SELECT pg_advisory_xact_lock(hashtextextended('ordered-dispatcher outbox ' || $1, 0))`

// Create makes the table, if it is missing, and reports whether it did. It makes no partition. If the name is taken, it
// changes nothing, and returns ErrOtherTable unless the table has the columns of this outbox, and is partitioned if
// Config.Partitioned says so. A table of another role, or with a trigger of one, is refused as well: its owner could run
// code with the rights of the producers. Config.Table needs its schema, which must be there.
func (o *Outbox) Create(ctx context.Context, db DB) (made bool, err error) {
	if err := o.qualified(); err != nil {
		return false, err
	}
	name := o.config.Table.Sanitize()
	err = within(ctx, db, stepTimeout, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, createLockSQL, pgx.QueryExecModeExec, name); err != nil {
			return err
		}
		found, err := pgshape.Of(ctx, tx, o.config.Table)
		if err != nil {
			return err
		}
		if found != nil {
			return cmp.Or(o.differs(found), pgshape.Trusted(ctx, tx, o.config.Table))
		}
		made = true
		_, err = tx.Exec(ctx, "/* outbox.create */ "+o.SQL(), pgx.QueryExecModeExec)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("create the outbox %s: %w", name, err)
	}
	return made, nil
}

func (o *Outbox) qualified() error {
	if len(o.config.Table) != 2 {
		return fmt.Errorf("outbox: Table is %q: give a schema and a name", o.config.Table)
	}
	return nil
}

// differs compares what has the name with what Add and the dispatcher need; nil if nothing has it.
func (o *Outbox) differs(found *pgshape.Shape) error {
	if found == nil {
		return nil
	}
	kind := "r"
	if o.config.Partitioned {
		kind = "p"
	}
	if found.Kind != kind {
		kinds := map[string]string{"r": "a table", "p": "a partitioned table", "v": "a view"}
		what, known := kinds[found.Kind]
		if !known {
			what = "something else"
		}
		return fmt.Errorf("%w: there is %s of that name, not %s: choose another name, or move it away", ErrOtherTable, what, kinds[kind])
	}
	missing := found.Lacks("id bigint", "created_at timestamp with time zone", "aggregate_type text", "aggregate_id text", "key text", "type text",
		"payload "+o.payloadType(), "headers jsonb")
	if len(missing) > 0 {
		return fmt.Errorf("%w: there is a table of that name without %s: choose another name, or move it away", ErrOtherTable, strings.Join(missing, ", "))
	}
	return nil
}
