package processor

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// todo is a page to deliver, with the right to do it.
type todo struct {
	lease *cursor.Lease
	seen  peeked
}

// find looks whether there is something to deliver and takes the lease for it. It returns nil if there is
// nothing to do, or if it is not this worker's turn.
func (p *Process) find(ctx context.Context) (*todo, state, error) {
	row, err := p.look(ctx)
	if err != nil {
		return nil, state{}, err
	}
	if s, err := p.mayRead(ctx, row); err != nil || s.is != "" {
		return nil, s, err
	}
	seen, err := p.peek(ctx, row)
	if err != nil {
		return p.behind(ctx, row, err)
	}
	if s, err := p.mayDeliver(ctx, row, seen); err != nil || s.is != "" {
		return nil, s, err
	}
	lease, err := p.acquire(ctx)
	if err != nil {
		p.warnOfTorn(err)
		s, err := p.haltedBy(err)
		return nil, s, err
	}
	p.seen = p.seen.Leased(lease)
	p.noteEpoch(row, lease.Epoch())
	p.progress.leased(row, placeOf(lease), p.inFlight(row))
	return &todo{lease, seen}, state{}, nil
}

// look reads the cursor's row, and makes it when the process runs for the first time. It does not make a row
// again that is gone later.
func (p *Process) look(ctx context.Context) (cursor.Row, error) {
	row, err := p.config.Store.Observe(ctx, p.config.Process)
	switch {
	case errors.Is(err, cursor.ErrUnknown) && p.existed:
		return row, p.vanished(ctx, err)
	case errors.Is(err, cursor.ErrUnknown):
		err = p.better(ctx, p.create(ctx, p.insert))
	case err == nil && row.Position == cursor.Unplaced && row.State == cursor.Running:
		err = p.create(ctx, p.place)
	default:
		p.existed = p.existed || err == nil
		return row, err
	}
	if err != nil {
		return cursor.Row{}, err
	}
	row, err = p.config.Store.Observe(ctx, p.config.Process)
	p.existed = p.existed || err == nil
	if err == nil && row.Sequence >= cursor.HistoryGap {
		p.log.Warn("the server was promoted, or the database restored: if the process has delivered before, its cursor is lost. Compare what receivers have with the table, "+
			"and `ordered-dispatcher seek` to where delivery should go on", "position", visible.Cut(string(row.Position)), "sequence", row.Sequence)
	}
	return row, err
}

// mayRead decides by the row whether to read what follows it. A state means that this pass ends with it.
func (p *Process) mayRead(ctx context.Context, row cursor.Row) (state, error) {
	if s, err := p.noteBeside(ctx, row); err != nil || s.is != "" {
		return s, err
	}
	p.began(row.Epoch)
	if s, err := p.noteStep(ctx, row); err != nil || s.is != "" {
		return s, err
	}
	if s, err := p.noteReset(ctx); err != nil || s.is != "" {
		return s, err
	}
	p.seen = p.seen.On(row)
	if s, ok := p.resting(row); ok {
		return p.rest(ctx, row, s)
	}
	if s, err := p.remember(ctx, row); err != nil || s.is != "" {
		return s, err
	}
	if wait := time.Until(p.notBefore); wait > 0 {
		return state{is: StateLimited, wait: wait}, nil
	}
	return state{}, nil
}

// rest notes what the row of a process with nothing to do shows.
func (p *Process) rest(ctx context.Context, row cursor.Row, s state) (state, error) {
	if row.State == cursor.Paused && p.seen.Lost(row) && (row.Failure == nil || !row.Failure.OfServer()) {
		switch err := p.config.Store.HaltRestored(ctx, p.config.Process, p.seen); {
		case errors.Is(err, cursor.ErrPaused):
			p.log.Error("the database was restored while the process is paused: `resume` is refused until an operator decides; `status` shows why")
		case err != nil:
			return s, err
		}
	}
	if s.halt != nil {
		p.progress.haltSeen(s.halt.Failure.Position)
	}
	p.seen = p.seen.See(row) // an operator may have to decide about an older row
	return s, nil
}

// mayDeliver decides by a page whether to take the lease for it. A state means that this pass ends with it.
func (p *Process) mayDeliver(ctx context.Context, row cursor.Row, seen peeked) (state, error) {
	if wait := p.othersLook(seen.Page); wait > 0 {
		return state{is: StateWaiting, wait: wait}, nil
	}
	switch {
	case len(seen.Records) > 0:
	case seen.Passed != "":
		if p.othersToPass(row) {
			return state{is: StateStandby}, nil
		}
	case p.waiting:
		return state{is: StateWaiting, wait: seen.Due, ahead: seen.Ahead}, nil
	default:
		s, err := p.haltedBy(p.notePromotion(ctx, seen.Server))
		if s.is == "" {
			s.is = StateIdle
		}
		return s, err
	}
	if active, err := p.othersTurn(ctx, row); active || err != nil {
		return state{is: StateStandby}, err
	}
	return state{}, nil
}

// began forgets what may no longer hold when the cursor's epoch has changed. An operator may have decided that
// notePromotion has to look again, or may have paused the process to change the table.
func (p *Process) began(epoch cursor.Epoch) {
	if epoch == p.reign {
		return
	}
	p.reign, p.server = epoch, ""
	p.clock.begin()
	if r, ok := p.config.Source.(Refresher); ok {
		r.Refresh()
	}
}

// noteEpoch logs a take-over or, if there was none, that an operator decided (resume, retry, skip, seek). Both
// begin an epoch, but only a take-over changes the holder.
func (p *Process) noteEpoch(row cursor.Row, epoch cursor.Epoch) {
	switch last := p.progress.epoch; {
	case epoch != row.Epoch:
		p.config.observe(Event{Kind: EventTakeOver})
		at := []any{"epoch", epoch, "position", visible.Cut(string(row.Position))}
		if row.Holder != "" {
			at = append(at, "from", row.Holder)
		}
		p.log.Info("took over", at...)
	case epoch != last && last != 0:
		p.log.Info("an operator decided: see `ordered-dispatcher history`", "epoch", epoch, "position", visible.Cut(string(row.Position)))
	}
}

// inFlight is how many records after the cursor another worker may have sent: those of one chunk, or all whose
// advance a promotion lost.
func (p *Process) inFlight(row cursor.Row) int {
	lost := p.seen.Sequence - row.Sequence
	return max(p.config.Dispatch.chunk(&p.config), int(min(lost, math.MaxInt32)))
}

// warnOfTorn logs that the network of a worker died in the middle of a command, and what happened to its
// session.
func (p *Process) warnOfTorn(err error) {
	var torn *cursor.TornError
	switch {
	case !errors.As(err, &torn):
	case torn.Err == nil:
		p.log.Warn("ended a session that held the lease and would never have finished its command", "session", torn.Holder.String())
	case time.Since(p.torn) >= repeatInterval:
		p.torn = time.Now()
		p.log.Warn("a session that will never finish its command holds the lease, and the worker could not end it: end it with "+torn.Holder.Fix(),
			"session", torn.Holder.String(), "err", torn.Err)
	}
}
