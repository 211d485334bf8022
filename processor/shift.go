package processor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// shift is the work of one worker under one lease.
type shift struct {
	config   *Config
	log      *slog.Logger
	tracing  *tracing
	limiter  *rate.Limiter // nil: no limit
	reader   reader
	patience time.Duration // of a read
	progress *progress     // of the worker, over all its shifts

	lease *cursor.Lease
	run   context.Context // ends when the process has to stop
	calls context.Context // of sink calls: ends with the lease, or with run and its grace
	stop  func()

	handed []Delivery // to the sink, one chunk after another

	// What the process has to know of the end of the shift.
	halted    bool      // the process is halted
	notBefore time.Time // the limit lets no record go before then
}

func (p *Process) newShift(run context.Context, lease *cursor.Lease) *shift {
	s := &shift{
		config: &p.config, log: p.log, tracing: &p.tracing, limiter: p.limiter,
		reader: p.reader(), patience: p.patience, progress: &p.progress,
		lease: lease, run: run,
	}
	s.calls, s.stop = withGrace(run, lease.Context(), p.config.Grace)
	return s
}

// withGrace returns a context that ends with the lease's, or with ErrGrace some time after the end of run.
func withGrace(run, lease context.Context, grace time.Duration) (sink context.Context, stop func()) {
	sink, cancel := context.WithCancelCause(lease)
	var timer *time.Timer
	started := make(chan struct{})
	unwatch := context.AfterFunc(run, func() {
		timer = time.AfterFunc(grace, func() { cancel(ErrGrace) })
		close(started)
	})
	return sink, func() {
		if !unwatch() {
			<-started
			timer.Stop()
		}
		cancel(nil)
	}
}

// ending reports that no further record may be handed over.
func (s *shift) ending() bool { return s.run.Err() != nil || s.reader.clock.noticed() }

// deliverAll delivers records and those that follow them, until there are none. It reads the next records while
// these are delivered, and drops them if these fail. release gives the lease back.
func (s *shift) deliverAll(records []Record, release func()) (err error) {
	limit := s.config.Batch
	for len(records) > 0 && err == nil && !s.ending() {
		read := s.readAhead
		if heavy(records) {
			read = s.readBehind
		}
		ahead := read(records, limit)
		began := time.Now()
		err = s.deliver(records)
		limit = s.readLimit(len(records), time.Since(began))
		if err != nil {
			release() // now, and not after the read, which may take long
		}
		var page Page
		page, err = ahead(err)
		records = page.Records
	}
	return err
}

// outcome distinguishes an end that was asked for from one that was not.
func (s *shift) outcome(err error) error {
	switch cause := context.Cause(s.calls); {
	case errors.Is(cause, ErrGrace):
		return ErrGrace
	case errors.Is(cause, cursor.ErrLeaseLost):
		return cause
	case errors.Is(err, errDeferred), errors.Is(err, errLimited):
		return nil
	default:
		return err
	}
}
