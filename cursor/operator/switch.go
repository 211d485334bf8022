package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Errors of Switch, besides those of package cursor.
var (
	// ErrBehind reports that the new version is halted or paused, or did not come to where the old one is within
	// Decision.Timeout.
	ErrBehind = errors.New("the new version is behind the old one, or does not deliver")
	// ErrSwitchEnded reports that the change of a switch has ended its transaction, as COMMIT does. What it did before that
	// may be committed, and the audit has no event of it.
	ErrSwitchEnded = errors.New("the change ended the transaction of the switch, so it is not known whether readers use the new version")
	// ErrSwitchTx is what Commit and Rollback of the transaction of a switch return.
	ErrSwitchTx = errors.New("the transaction belongs to the switch: return nil to have it committed, an error to have it rolled back")
)

// Switched is what a switch did.
type Switched struct {
	// From and To are the rows of the two processes at that moment. To.Position is not before From.Position.
	From, To cursor.Row
	// Held is for how long the old version could not advance: from the lock of its row to the COMMIT.
	Held time.Duration
}

// catchUp is how long the old version is held while the new one applies what is left. Before that, the new one has
// come to where the old one was.
const catchUp = 2 * time.Second

// betweenLooks is how long Switch waits before it looks at a cursor again.
const betweenLooks = 5 * time.Millisecond

// Switch puts what one process has built in the place of what another has built from the same source: two versions of
// a read model. change does that, for instance it replaces a view, in a transaction in which the search_path is
// pg_catalog. In the same transaction both processes get an event in the audit.
//
// At that moment the new version has applied every record that the old one has. Switch waits for that, at most
// Decision.Timeout, and returns ErrBehind if it does not come. The old version is held meanwhile, and the new one goes
// on: it may apply further records while change runs. A decision about the new version that commits together with the
// switch counts as made after it. Decision.Expect is not used. A dry run calls nothing.
//
// Neither cursor is changed: both processes go on, so Switch with the names exchanged takes it back.
func (o *Operator) Switch(ctx context.Context, from, to string, d cursor.Decision, change func(ctx context.Context, tx pgx.Tx) error) (Switched, error) {
	s, err := o.switchOver(ctx, from, to, d, change)
	if err != nil {
		return s, o.db.Explain("switch to", to, tables.Unaudited(err))
	}
	return s, nil
}

func (o *Operator) switchOver(ctx context.Context, from, to string, d cursor.Decision, change func(ctx context.Context, tx pgx.Tx) error) (s Switched, err error) {
	if d, err = d.Reasoned(); err != nil {
		return s, err
	}
	if from == to {
		return s, fmt.Errorf("both versions are the process %q", from)
	}
	if s.From, err = o.store.Look(ctx, from); err != nil {
		return s, err
	}
	look := func() (cursor.Row, error) { return o.store.Look(ctx, to) }
	if s.To, err = reached(ctx, look, s.From, d.Timeout); err != nil || d.DryRun {
		return s, err
	}
	err = o.store.LockForOperator(ctx, from, d.Timeout, func(conn *pgx.Conn, row cursor.Row) (err error) {
		s.From = row
		start := time.Now()
		defer func() { s.Held = time.Since(start) }()
		beside := func() (cursor.Row, error) { return o.store.LookBeside(ctx, conn, to) }
		if _, err := reached(ctx, beside, row, min(catchUp, o.config.Timeout)); err != nil {
			return err
		}
		if err := changed(ctx, conn, change); err != nil {
			return err
		}
		if s.To, err = beside(); err != nil {
			return err
		}
		if s.To.State != cursor.Running || s.To.Position < s.From.Position { // a halt, a pause or a seek came in between
			return behind(s.To, s.From)
		}
		return o.writeSwitch(ctx, conn, s, d)
	})
	return s, err
}

// reached looks at a process until it is where another one was seen, and returns its row.
func reached(ctx context.Context, look func() (cursor.Row, error), other cursor.Row, timeout time.Duration) (cursor.Row, error) {
	late := time.After(timeout)
	for {
		row, err := look()
		if err != nil {
			return row, err
		}
		if row.State != cursor.Running {
			return row, behind(row, other)
		}
		if row.Position >= other.Position {
			return row, nil
		}
		select {
		case <-ctx.Done():
			return row, context.Cause(ctx)
		case <-late:
			return row, behind(row, other)
		case <-time.After(betweenLooks):
		}
	}
}

func behind(row, other cursor.Row) error {
	return fmt.Errorf("%w: %s is %s at %q, and %s is at %q", ErrBehind, visible.Cut(row.Process), row.State, visible.Cut(string(row.Position)),
		visible.Cut(other.Process), visible.Cut(string(other.Position)))
}

const switchNumberSQL = `/* cursor.switch_number */ SELECT pg_catalog.txid_current()`

// changed makes the change in the transaction that holds the old version. Afterwards the transaction must be the same one.
func changed(ctx context.Context, conn *pgx.Conn, change func(ctx context.Context, tx pgx.Tx) error) error {
	tx, err := tables.Adopt(ctx, conn, ErrSwitchTx)
	if err != nil {
		return err
	}
	var before, after int64
	if err := tx.QueryRow(ctx, switchNumberSQL, pgx.QueryExecModeExec).Scan(&before); err != nil {
		return err
	}
	if err := change(ctx, tx); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, switchNumberSQL, pgx.QueryExecModeExec).Scan(&after); err != nil {
		return err
	}
	if before != after {
		return ErrSwitchEnded
	}
	return nil
}

// writeSwitch makes the change durable, with its two events.
func (o *Operator) writeSwitch(ctx context.Context, conn *pgx.Conn, s Switched, d cursor.Decision) error {
	event := func(process, action, key, other string, at cursor.Row) tables.Statement {
		detail, _ := json.Marshal(map[string]string{key: other})
		return o.db.Statement(decisionEventSQL, process, d.Actor, action, d.Reason, string(at.Position), string(at.Position), string(detail))
	}
	results, err := tables.Flush(ctx, conn,
		event(s.From.Process, "switched_from", "to", s.To.Process, s.From),
		event(s.To.Process, "switched_to", "from", s.From.Process, s.To),
		tables.Commit)
	if err == nil && !tables.Committed(results, 2) {
		return tables.ErrNotAsLocked
	}
	return tables.Uncertain(err)
}
