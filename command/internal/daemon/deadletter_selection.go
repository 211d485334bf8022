package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Selection chooses dead letters: those of IDs, or else the open ones of Process.
type Selection struct {
	// Process is the process to which they belong. Required without IDs.
	Process string
	// IDs are the ids of dead letters, all of one process.
	IDs []int64
	// Error is a text that their errors contain; "" for any. Not with IDs.
	Error string
}

// Select returns the open dead letters of a selection, at most MaxDeadLetters, in the order of their positions. If
// one of IDs is not open, it returns cursor.ErrNoDeadLetter. decision and r are the planned decision about them.
func (d *DeadLetters) Select(ctx context.Context, s Selection, decision cursor.Decision, r cursor.Resolution) ([]cursor.DeadLetter, error) {
	if len(s.IDs) == 0 {
		letters, err := d.op.OpenDeadLetters(ctx, s.Process, s.Error, MaxDeadLetters)
		if err == nil && len(letters) == 0 {
			err = d.known(ctx, s.Process)
		}
		return letters, Reachable(err)
	}
	var letters []cursor.DeadLetter
	for _, id := range slices.Compact(slices.Sorted(slices.Values(s.IDs))) {
		letter, err := d.store.Resolvable(ctx, id, decision, r)
		if err != nil {
			return nil, d.explain(err)
		}
		letter.Payload = nil // it may be large, and is read again
		letters = append(letters, letter)
	}
	process := cmp.Or(s.Process, letters[0].Process)
	for _, l := range letters {
		if l.Process != process {
			return nil, usage("dead letter %d belongs to process %q, not to %q: decide about one process at a time", l.ID, l.Process, process)
		}
	}
	slices.SortFunc(letters, func(a, b cursor.DeadLetter) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.ID, b.ID))
	})
	return letters, nil
}

// each decides about one after the other, and stops at the first failure. It calls done after each.
func each(letters []cursor.DeadLetter, decide func(cursor.DeadLetter) error, done func(cursor.DeadLetter) error) error {
	for i, l := range letters {
		err := decide(l)
		if err == nil {
			err = done(l)
		}
		if err != nil && len(letters) > 1 {
			return fmt.Errorf("stopped at dead letter %d, the %s of %d: %w", l.ID, ordinal(i+1), len(letters), err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func ordinal(n int) string {
	suffix := "th"
	if n%100/10 != 1 {
		suffix = []string{"th", "st", "nd", "rd", "th", "th", "th", "th", "th", "th"}[n%10]
	}
	return fmt.Sprint(n, suffix)
}

// None explains that nothing was selected.
func (s Selection) None() string {
	text := "no open dead letters of " + visible.Line(s.Process)
	if s.Error != "" {
		text += " have an error that contains " + visible.Quoted(s.Error)
	}
	return text
}

// Letters writes a number of dead letters in words.
func Letters(n int) string {
	switch {
	case n == 1:
		return "1 dead letter"
	case n >= MaxDeadLetters:
		return fmt.Sprintf("the first %d dead letters", n)
	default:
		return fmt.Sprintf("%d dead letters", n)
	}
}
