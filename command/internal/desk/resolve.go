package desk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// replayTimeout is how long one replay may take.
const replayTimeout = time.Minute

func (o Order) aboutLetters() bool { return o.Verb == Replay || o.Verb == Discard }

func (o Order) checkLetters() error {
	chosen := 0
	for _, is := range []bool{len(o.Letters) > 0, o.AllLetters, o.Error != ""} {
		if is {
			chosen++
		}
	}
	switch {
	case chosen != 1:
		return wrong("choose dead letters by their ids, or by a text of their error, or all of the process")
	case len(o.Letters) > MaxLetters:
		return wrong(fmt.Sprintf("at most %d dead letters are decided about at once", MaxLetters))
	default:
		return nil
	}
}

// selection is which dead letters an order is about.
func (o Order) selection() daemon.Selection {
	s := daemon.Selection{Process: o.Process, Error: o.Error}
	for _, id := range o.Letters {
		s.IDs = append(s.IDs, int64(id))
	}
	return s
}

func (o Order) resolution() cursor.Resolution {
	if o.Verb == Replay {
		return cursor.Replayed
	}
	return cursor.Discarded
}

// chosen opens the dead letters, and returns those that an order is about. At most MaxLetters of them are decided about
// at once: more reports that there are others.
func (d *Desk) chosen(ctx context.Context, o Order, decision cursor.Decision) (all *daemon.DeadLetters, letters []cursor.DeadLetter, more bool, err error) {
	all, err = daemon.NewDeadLetters(ctx, d.config.Config.Apart(decisionConns))
	if err != nil {
		return nil, nil, false, err
	}
	decision.DryRun = true // Select only reads
	if letters, err = all.Select(ctx, o.selection(), decision, o.resolution()); err != nil {
		all.Close()
		return nil, nil, false, err
	}
	if more = len(letters) > MaxLetters; more {
		letters = letters[:MaxLetters]
	}
	return all, letters, more, nil
}

// digest identifies a selection: the same dead letters, in the same order.
func digest(letters []cursor.DeadLetter) string {
	h := sha256.New()
	for _, l := range letters {
		fmt.Fprintf(h, "%d %q\n", l.ID, l.Position)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (d *Desk) previewLetters(ctx context.Context, o Order) (Preview, error) {
	decision := cursor.Decision{Actor: "preview", Reason: "preview", DryRun: true, Timeout: replayTimeout}
	all, letters, more, err := d.chosen(ctx, o, decision)
	if err != nil {
		return Preview{}, err
	}
	defer all.Close()
	p := Preview{Total: int64(len(letters)), Capped: more, Changes: len(letters) > 0, Expect: expected{Letters: digest(letters)}.String()}
	if !p.Changes {
		p.Text = o.selection().None()
		return p, nil
	}
	if err := d.resolve(ctx, all, o, letters[:1], decision, func(cursor.DeadLetter) error { return nil }); err != nil {
		return Preview{}, err
	}
	for _, l := range letters[:min(len(letters), daemon.ListRecords)] {
		p.Records = append(p.Records, d.letterOf(l, Masked).Record)
	}
	would := "would be discarded, and never be delivered"
	if o.Verb == Replay {
		would = "would be delivered once more, in this order until one fails"
	}
	p.Text = visible.Inline(fmt.Sprintf("%s of %s %s", daemon.Letters(len(letters)), o.Process, would))
	return p, nil
}

func (d *Desk) decideLetters(ctx context.Context, o Order, decision cursor.Decision, expect expected) (Decided, error) {
	decision.Timeout = rowTimeout
	if o.Verb == Replay {
		decision.Timeout = replayTimeout
	}
	all, letters, _, err := d.chosen(ctx, o, decision)
	if err != nil {
		return Decided{}, err
	}
	defer all.Close()
	if digest(letters) != expect.Letters {
		return Decided{}, &Error{Kind: KindMoved, Text: "these are other dead letters than in the preview, or some are resolved by now: nothing was changed"}
	}
	if len(letters) == 0 {
		return Decided{Text: o.selection().None()}, nil
	}
	var done Decided
	err = d.resolve(ctx, all, o, letters, decision, func(cursor.DeadLetter) error {
		done.Done++
		done.Changed = true
		return nil
	})
	done.Text = fmt.Sprintf("%d of %d dead letters are %s", done.Done, len(letters), o.resolution())
	if err != nil && done.Done > 0 { // a part of it is done, which is no failure of the whole
		done.Failed = d.board.clean(err)
		return done, nil
	}
	return done, err
}

func (d *Desk) resolve(ctx context.Context, all *daemon.DeadLetters, o Order, letters []cursor.DeadLetter, decision cursor.Decision, done func(cursor.DeadLetter) error) error {
	if o.Verb == Replay {
		return all.Replay(ctx, letters, decision, daemon.Output{Stdout: d.config.Stdout, Logger: d.config.Logger}, done)
	}
	return all.Discard(ctx, letters, decision, done)
}
