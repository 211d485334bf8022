package daemon

import (
	"log/slog"
	"os"
	"sync"
	"time"
)

// stopMargin is how long processes may take to end after the grace. A child of an exec sink has five seconds between
// SIGTERM and SIGKILL.
const stopMargin = 8 * time.Second

// signals waits for the signals that end the program.
type signals struct {
	incoming <-chan os.Signal
	exit     func(code int)
	log      *slog.Logger
	grace    time.Duration
	margin   time.Duration   // after the grace: then the program ends, also during a call
	unended  func() []string // processes that have not ended
	begin    func()          // keeps all processes from beginning another record

	stopped  chan struct{} // the first signal is no longer waited for
	stopOnce sync.Once
	over     chan struct{} // nor is the second
}

func newSignals(c RunConfig, crew *crew) *signals {
	return &signals{
		incoming: c.Signals, exit: c.Exit, log: c.Logger, grace: c.Grace, margin: stopMargin, unended: crew.unended, begin: crew.stop,
		stopped: make(chan struct{}), over: make(chan struct{}),
	}
}

// wait returns at the first signal, or after stop. It logs that the program stops when no process begins another
// record.
func (s *signals) wait() error {
	select {
	case signal := <-s.incoming:
		s.begin()
		s.log.Info("stopping: what is being delivered may finish; signal again to stop at once", "signal", signal.String(), "grace", s.grace)
		go s.second()
	case <-s.stopped:
	}
	return nil
}

// second ends the program at the next signal, or when the grace is over and a call that ignores its context goes on.
// That loses nothing: records in flight are delivered again.
func (s *signals) second() {
	late := time.NewTimer(s.grace + s.margin)
	defer late.Stop()
	select {
	case signal := <-s.incoming:
		s.log.Warn("stopping at once: what was being delivered will be delivered again", "signal", signal.String())
		s.exit(ExitFailed)
	case <-late.C:
		s.log.Error("stopping by force, the grace is over: what was being delivered will be delivered again", "not_ended", s.unended())
		s.exit(ExitFailed)
	case <-s.over:
	}
}

func (s *signals) stop() { s.stopOnce.Do(func() { close(s.stopped) }) }

// forget ends the wait for a second signal.
func (s *signals) forget() { close(s.over) }
