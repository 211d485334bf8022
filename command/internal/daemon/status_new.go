package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// unborn describes what a process without a cursor needs.
func (r *StatusReader) unborn(ctx context.Context, s *Status, source *table.Source, left []string) {
	switch past := r.store.Past(ctx, s.Process); {
	case errors.Is(past, cursor.ErrDeleted):
		s.Problem = past.Error()
		return
	case errors.Is(past, cursor.ErrRenamed):
		s.Problem = fmt.Sprintf("%v: %s", past, underItsNewName(s.Process))
		return
	}
	lost, err := r.store.MayBeLost(ctx)
	var noStart *processor.NoStartError
	if err == nil {
		noStart, err = r.noStart(ctx, s.Process, source)
	}
	switch {
	case err != nil:
		s.Problem = err.Error()
	case noStart != nil && lost: // run refuses, so it is no next step
		noStart.MayBeLost = true
		s.Problem = noStart.Error() + renamedAndLost(s.Process, left)
	case noStart != nil:
		s.Problem = withLeft(noStart, left).Error()
	case lost:
		s.Problem = fmt.Sprintf("it has no cursor. A standby was promoted or the database restored, so if the process has delivered before, its cursor is lost: start no worker for it before you have compared "+
			"what its receiver has with the table, and made the cursor there with `ordered-dispatcher seek %s -c FILE --to-id ID --reason …`. If it has never run: start `ordered-dispatcher run`", visible.Shell(s.Process)) + renamedAndLost(s.Process, left)
	default:
		s.Problem = r.first(ctx, *s)
	}
}

// underItsNewName is what to do in a file that has the name which a cursor had before it was renamed.
func underItsNewName(process string) string {
	return "give the process that name in the file. If this is another process, free its name with `ordered-dispatcher process forget " +
		visible.Shell(process) + " --reason …`"
}

// renamedAndLost names the cursors that may be the process's own if the server lost its new name.
func renamedAndLost(process string, left []string) string {
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf(". If it was renamed, and that is lost: `ordered-dispatcher process rename OLD %s`. Cursors whose process is not in this file: %s", visible.Shell(process), oneOf(left))
}

// noStart returns why run refuses a process without a cursor whose start the file does not give; nil if it does not.
func (r *StatusReader) noStart(ctx context.Context, process string, source *table.Source) (*processor.NoStartError, error) {
	if p, _ := r.written(process); p.Start != "" {
		return nil, nil
	}
	records, more, err := source.Count(ctx)
	if err != nil || records == 0 {
		return nil, err
	}
	return &processor.NoStartError{Process: process, Records: records, More: more}, nil
}

// first describes what a process needs whose first worker makes its cursor. It knows when run would refuse to.
func (r *StatusReader) first(ctx context.Context, s Status) string {
	p, _ := r.written(s.Process) // earlierNames compares it with what run noted, which has no defaults
	if _, same := r.config.Config.earlierNames(ctx, r.pool, p); p.Start != "" && len(same) > 0 {
		return newNameError(p, same).Error()
	}
	_, _, err := r.store.Forgotten(ctx, s.Process)
	switch given := err == nil; {
	case given && s.live:
		return "its cursor was given up, and a worker runs it: one that ran then delivers nothing until it is started again"
	case given:
		return "its cursor was given up, and no worker has run it since: start `ordered-dispatcher run`"
	case s.live:
		return "its worker makes its cursor now"
	default:
		return "no worker has run it yet: start `ordered-dispatcher run`"
	}
}
