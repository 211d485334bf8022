package desk

import (
	"errors"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Kind is why a question or a decision failed.
type Kind string

// The kinds of an Error.
const (
	KindUsage   Kind = "usage"   // the question is wrong
	KindUnknown Kind = "unknown" // no such process or dead letter
	KindMoved   Kind = "moved"   // not what the preview showed: look again
	KindRefused Kind = "refused" // the state of the process does not allow it, or the receiver
	// KindOldPrimary: this server may be an old primary. Order.Fenced allows it.
	KindOldPrimary Kind = "old_primary"
	// KindPruned: retention has removed records after the place of a seek. Order.Pruned allows it.
	KindPruned    Kind = "pruned"
	KindLocked    Kind = "locked"    // another session has the row: try again
	KindBusy      Kind = "busy"      // too many ask at once: try again
	KindUncertain Kind = "uncertain" // it may have been done: see the history
	KindAway      Kind = "away"      // the database did not answer
)

// Status is the status of HTTP that an answer with an error of this kind has, in the API and in the pages alike.
func (k Kind) Status() int {
	switch k {
	case KindUsage:
		return http.StatusBadRequest
	case KindUnknown:
		return http.StatusNotFound
	case KindMoved, KindLocked:
		return http.StatusConflict
	case KindRefused, KindOldPrimary, KindPruned:
		return http.StatusUnprocessableEntity
	case KindBusy:
		return http.StatusTooManyRequests
	case KindUncertain:
		return http.StatusInternalServerError
	default:
		return http.StatusServiceUnavailable
	}
}

// Error is why a question or a decision failed. Its text is for people, and has no secrets.
type Error struct {
	Kind Kind
	Text string
	err  error
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// failed converts an error of the daemon. nil stays nil.
func (d *Desk) failed(err error) error {
	var own *Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	return &Error{Kind: kindOf(err), Text: d.board.clean(err), err: err}
}

func kindOf(err error) Kind {
	var usage *daemon.UsageError
	var pruned *operator.PrunedError
	var refusal *pgconn.PgError
	switch {
	case errors.Is(err, cursor.ErrUncertain):
		return KindUncertain
	case errors.Is(err, cursor.ErrMoved), errors.Is(err, cursor.ErrExists): // it was made in between
		return KindMoved
	case errors.Is(err, cursor.ErrLocked):
		return KindLocked
	case errors.Is(err, cursor.ErrNoDeadLetter), errors.Is(err, cursor.ErrUnknown):
		return KindUnknown
	case errors.As(err, &pruned):
		return KindPruned
	case errors.Is(err, operator.ErrOldPrimary):
		return KindOldPrimary
	case errors.Is(err, cursor.ErrHalted), errors.Is(err, cursor.ErrPaused),
		errors.Is(err, cursor.ErrDeleted), errors.Is(err, cursor.ErrRenamed), errors.Is(err, operator.ErrNotFailing):
		return KindRefused
	case errors.As(err, &usage):
		return KindUsage
	case errors.As(err, &refusal) && (strings.HasPrefix(refusal.Code, "53") || strings.HasPrefix(refusal.Code, "57")): // it is full, or stops
		return KindAway
	case processor.IsPermanent(err): // the receiver's answer
		return KindRefused
	default:
		return KindAway
	}
}
