package daemon

import (
	"log/slog"
	"os"
	"sync"
	"time"
)

// signals waits for those that end the program.
type signals struct {
	incoming <-chan os.Signal
	exit     func(code int)
	log      *slog.Logger
	grace    time.Duration

	stopped  chan struct{} // the first one is no longer waited for
	stopOnce sync.Once
	over     chan struct{} // nor is the second
}

func newSignals(c RunConfig) *signals {
	return &signals{
		incoming: c.Signals, exit: c.Exit, log: c.Logger, grace: c.Grace,
		stopped: make(chan struct{}), over: make(chan struct{}),
	}
}

// wait returns at the first signal, or after stop.
func (s *signals) wait() error {
	select {
	case signal := <-s.incoming:
		s.log.Info("stopping: what is being delivered may finish; signal again to stop at once", "signal", signal.String(), "grace", s.grace)
		go s.second()
	case <-s.stopped:
	}
	return nil
}

// second ends the program at the next signal. Nothing is lost by that: what was
// in flight is delivered again.
func (s *signals) second() {
	select {
	case signal := <-s.incoming:
		s.log.Warn("stopping at once: what was being delivered will be delivered again", "signal", signal.String())
		s.exit(ExitFailed)
	case <-s.over:
	}
}

func (s *signals) stop() { s.stopOnce.Do(func() { close(s.stopped) }) }

// forget ends the wait for a second signal.
func (s *signals) forget() { close(s.over) }
