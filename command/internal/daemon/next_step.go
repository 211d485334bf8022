package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// standing adds the next step to a refusal (ErrHalted, ErrNotFailing) that comes from the state of the process. It
// proposes to pass over a record only if a record is at fault.
func (o *Operator) standing(ctx context.Context, err error) error {
	row, _ := o.store.Look(ctx, o.process) // if the row cannot be read, only the refusal is known
	name, halt := visible.Shell(o.process), processor.HaltError{Process: o.process}
	if row.Failure != nil {
		halt.Failure = *row.Failure
	}
	switch f := halt.Failure; {
	case f.OfServer(): // its error names the next step
		return fmt.Errorf("%w; nothing was changed", err)
	case errors.Is(err, cursor.ErrHalted):
		return fmt.Errorf("%w; next: %s", err, halt.Next())
	case f.OfUs():
		return fmt.Errorf("%w; nothing was changed: %s, which sends the record. If it refuses this record alone, `ordered-dispatcher seek %s --to-position %s -c FILE --reason …` passes over it",
			err, halt.Next(), name, visible.Shell(string(f.Position)))
	case row.State == cursor.Paused:
		return fmt.Errorf("%w; nothing was changed: `ordered-dispatcher resume %s` sets it running", err, name)
	default:
		return fmt.Errorf("%w; nothing was changed: `ordered-dispatcher status %[2]s` shows its state, and `ordered-dispatcher seek %[2]s` moves it elsewhere", err, name)
	}
}
