package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Rename calls operator.Operator.Rename. With a file, the file must have the new name and not the old one, so that no
// worker of the file is left without its cursor.
func Rename(ctx context.Context, c Config, from, to string, d cursor.Decision) (Outcome, error) {
	if err := checkName(to); err != nil {
		return Outcome{}, &UsageError{fmt.Errorf("new name %q: %w", to, err)}
	}
	if names := c.Names(); len(names) > 0 && (!slices.Contains(names, to) || slices.Contains(names, from)) {
		return Outcome{}, usage("rename the process in the file first: the file must have %q, and not %q. It has %s", to, from, oneOf(names))
	}
	c.Processes = nil // no file has the cursor of the old name any more
	o, err := NewOperator(ctx, c, from)
	if err != nil {
		return Outcome{}, err
	}
	defer o.Close()
	change, err := o.op.Rename(ctx, from, to, d)
	switch {
	case errors.Is(err, cursor.ErrExists):
		return Outcome{}, fmt.Errorf("%w; nothing was changed. If that cursor was made by mistake: `ordered-dispatcher process forget %s --reason …`", err, visible.Shell(to))
	case err != nil:
		return Outcome{}, o.explain(ctx, err)
	}
	text := fmt.Sprintf(said(d, "%s is called %s now. It stays", "%s would be called %s. It would stay")+" at %s, sequence %d%s, in epoch %d; its history and its dead letters "+
		said(d, "follow%s. Workers that run %[1]s deliver", "would follow%s. Workers that run %[1]s would deliver")+
		" nothing any more: run %[2]s. A receiver that notes records by the name of the process renames it first (package inbox: Inbox.Rename)",
		from, to, place(change.After.Position), change.After.Sequence, gap(change), change.After.Epoch, renamedShadow(from, to))
	if d.DryRun && errors.Is(o.store.Past(ctx, to), cursor.ErrRenamed) {
		text += fmt.Sprintf(". There was a cursor of the name %s: sequence and epoch go on past its last ones, with a gap of %d or more", to, cursor.SeekGap)
	}
	return Outcome{Change: change, Text: text}, nil
}

// gap describes that a renamed cursor has another sequence than before.
func gap(c operator.Change) string {
	if c.After.Sequence == c.Before.Sequence {
		return ""
	}
	return fmt.Sprintf(" (it was %d: a cursor that had the name before had come to a number that is not used twice)", c.Before.Sequence)
}

// Forget calls operator.Operator.Forget.
func Forget(ctx context.Context, c Config, process string, d cursor.Decision) (Outcome, error) {
	c.Processes = nil // usually the file no longer has such a process
	o, err := NewOperator(ctx, c, process)
	if err != nil {
		return Outcome{}, err
	}
	defer o.Close()
	watched, _ := c.presence(ctx, o.pool) // it is not known without the right, and only words hang on it
	change, err := o.op.Forget(ctx, process, d)
	if err != nil {
		return Outcome{}, o.explain(ctx, err)
	}
	text := fmt.Sprintf("the cursor of %s "+said(d, "is deleted. It was", "would be deleted. It is")+" at %s, sequence %d. A new process of this name begins at its `start`",
		process, place(change.Before.Position), change.Before.Sequence)
	if change.Before.State == "" {
		text = fmt.Sprintf("the name %s %s free: a new process of this name begins at its `start`", process, said(d, "is", "would be"))
	}
	if watched[process].live {
		text += ". A worker runs it now: it " + said(d, "delivers", "would deliver") + " nothing more until it is started again, and begins there then"
	}
	return Outcome{Change: change, Text: text}, nil
}
