package live

import (
	"context"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Backend is what the view asks, and has done.
type Backend struct {
	// Look returns the status of the processes. A *daemon.UsageError ends the view.
	Look func(context.Context) ([]daemon.Status, error)
	// Next returns the first record after a position of a process, with its payload; nil if there is none.
	Next func(ctx context.Context, process string, after cursor.Position) (*processor.Record, error)
	// Decide carries out a decision about a process, or rehearses it.
	Decide func(context.Context, Verb, string, cursor.Decision) (daemon.Outcome, error)
	// Actor is who decides.
	Actor string
}

// Verb is a decision that the view can take.
type Verb string

// The decisions.
const (
	Pause  Verb = "pause"
	Resume Verb = "resume"
	Retry  Verb = "retry"
)

// NewBackend returns that of a configuration. The reader stays the caller's.
func NewBackend(c daemon.Config, r *daemon.StatusReader) Backend {
	return Backend{
		Look: func(ctx context.Context) ([]daemon.Status, error) {
			all, err := r.Read(ctx)
			return all, masked(r, err)
		},
		Next: func(ctx context.Context, process string, after cursor.Position) (*processor.Record, error) {
			record, err := r.Next(ctx, process, after)
			return record, masked(r, err)
		},
		Decide: func(ctx context.Context, v Verb, process string, d cursor.Decision) (daemon.Outcome, error) {
			outcome, err := decide(ctx, c, v, process, d)
			return outcome, masked(r, err)
		},
		Actor: daemon.Actor(),
	}
}

func decide(ctx context.Context, c daemon.Config, v Verb, process string, d cursor.Decision) (daemon.Outcome, error) {
	operator, err := daemon.NewOperator(ctx, c, process)
	if err != nil {
		return daemon.Outcome{}, err
	}
	defer operator.Close()
	switch v {
	case Pause:
		return operator.Pause(ctx, d)
	case Resume:
		return operator.Resume(ctx, d)
	default:
		return operator.Retry(ctx, d)
	}
}

// maskedError is an error whose text has no secret of the configuration.
type maskedError struct {
	error
	text string
}

func (e maskedError) Error() string { return e.text }
func (e maskedError) Unwrap() error { return e.error }

func masked(r *daemon.StatusReader, err error) error {
	if err == nil {
		return nil
	}
	return maskedError{err, r.Masked(err)}
}

// plain returns the text of an error in one line.
func plain(err error) string { return visible.Line(fmt.Sprint(err)) }
