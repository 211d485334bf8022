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

// wantedSQL finds a session that waits for the guard. The DETACH, and all who use the partition, would wait behind it.
const wantedSQL = `/* source.wanted */
SELECT EXISTS (
	SELECT
	FROM pg_locks
	WHERE locktype = 'relation' AND relation = %d AND NOT granted AND mode = 'AccessExclusiveLock'
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
)`

// errWanted reports that a DETACH gave way.
var errWanted = errors.New("another session waits for the partition alone, so the DETACH gave way")

// WhileClosed calls detach, which detaches a partition concurrently, and keeps others from opening the partition until
// the server has marked it. It returns ErrOpened, and does not call detach, if the partition is not closed any more. It
// ends the context of detach if another session wants the partition alone before the mark.
func (p *Pruning) WhileClosed(ctx context.Context, r Range, detach func(context.Context) error) error {
	detaching, cancel := context.WithCancel(ctx)
	defer cancel()
	var done chan error
	err := p.source.readOnly(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf(guardSQL, r.Table())); err != nil {
			return err
		}
		now, err := p.Again(ctx, tx, r)
		if err == nil && !now.Goes() {
			err = ErrOpened
		}
		if err != nil {
			return err
		}
		done = make(chan error, 1)
		go func() { done <- detach(detaching) }()
		if err = p.awaitMark(ctx, tx, r, done); err != nil {
			cancel()
			done <- <-done // the guard lasts until then
		}
		return err
	})
	if done == nil {
		return err
	}
	if detached := <-done; detached != nil {
		return errors.Join(err, detached)
	}
	return nil
}

// awaitMark returns nil once the partition is marked, or detach has returned. It leaves the result of detach in done.
func (p *Pruning) awaitMark(ctx context.Context, tx pgx.Tx, r Range, done chan error) error {
	for {
		select {
		case err := <-done:
			done <- err
			return nil
		case <-time.After(lookAgain):
		}
		wanted, err := run(ctx, tx, fmt.Sprintf(wantedSQL, r.oid), nil)
		if err != nil {
			return err
		}
		now, err := p.Again(ctx, tx, r) // after that: once it is marked, the DETACH wants it as well
		switch {
		case err != nil || !now.Goes():
			return err
		case string(wanted.Rows[0][0]) == "t":
			return errWanted
		}
	}
}
