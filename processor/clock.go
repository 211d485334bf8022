package processor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// clockWatch compares the server's clock with a position while nothing is read: while a page is delivered, or
// while a process is paused, halted or waiting for its receiver. If the clock stepped back and was set right in
// that time, the rows that it stamped meanwhile would never be read.
type clockWatch struct {
	mu      sync.Mutex
	at      cursor.Position // read last, or the one to read on from
	looked  time.Time       // when the clock was seen past the position
	stepped *ClockError     // kept until the row has it
}

// past notes that the clock was past a position.
func (w *clockWatch) past(at cursor.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.looked = at, time.Now()
}

// look takes the position from the row.
func (w *clockWatch) look(row cursor.Row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if resting := row.State != cursor.Running; resting || w.at == "" {
		w.at = watched(row)
	}
}

// watched is the position before which no row may be stamped unnoticed; "" is none. If a process halted over
// its clock, an operator decides about what follows the failure's position. If the source has yet to look for
// such rows, it will find them.
func watched(row cursor.Row) cursor.Position {
	switch f := row.Failure; {
	case row.Position == cursor.Unplaced, row.Unsettled(), f != nil && f.Restored():
		return ""
	case f != nil && f.Class == cursor.ClassClock:
		return f.Position
	default:
		return row.Position
	}
}

// begin forgets the position: an operator may have decided on another one.
func (w *clockWatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = ""
}

// due returns the position to compare the clock with, or "" if there is none or it was compared recently.
func (w *clockWatch) due(interval time.Duration) cursor.Position {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.looked) < interval {
		return ""
	}
	return w.at
}

// answer takes note of the source's answer about its clock and a position.
func (w *clockWatch) answer(at cursor.Position, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var clock *ClockError
	switch {
	case w.at != at: // the position was read meanwhile, or an operator decided
	case err == nil:
		w.looked = time.Now()
	case errors.As(err, &clock) && (w.stepped == nil || clock.From < w.stepped.From):
		w.stepped = &ClockError{Late: clock.Late, Err: clock.Err}
		w.stepped.Server = "" // the server may have started anew when the process halts
	}
}

// noticed reports that the clock was behind a position, and the row does not have it yet.
func (w *clockWatch) noticed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stepped != nil
}

// err is the error of each read after a position, until the row has it or the process goes on from an earlier
// position.
func (w *clockWatch) err(after cursor.Position) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stepped == nil || after <= w.stepped.From {
		w.stepped = nil
		return nil
	}
	return w.stepped
}

// settled forgets a step back that the row has.
func (w *clockWatch) settled() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.stepped = "", nil
}

// noteStep halts the process if the server's clock was seen to be behind. It does so in any state, unless the
// process halted over a restore. Without it, a worker that comes after this one would not know of the step.
func (p *Process) noteStep(ctx context.Context, row cursor.Row) (state, error) {
	if !p.together() || p.seen.Before(row) {
		return state{}, nil
	}
	p.clock.look(row)
	var step *ClockError
	if at := watched(row); !errors.As(p.clock.err(at), &step) {
		return state{}, nil
	}
	err := p.haltUntil(ctx, row.Position, step.Late)
	switch {
	case errors.Is(err, cursor.ErrPaused):
		p.clock.settled()
		p.log.Error("the server's clock stepped back while the process is paused: `resume` is refused until an operator decides", "position", visible.Cut(string(row.Position)), "err", step.Reason)
		return state{is: StatePaused}, nil
	case errors.Is(err, cursor.ErrHalted):
		p.clock.settled()
	}
	return p.haltedBy(err)
}

// leaveTimeout is for how long a worker that ends tries to write to the row what it has seen of the clock.
const leaveTimeout = 3 * time.Second

// leaveStep is noteStep and noteReset for a worker that ends.
func (p *Process) leaveStep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	for p.knows() && ctx.Err() == nil {
		row, err := p.config.Store.Look(ctx, p.config.Process)
		if err == nil {
			_, err = p.noteStep(ctx, row)
		}
		if err == nil {
			_, err = p.noteReset(ctx)
		}
		if err != nil && ctx.Err() != nil {
			p.log.Error("the server's clock or its sequence of ids stepped back, and the worker could not note that in the cursor's row: compare the table with the receiver", "err", err)
		}
		if p.knows() {
			wait(ctx, yieldDelay)
		}
	}
}

// knows reports that this worker has seen something that the row does not have yet.
func (p *Process) knows() bool { return p.clock.noticed() || p.reset != nil }

// watchClock asks for the source's clock once per Config.Poll while nothing is read, until ctx ends.
func (p *Process) watchClock(ctx context.Context) {
	source, ok := p.config.Source.(Clocked)
	if !ok || !p.together() {
		return
	}
	for ctx.Err() == nil {
		wait(ctx, p.config.Poll)
		if at := p.clock.due(p.config.Poll); at != "" {
			asking, cancel := context.WithTimeout(ctx, askTimeout)
			p.clock.answer(at, source.Clock(asking, at))
			cancel()
		}
	}
}
