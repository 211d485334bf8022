package table

import (
	"math"
	"time"
)

// Held describes how far the fence held back the last read, and the cause.
type Held struct {
	// Lag is for how long the fence has kept newer rows from being read, beyond Config.Latency. Zero if nothing holds
	// the fence.
	Lag time.Duration
	// Cause of the lag; "" if there is none. Writers names the transaction.
	Cause Cause
}

// Cause is the kind of transaction that holds a fence.
type Cause string

// The causes.
const (
	// CauseWriter: an open transaction that writes to the table.
	CauseWriter Cause = "writer"
	// CauseTransaction: any open transaction of the database. It counts where the stamp is the start of a transaction.
	CauseTransaction Cause = "transaction"
	// CausePrepared: a transaction that was prepared, and neither committed nor rolled back.
	CausePrepared Cause = "prepared"
)

// Causes lists all causes.
func Causes() []Cause { return []Cause{CauseWriter, CauseTransaction, CausePrepared} }

// Held returns the state of the fence at the last read that reached it. It waits for no read and asks no database.
func (s *Source) Held() Held {
	if held := s.held.Load(); held != nil {
		return *held
	}
	return Held{}
}

// standing is a fence that stays where it is.
type standing struct {
	bound int64
	since time.Time // when it was first seen there
}

// noteHeld keeps the value that Held returns. The caller holds mu.
func (s *Source) noteHeld(l *layout, r *reading) {
	if r.bound >= r.sample.mark {
		s.standing = standing{}
		if s.held.Load() != nil {
			s.held.Store(nil)
		}
		return
	}
	if s.standing.since.IsZero() || s.standing.bound != r.bound {
		s.standing = standing{r.bound, time.Now()}
	}
	held := &Held{Lag: time.Since(s.standing.since), Cause: l.cause(s.fence.holder)}
	if l.ordersByTime() && r.bound != unbounded {
		held.Lag = time.Duration(min(r.sample.mark-r.bound, math.MaxInt64/1000)) * time.Microsecond
	}
	s.held.Store(held)
}

func (l *layout) cause(w writer) Cause {
	switch {
	case w.prepared:
		return CausePrepared
	case l.stamp == stampAtStart:
		return CauseTransaction
	default:
		return CauseWriter
	}
}
