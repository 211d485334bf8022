package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// againSQL finds a partition by its oid (%d), if its name ($1) still leads to it. It locks nothing.
const againSQL = `/* source.again */
SELECT
	EXISTS (SELECT FROM pg_constraint o WHERE o.conrelid = c.oid AND o.conname = '` + Closing + `'),
	i.inhparent IS NULL,
	coalesce(i.inhdetachpending, false),
	coalesce(i.inhparent, 0) IN (0, %d)
FROM pg_class c
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
WHERE c.oid = %d AND c.oid = to_regclass($1)
LIMIT 1`

// Again returns a partition as it is now: another session may have opened, attached or renamed it since it was listed.
// It returns nil if the name does not lead to it any more, or if it is a part of another table. The answer stays true
// while the caller has a lock on the partition.
func (p *Pruning) Again(ctx context.Context, tx pgx.Tx, r Range) (*Range, error) {
	found, err := run(ctx, tx, fmt.Sprintf(againSQL, p.layout.oid, r.oid), values{[]byte(r.Table())})
	if err != nil || len(found.Rows) == 0 {
		return nil, err
	}
	is := func(i int) bool { return string(found.Rows[0][i]) == "t" }
	if !is(3) {
		return nil, nil
	}
	r.Closed, r.Detached, r.Detaching = is(0), is(1), is(2)
	return &r, nil
}

// Goes reports whether nothing but a DETACH is left to do for the partition: it is closed, and attached.
func (r *Range) Goes() bool { return r != nil && r.Closed && !r.Detached && !r.Detaching }

// ErrOpened reports that another session has opened a partition that was closed, or attached it again.
var ErrOpened = errors.New("another session has opened it, attached it again or renamed it meanwhile, so it is left alone")

// lookAgain is the pause between two looks for the mark of a DETACH.
const lookAgain = 10 * time.Millisecond

// guardSQL lets everything pass but what needs the partition alone, such as to drop its constraint. It does not hold up
// the DETACH, which asks for that only after its mark.
const guardSQL = `/* source.guard */ LOCK TABLE %s IN ACCESS SHARE MODE`

// WhileClosed calls detach, which detaches a partition concurrently, and keeps others from opening the partition until
// the server has marked it. It returns ErrOpened, and does not call detach, if the partition is not closed any more.
func (p *Pruning) WhileClosed(ctx context.Context, r Range, detach func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var done chan error
	err := p.source.readOnly(ctx, func(guarding context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(guarding, fmt.Sprintf(guardSQL, r.Table())); err != nil {
			return err
		}
		now, err := p.Again(guarding, tx, r)
		if err == nil && !now.Goes() {
			err = ErrOpened
		}
		if err != nil {
			return err
		}
		done = make(chan error, 1)
		go func() { done <- detach(ctx) }()
		return p.awaitMark(guarding, tx, r, done)
	})
	switch {
	case done == nil:
		return err
	case err != nil:
		cancel() // nothing keeps the partition closed any more
	}
	return errors.Join(err, <-done)
}

// awaitMark returns once the partition is marked, or detach has returned. It leaves the result of detach in done.
func (p *Pruning) awaitMark(ctx context.Context, tx pgx.Tx, r Range, done chan error) error {
	for {
		select {
		case err := <-done:
			done <- err
			return nil
		case <-time.After(lookAgain):
		}
		now, err := p.Again(ctx, tx, r)
		if err != nil || !now.Goes() {
			return err
		}
	}
}
