package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// decision is what every action of the torture's operator has in common.
func decision() cursor.Decision {
	return cursor.Decision{Actor: history.Operator, Reason: "by the plan", Timeout: 5 * time.Second}
}

// operate has an operator act, on connections of their own.
func (f *field) operate(ctx context.Context, act func(*cursor.Store) error) error {
	address, err := f.database.through(f.database.addr(), slot{role: operatorRole})
	if err != nil {
		return err
	}
	return operateAt(ctx, address, act)
}

func operateAt(ctx context.Context, address string, act func(*cursor.Store) error) error {
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := cursor.NewStore(pool, cursor.Config{Schema: schema})
	if err != nil {
		return err
	}
	return act(store)
}

// retry has the failing record of a process tried again; one that is not failing any more is left alone.
func retry(ctx context.Context, f *field, process string) error {
	return f.operate(ctx, func(store *cursor.Store) error {
		_, err := operator.New(store).Retry(ctx, process, decision())
		if errors.Is(err, operator.ErrNotFailing) {
			return nil
		}
		return err
	})
}

func skip(ctx context.Context, f *field, process string) error {
	return f.operate(ctx, func(store *cursor.Store) error {
		_, err := operator.New(store).Skip(ctx, process, decision())
		return err
	})
}

func resume(ctx context.Context, f *field, process string) error {
	return f.operate(ctx, func(store *cursor.Store) error {
		_, err := operator.New(store).Resume(ctx, process, decision())
		return err
	})
}

// pauseProcess lets a process rest for as long as the fault lasts. Whether it was paused is not known when the answer is
// lost: it is resumed all the same.
func pauseProcess(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	begin()
	err := f.operate(ctx, func(store *cursor.Store) error {
		_, err := operator.New(store).Pause(ctx, fault.Process, decision())
		return err
	})
	pause(ctx, fault.For)
	for {
		failed := resume(ctx, f, fault.Process)
		if failed == nil || errors.Is(failed, cursor.ErrHalted) {
			return missedIf(err)
		}
		if !pause(ctx, 100*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// Somebody has an eye on the processes: what has been halted for this long is tried again, whoever should have done so.
const (
	roundInterval = 500 * time.Millisecond
	haltedTooLong = 3 * time.Second
)

const forgottenSQL = `/* torture.forgotten */
SELECT process_name
FROM dispatch.cursor
WHERE state = 'halted' AND updated_at < clock_timestamp() - $1::interval
LIMIT 1000`

// doRounds retries forgotten processes until ctx ends. A database that is away is looked at again.
func (f *field) doRounds(ctx context.Context) {
	for pause(ctx, roundInterval) {
		_ = f.database.do(ctx, func(conn *pgx.Conn) error {
			rows, _ := conn.Query(ctx, forgottenSQL, haltedTooLong)
			names, err := pgx.CollectRows(rows, pgx.RowTo[string])
			for _, name := range names {
				if _, deliberate := f.unnoticed.Load(name); !deliberate {
					err = errors.Join(err, retry(ctx, f, name))
				}
			}
			return err
		})
	}
}

const (
	backSQL = `/* torture.back */
SELECT coalesce((SELECT p FROM (SELECT %s COLLATE "C" AS p FROM %s) all_of_them WHERE p < $1 ORDER BY p DESC OFFSET $2 LIMIT 1), '')`

	forwardSQL = `/* torture.forward */
SELECT coalesce((SELECT p FROM (SELECT %s COLLATE "C" AS p FROM %s) all_of_them WHERE p > $1 ORDER BY p OFFSET $2 LIMIT 1), '')`

	// The longest ways that an operator seeks, in rows.
	farBack    = 20
	farForward = 4
)

// seek moves a cursor some rows back or forward. Every other time it insists on the position that it saw.
func seek(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	begin()
	return missedIf(f.operate(ctx, func(store *cursor.Store) error {
		row, err := store.Look(ctx, fault.Process)
		if err != nil {
			return err
		}
		to, err := f.target(ctx, fault, row.Position)
		if err != nil {
			return err
		}
		d := decision()
		if fault.Choice%2 == 0 {
			d.Expect = &row.Position
		}
		_, err = operator.New(store).Seek(ctx, fault.Process, to, d)
		return err
	}))
}

// target is where a seek goes. Forward of the last row is nowhere.
func (f *field) target(ctx context.Context, fault plan.Fault, from cursor.Position) (to cursor.Position, err error) {
	query, far := backSQL, farBack
	if fault.Kind == history.OperatorForward {
		query, far = forwardSQL, farForward
	}
	s := sourceOf(fault.Process)
	err = f.database.do(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, fmt.Sprintf(query, "("+s.position()+")", s.rows()), string(from), int(fault.Choice>>1)%far).Scan((*string)(&to))
	})
	if err == nil && to == "" && fault.Kind == history.OperatorForward {
		err = errMissed
	}
	return to, err
}
