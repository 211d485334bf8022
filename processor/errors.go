package processor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// HaltError is the end of a drained process that stands halted.
type HaltError struct {
	Process string
	Failure cursor.Failure
}

func (e *HaltError) Error() string {
	return fmt.Sprintf("process %q is halted at record %s (position %s, attempt %d): %s; mend the cause, then set its cursor going again: "+
		"UPDATE cursor SET state = 'running' WHERE process_name = '%s'",
		e.Process, e.Failure.RecordID, e.Failure.Position, e.Failure.Attempts, e.Failure.Error, strings.ReplaceAll(e.Process, "'", "''"))
}

// Permanent marks a sink's error as final: the record can never succeed, and
// its process halts at once. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// RetryAfter marks a sink's error with the delay its receiver asked for. The
// next attempt comes no sooner, for delays up to an hour. RetryAfter(nil, d)
// is nil.
func RetryAfter(err error, delay time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{err, delay}
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

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

// RetryAfterDelay returns the delay err was marked with, or zero.
func RetryAfterDelay(err error) time.Duration {
	var after *retryAfterError
	if errors.As(err, &after) {
		return after.delay
	}
	return 0
}

// ErrGrace is returned by Run and Drain when a sink call was still in flight at
// the end of Config.Grace. Its record will be delivered again.
var ErrGrace = errors.New("the sink call in flight did not end within the grace period: its record will be delivered again")

// errPrefix is a batch sink that broke its contract.
func errPrefix(n, of int) error {
	return fmt.Errorf("the batch sink acknowledged %d of %d records without saying why", n, of)
}

// panicError is a sink that panicked.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("the sink panicked: %v", e.value) }
