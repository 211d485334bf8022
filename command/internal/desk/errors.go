package desk

import "errors"

// Kind is why a question or a decision failed.
type Kind string

// The kinds of an Error.
const (
	KindUsage     Kind = "usage"     // the question is wrong
	KindUnknown   Kind = "unknown"   // no such process or dead letter
	KindMoved     Kind = "moved"     // not what the preview showed: look again
	KindRefused   Kind = "refused"   // the state of the process does not allow it
	KindLocked    Kind = "locked"    // another session has the row: try again
	KindBusy      Kind = "busy"      // too many ask at once: try again
	KindUncertain Kind = "uncertain" // it may have been done: see the history
	KindAway      Kind = "away"      // the database did not answer
)

// Error is why a question or a decision failed. Its text is for people, and has no secrets.
type Error struct {
	Kind Kind
	Text string
	err  error
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

var errNotBuilt = errors.New("not built yet")
