package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// Process is the loop for one named cursor.
type Process struct {
	config Config
	log    *slog.Logger

	seen    bool     // the cursor's row stood at some time
	waiting bool     // the last look found only records that may still be preceded
	stuck   *stuck   // the record that failed last, while this worker retries it
	owed    *advance // acknowledged by the sink, but not known to be durable
}

// New returns the process that config describes. It touches nothing yet.
func New(config Config) (*Process, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	if _, ok := config.Source.(Ender); config.Start == End && !ok {
		return nil, fmt.Errorf("process %q: its source cannot say where its end is: start at the beginning or at a position", config.Process)
	}
	return &Process{config: config, log: config.Logger.With("process", config.Process)}, nil
}

// Run delivers records until ctx ends: then it stops reading, lets the sink
// call in flight finish within Config.Grace, advances, gives the lease back and
// returns nil, or ErrGrace if the call did not finish. It makes the cursor if
// there is none. A database that is away, a table that changed or a halted
// process do not end it: it says so in the log and looks again.
//
// Run and Drain must not run at the same time on one Process.
func (p *Process) Run(ctx context.Context) error {
	return p.loop(ctx, func(state, error) (bool, error) { return false, nil })
}

// Drain is Run until every record that was committed is delivered, by whichever
// worker. It returns a *HaltError if the process halts, cursor.ErrPaused if it
// is paused, and any error that will not pass by itself.
func (p *Process) Drain(ctx context.Context) error {
	return p.loop(ctx, func(s state, err error) (bool, error) {
		switch {
		case IsPermanent(err), errors.Is(err, cursor.ErrUnknown), errors.Is(err, cursor.ErrDeleted):
			return true, err
		case err != nil:
			return false, nil
		case s.halt != nil:
			return true, s.halt
		case s.is == paused:
			return true, cursor.ErrPaused
		default:
			return s.is == idle, nil
		}
	})
}

// state is what one pass found, and how long it is worth waiting for another.
type state struct {
	is   condition
	wait time.Duration // at most; 0 = as the condition says
	halt *HaltError
}

type condition int

const (
	worked  condition = iota // records were delivered
	idle                     // there is nothing to deliver
	waiting                  // there is, and it may still be preceded
	standby                  // another worker is at it
	failing                  // the next attempt is not due
	paused
	halted
)

// loop makes pass after pass, waits between them, and stops when ctx ends or
// done says so.
func (p *Process) loop(ctx context.Context, done func(state, error) (bool, error)) error {
	pace := newPace(p.config.Poll)
	report := reporter{log: p.log}
	for ctx.Err() == nil {
		s, err := p.pass(ctx)
		if errors.Is(err, ErrGrace) {
			return fmt.Errorf("process %q: %w", p.config.Process, err)
		}
		if ctx.Err() != nil {
			break
		}
		report.pass(s, err)
		if stop, err := done(s, err); stop {
			return err
		}
		wait(ctx, pace.next(s, err))
	}
	return nil
}

// wait returns after d, or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// pass looks whether there is something to deliver, with neither lock nor
// transaction id, and works if there is.
func (p *Process) pass(ctx context.Context) (state, error) {
	row, err := p.look(ctx)
	if err != nil {
		return state{}, err
	}
	if s, ok := resting(row); ok {
		return s, nil
	}
	seen, err := p.peek(ctx, row)
	if err != nil {
		return state{}, err
	}
	if len(seen.Records) == 0 {
		if p.waiting {
			return state{is: waiting, wait: seen.Due}, nil
		}
		return state{is: idle}, nil
	}
	if active, err := p.othersTurn(ctx, row); active || err != nil {
		return state{is: standby}, err
	}
	lease, err := p.config.Dispatch.acquire(ctx, p.config)
	if err != nil {
		return acquireState(err)
	}
	return state{is: worked}, p.work(ctx, lease, seen)
}

