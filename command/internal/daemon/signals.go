package daemon

import (
	"log/slog"
	"os"
	"sync"
	"time"
)

// stopMargin is how long processes may take to end after the grace: 3 s to leave the row (leaveTimeout in package
// processor), and 5 s to close the sink (a child of an exec sink has as long between SIGTERM and SIGKILL).
const stopMargin = 8 * time.Second

// oneSignal is how long a signal that comes again is the same one: timeout(1) signals its child, and then its group,
// which has the child in it.
const oneSignal = 100 * time.Millisecond

// signals waits for the signals that end the program.
type signals struct {
	incoming <-chan os.Signal
	exit     func(code int)
	log      *slog.Logger
	grace    time.Duration
	margin   time.Duration   // after the grace: then the program ends, also during a call
	unended  func() []string // processes that have not ended
	begin    func()          // keeps all processes from beginning another record

	stopped  chan struct{} // closed when the crew ends
	stopOnce sync.Once
	over     chan struct{} // closed when everything is closed
}

func newSignals(c RunConfig, crew *crew) *signals {
	return &signals{
		incoming: c.Signals, exit: c.Exit, log: c.Logger, grace: c.Grace, margin: stopMargin, unended: crew.unended, begin: crew.stop,
		stopped: make(chan struct{}), over: make(chan struct{}),
	}
}

// wait returns at the first signal, or after stop: a process has ended with an error, or all is delivered.
func (s *signals) wait() error {
	select {
	case signal := <-s.incoming:
		s.first(signal)
		go s.end(true)
	case <-s.stopped:
		if s.incoming != nil { // else the caller has no signals, and no Exit
			go s.end(false)
		}
	}
	return nil
}

// first logs that the program stops when no process begins another record.
func (s *signals) first(signal os.Signal) {
	s.begin()
	s.log.Info("stopping: running deliveries may finish; signal again to stop at once", "signal", signal.String(), "grace", s.grace)
}

// end ends the program at the second signal, or when the grace is over and a call that ignores its context goes on:
// TestSignals_WhatDoesNotEndAfterTheGraceIsEndedByForce, TestSignals_OnlyTheSecondOneCutsACall. That loses nothing:
// records in flight are delivered again.
func (s *signals) end(signalled bool) {
	begun := time.Now()
	late := time.NewTimer(s.grace + s.margin)
	defer late.Stop()
	for {
		select {
		case signal := <-s.incoming:
			if !signalled {
				signalled, begun = true, time.Now()
				s.first(signal)
				continue
			}
			if time.Since(begun) < oneSignal {
				continue
			}
			s.log.Warn("stopping at once: the records of running deliveries will be delivered again", "signal", signal.String())
			s.exit(ExitFailed)
		case <-late.C:
			s.log.Error("stopping by force, since the grace is over: the records of running deliveries will be delivered again", "not_ended", s.unended())
			s.exit(ExitFailed)
		case <-s.over:
		}
		return
	}
}

func (s *signals) stop() { s.stopOnce.Do(func() { close(s.stopped) }) }

// forget ends the wait for a second signal.
func (s *signals) forget() { close(s.over) }
