package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// standing adds the next step to a refusal (ErrHalted, ErrNotFailing) that comes from the state of the process. It
// proposes to pass over a record only if a record is at fault.
func (o *Operator) standing(ctx context.Context, err error) error {
	row, _ := o.store.Look(ctx, o.process) // if the row cannot be read, only the refusal is known
	name, halted := visible.Shell(o.process), errors.Is(err, cursor.ErrHalted)
	f := row.Failure
	switch {
	case f != nil && f.OfServer(): // its error names the next step
		return fmt.Errorf("%w; nothing was changed", err)
	case f != nil && f.OfUs() && halted:
		return fmt.Errorf("%w; %s", err, retryOnceFixed(name))
	case f != nil && f.OfUs():
		return fmt.Errorf("%w; nothing was changed: %s, which sends the record. If it refuses this record alone, `ordered-dispatcher seek %s --to-position %s -c FILE --reason …` passes over it",
			err, retryOnceFixed(name), name, visible.Shell(string(f.Position)))
	case halted:
		return fmt.Errorf("%w; fix the cause and `ordered-dispatcher retry %[2]s`, or pass over the record: `ordered-dispatcher skip %[2]s --reason …`", err, name)
	case row.State == cursor.Paused:
		return fmt.Errorf("%w; nothing was changed: `ordered-dispatcher resume %s` sets it running", err, name)
	default:
		return fmt.Errorf("%w; nothing was changed: `ordered-dispatcher status %[2]s` says how it stands, and `ordered-dispatcher seek %[2]s` moves it elsewhere", err, name)
	}
}

// retryOnceFixed is the next step after a halt because the receiver refuses us.
func retryOnceFixed(name string) string {
	return fmt.Sprintf("fix what it says (credentials, address, settings; where records are missing, `seek` back to them), then `ordered-dispatcher retry %s`", name)
}
