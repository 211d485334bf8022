package processor

import (
	"errors"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// state is what one pass found, and how long to wait before the next.
type state struct {
	is   State
	wait time.Duration // at most; 0 = as State implies
	halt *HaltError

	ahead time.Duration // StateWaiting: how far the next record is stamped ahead of the clock

	stranger *cursor.StrangerError // StateStandby: which transaction has the row, if it is not a worker's
}

// State is the result of one pass of a process.
type State string

// The states.
const (
	StateWorked  State = "worked"  // records were delivered
	StateIdle    State = "idle"    // there is nothing to deliver
	StateWaiting State = "waiting" // there is a record, and it may still be preceded
	StateStandby State = "standby" // another worker is delivering
	StateFailing State = "failing" // the next attempt is not due
	StateLimited State = "limited" // the limit lets no record go yet
	StatePaused  State = "paused"
	StateHalted  State = "halted"
	StateError   State = "error" // the database or the source failed
)

// resting is the state of a process that has nothing to do, as its row alone shows.
func (p *Process) resting(row cursor.Row) (state, bool) {
	switch {
	case row.State == cursor.Paused:
		return state{is: StatePaused}, true
	case row.State == cursor.Halted:
		halt := &HaltError{Process: row.Process}
		if row.Failure != nil {
			halt.Failure = *row.Failure
		}
		return state{is: StateHalted, halt: halt}, true
	case row.Failure != nil && row.Failure.Wait > 0:
		wait := p.deferred.left(row)
		return state{is: StateFailing, wait: wait}, wait > 0
	default:
		return state{}, false
	}
}

// haltedBy is acquireState, but leaves it to the next look to report that the process is halted.
func (p *Process) haltedBy(err error) (state, error) {
	p.stopped = errors.Is(err, cursor.ErrHalted)
	return acquireState(err)
}

// acquireState separates the routine answers of Acquire from errors.
func acquireState(err error) (state, error) {
	if err == nil {
		return state{}, nil
	}
	if errors.Is(err, cursor.ErrHeld) || errors.Is(err, cursor.ErrPaused) || errors.Is(err, cursor.ErrHalted) {
		s := state{is: StateStandby}
		errors.As(err, &s.stranger)
		return s, nil
	}
	return state{}, err
}
