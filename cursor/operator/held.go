package operator

import (
	"context"
	"fmt"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// HeldError names the session that has an advisory lock of ours. The lock takes no right, so any role that may connect can
// have it.
type HeldError struct {
	Holder cursor.Locker
	Err    error
}

// Error names the session, and what to do.
func (e *HeldError) Error() string {
	next := fmt.Sprintf("if it does not end by itself: SELECT pg_terminate_backend(%d)", e.Holder.PID)
	if e.Holder.PID == 0 || e.Holder.Replicating || e.Holder.HiddenFrom != "" {
		next = e.Holder.Fix()
	}
	return fmt.Sprintf("%v: %s has the advisory lock that keeps removals and seeks apart; %s", e.Err, visible.Line(e.Holder.String()), next)
}

// Unwrap returns the error that the lock caused.
func (e *HeldError) Unwrap() error { return e.Err }

// Ours reports whether the session calls itself one of this program.
func (e *HeldError) Ours() bool { return strings.HasPrefix(e.Holder.Application, "ordered-dispatcher") }

// held adds the holder of one of these advisory locks to an error, if it finds one. The session that waited has ended its
// wait.
func (o *Operator) held(ctx context.Context, err error, names ...string) error {
	all, lookErr := o.store.AdvisoryLockers(ctx, names...)
	if lookErr != nil || len(all) == 0 {
		return err
	}
	return &HeldError{Holder: all[0], Err: err}
}
