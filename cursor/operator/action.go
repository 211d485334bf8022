package operator

import (
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// action is one of the operations of an operator.
type action struct {
	name        string
	needsReason bool
	moves       bool
	ofRecord    bool // about the failing record, so Expect is that record's position
	// to is where a seek goes, whose records must be there; nil for other actions.
	to *cursor.Position
	// apply returns the changed row, or why the action is refused.
	apply func(cursor.Row) (cursor.Row, error)
}

// expect is the position that Decision.Expect has to have for a row.
func (a action) expect(row cursor.Row) cursor.Position {
	if a.ofRecord && row.Failure != nil && !row.Displaced() {
		return row.Failure.Position
	}
	return row.Position
}

// unexpected returns why the row is not the one that the operator saw, or nil. The cursor's position does not
// identify the failing record, which may have been deleted since.
func (a action) unexpected(row cursor.Row, d cursor.Decision) error {
	switch {
	case d.Expect == nil:
		return nil
	case a.ofRecord && row.Failure == nil:
		return fmt.Errorf("%w: the record at %q was expected to fail: %w", cursor.ErrMoved, *d.Expect, notFailing(row))
	case *d.Expect == a.expect(row):
		return nil
	case a.ofRecord && !row.Displaced():
		return fmt.Errorf("%w: record %s at %q fails, and the one at %q was expected to", cursor.ErrMoved, visible.Cut(row.Failure.RecordID), visible.Cut(string(row.Failure.Position)), visible.Cut(string(*d.Expect)))
	default:
		return fmt.Errorf("%w: it is at %q, and was expected at %q", cursor.ErrMoved, visible.Cut(string(row.Position)), visible.Cut(string(*d.Expect)))
	}
}

// plan checks a decision against a row, and returns the change.
func (a action) plan(row cursor.Row, d cursor.Decision) (Change, error) {
	change := Change{Before: row, After: row, Expect: a.expect(row)}
	if err := a.unexpected(row, d); err != nil {
		return change, err
	}
	after, err := a.apply(row)
	if err != nil {
		return change, err
	}
	if haltedAs(row, cursor.ClassOldPrimary) && after.Failure == nil && !d.Fenced {
		return change, fmt.Errorf("%w: %s", ErrOldPrimary, row.Failure.Error)
	}
	if row.Unnoted() && after.Epoch > row.Epoch { // the lost server may have given out that epoch, too
		after.Epoch = max(after.Epoch, row.Epoch.Leapt(time.Now()))
	}
	change.After = after
	change.Looks = change.looksAgain(a) || change.looksFirst(a)
	change.Changed = a.moves || after.State != row.State || (after.Failure == nil) != (row.Failure == nil)
	return change, nil
}

// cleared removes the failure from a row, and sets it running unless it is paused.
func cleared(row cursor.Row) cursor.Row {
	row.Failure = nil
	if row.State == cursor.Halted {
		row.State = cursor.Running
	}
	return row
}

// haltedAs reports whether the process halted over its server, with class c.
func haltedAs(row cursor.Row, c cursor.Class) bool { return row.Displaced() && row.Failure.Class == c }
