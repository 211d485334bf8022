package processor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// clockWatch is what was read last, and when. While a page is delivered, or a process is paused, halted or waits for its
// receiver, nothing is read: a clock that steps back and is put right in that time would go unnoticed, and what it has
// stamped before the end of the page would never be read.
type clockWatch struct {
	mu      sync.Mutex
	at      cursor.Position
	looked  time.Time   // at the clock, which was past the position
	stepped *ClockError // until the process is halted over it
}

// past notes that the clock was past a position.
func (w *clockWatch) past(at cursor.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.looked = at, time.Now()
}

// begin forgets the position: an operator may have decided on another one.
func (w *clockWatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = ""
}

// due is the position to hold the clock against, "" if there is none or it was done lately.
func (w *clockWatch) due(interval time.Duration) cursor.Position {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stepped != nil || time.Since(w.looked) < interval {
		return ""
	}
	return w.at
}

// answer takes up what the source says of its clock and a position.
func (w *clockWatch) answer(at cursor.Position, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var clock *ClockError
	switch {
	case w.at != at: // it was read, or an operator decided, meanwhile
	case err == nil:
		w.looked = time.Now()
	case errors.As(err, &clock) && clock.From != "": // else it is another server, which the next read finds out
		w.stepped = &ClockError{Late: clock.Late, Err: clock.Err}
		w.stepped.Server = "" // it may have been started anew when the process halts
	}
}

// err is the error of each read after a position, until the process is halted over it or goes on before it.
func (w *clockWatch) err(after cursor.Position) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stepped == nil || after <= w.stepped.From {
		w.stepped = nil
		return nil
	}
	return w.stepped
}

// halted forgets the step that the process was halted over, by this worker or another one.
func (w *clockWatch) halted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.stepped = "", nil
}

// watchClock looks at the source's clock once a Config.Poll for as long as nothing is read, until ctx ends.
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