// resting is the state of a process that has nothing to do by its row alone.
func resting(row cursor.Row) (state, bool) {
	switch {
	case row.State == cursor.Paused:
		return state{is: paused}, true
	case row.State == cursor.Halted:
		halt := &HaltError{Process: row.Process}
		if row.Failure != nil {
			halt.Failure = *row.Failure
		}
		return state{is: halted, halt: halt}, true
	case row.Failure != nil && row.Failure.Wait > 0:
		return state{is: failing, wait: row.Failure.Wait}, true
	default:
		return state{}, false
	}
}

// acquireState sorts the answers of Acquire that are routine from errors.
func acquireState(err error) (state, error) {
	if errors.Is(err, cursor.ErrHeld) || errors.Is(err, cursor.ErrPaused) || errors.Is(err, cursor.ErrHalted) {
		return state{is: standby}, nil
	}
	return state{}, err
}

// look reads the cursor's row, and makes it when the process runs for the first
// time. A row that is gone later is not made again.
func (p *Process) look(ctx context.Context) (cursor.Row, error) {
	row, err := p.config.Store.Look(ctx, p.config.Process)
	if errors.Is(err, cursor.ErrUnknown) && !p.seen {
		if err := p.create(ctx); err != nil {
			return cursor.Row{}, err
		}
		row, err = p.config.Store.Look(ctx, p.config.Process)
	}
	if errors.Is(err, cursor.ErrUnknown) {
		return row, fmt.Errorf("%w: its row was deleted while the process ran, and nothing is delivered without it; "+
			"put the row back, or run the process anew with a start", err)
	}
	p.seen = p.seen || err == nil
	return row, err
}

func (p *Process) create(ctx context.Context) (err error) {
	start := p.config.Start
	if start == End {
		// New has seen that the source can say it.
		if start, err = p.config.Source.(Ender).End(ctx); err != nil {
			return fmt.Errorf("find the end of the source: %w", err)
		}
	}
	if start != Beginning {
		// A position that is not the source's would stand in the row for good.
		if _, err := p.config.Source.Read(ctx, start, 1); err != nil {
			return fmt.Errorf("start at position %q: %w", start, err)
		}
	}
	create := p.config.Store.Create
	if p.config.Recreate {
		create = p.config.Store.Recreate
	}
	created, err := create(ctx, p.config.Process, start)
	if errors.Is(err, cursor.ErrDeleted) {
		return fmt.Errorf("%w: made again it would start over; say where with an explicit start (beginning, end or a position)", err)
	}
	if created {
		p.log.Info("cursor created", "position", start)
	}
	return err
}

// peeked is a page and the position it follows.
type peeked struct {
	Page
	after cursor.Position
}

// peek looks for records behind the row's position. A worker that does not
// expect to deliver them, because another one does or because they were waiting
// at the last look, reads no more than one.
func (p *Process) peek(ctx context.Context, row cursor.Row) (peeked, error) {
	limit := p.config.Batch
	if p.anothers(row) || p.waiting {
		limit = 1
	}
	page, err := p.config.Source.Read(ctx, row.Position, limit)
	if err != nil {
		return peeked{}, fmt.Errorf("read behind position %q: %w", row.Position, err)
	}
	p.waiting = page.Waiting && len(page.Records) == 0
	return peeked{page, row.Position}, nil
}

// anothers reports whether another worker delivered last.
func (p *Process) anothers(row cursor.Row) bool {
	return row.Holder != "" && row.Holder != p.config.Store.Worker()
}

// othersTurn leaves the worker that delivered last the first right to deliver
// what has come, so that the epoch does not grow with every lull. It is taken to
// be gone when the cursor stands still for a quarter of a poll.
func (p *Process) othersTurn(ctx context.Context, row cursor.Row) (bool, error) {
	if !p.anothers(row) {
		return false, nil
	}
	wait(ctx, p.config.Poll/patienceFraction)
	now, err := p.config.Store.Look(ctx, p.config.Process)
	return now.Epoch != row.Epoch || now.Position != row.Position, err
}
