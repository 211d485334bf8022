package processor

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
)

// Permanent marks a sink's error as final: the record can never succeed, and its process halts at once.
// Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// Refused marks a sink's error as the receiver's refusal of us: of our credentials, our address, our settings.
// It is not a verdict on the record. The process halts at once, even with Config.DeadLetter, and the record is
// sent again when an operator retries. Refused outranks Permanent. Refused(nil) is nil.
func Refused(err error) error {
	if err == nil {
		return nil
	}
	return &refusedError{err}
}

// Unreached marks a sink's error as not the record's: nothing was sent, or the receiver can take no record now
// (it is away, full, has no place for any, or our quota is used up for now). The record is tried again. With
// Config.DeadLetter such attempts do not count towards Retry.Attempts, so an outage makes no dead letter.
// Unreached(nil) is nil.
func Unreached(err error) error {
	if err == nil {
		return nil
	}
	return &unreachedError{err}
}

// Unknown marks a sink's error as one that leaves open whether the receiver has the record: after it was sent,
// the connection was lost, or no answer came. The record is tried again, or its process halts with
// Config.HaltOnTimeout. An error whose Timeout method returns true, such as context.DeadlineExceeded, is
// unknown by itself. Unknown(nil) is nil.
func Unknown(err error) error {
	if err == nil {
		return nil
	}
	return outcome.Unknown(err)
}

// RetryAfter marks a sink's error with the delay that its receiver asked for. The next attempt comes no sooner,
// for delays up to an hour. RetryAfter(nil, d) is nil.
func RetryAfter(err error, delay time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{err, delay}
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

type unreachedError struct{ error }

func (e *unreachedError) Unwrap() error { return e.error }

type retryAfterError struct {
	error
	delay time.Duration
}

func (e *retryAfterError) Unwrap() error { return e.error }

// IsPermanent reports whether err was marked with Permanent.
func IsPermanent(err error) bool {
	var permanent *permanentError
	return errors.As(err, &permanent)
}

// IsRefused reports whether err was marked with Refused.
func IsRefused(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused)
}

// IsUnreached reports whether err was marked with Unreached.
func IsUnreached(err error) bool {
	var unreached *unreachedError
	return errors.As(err, &unreached)
}

// IsUnknown reports whether err was marked with Unknown, or is a time-out.
func IsUnknown(err error) bool { return outcome.IsUnknown(err) }

// RetryAfterDelay returns the delay that err was marked with, or zero.
func RetryAfterDelay(err error) time.Duration {
	var after *retryAfterError
	if errors.As(err, &after) {
		return after.delay
	}
	return 0
}

// ErrGrace is the error of Run and Drain when a sink call was still in flight at the end of Config.Grace. Its
// record will be delivered again.
var ErrGrace = errors.New("the sink call in flight did not end within the grace period: its record will be delivered again")

// errPrefix reports that a batch sink broke its contract.
func errPrefix(n, of int) error {
	return fmt.Errorf("the batch sink broke its contract: it acknowledged %d of %d records and gave no reason", n, of)
}

// ErrOrder reports that a source broke its contract. Nothing of its page is delivered.
var ErrOrder = errors.New("the source returned a position that does not follow the one before it")

// unreadableError is the error of a record that the source could not read.
type unreadableError struct{ error }

func (e *unreadableError) Unwrap() error { return e.error }

func isUnreadable(err error) bool {
	var unreadable *unreadableError
	return errors.As(err, &unreadable)
}

// isDatabase reports whether the database failed, and not our request: it went away (class 08, 57P), lacks room
// (53), met an error of its system (58), became read-only (25006), ended an idle transaction (25P03), or other
// transactions were in the way (40, 55P03).
func isDatabase(err error) bool {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return false
	}
	switch code := pgErr.Code; code[:min(2, len(code))] {
	case "08", "53", "40", "58":
		return true
	default:
		return strings.HasPrefix(code, "57P") || code == "55P03" || code == "25006" || code == "25P03"
	}
}

// isDenied reports whether the database will go on refusing until an operator changes something: the login
// (class 28), the database's name (3D000), names and rights in it (42, 3F000), or a host that does not exist.
func isDenied(err error) bool {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		code := pgErr.Code
		return strings.HasPrefix(code, "28") || strings.HasPrefix(code, "42") || code == "3D000" || code == "3F000"
	}
	var connect *pgconn.ConnectError
	var lookup *net.DNSError
	var dial *net.OpError // of another host that has an address, and may come back
	return errors.As(err, &connect) && errors.As(err, &lookup) && lookup.IsNotFound && !errors.As(err, &dial)
}

// panicError reports that the sink panicked.
type panicError struct {
	text  string
	stack []byte
}

// newPanicError returns the error of a panic in the sink, without the data of the records that the sink was
// given.
func newPanicError(value any, stack []byte, ds []Delivery) error {
	return &panicError{Redact(ds)(fmt.Sprint(value)), stack}
}

func (e *panicError) Error() string { return "the sink panicked: " + e.text }
