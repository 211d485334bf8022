package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Process is the loop for one named cursor.
//
// Beside progress, it keeps what one worker has learnt of the cursor and the server. The row and the server are
// the truth. These fields only notice that they went back, or changed, between two looks:
//
//	field    meaning                                                   set by                         until
//	existed  the cursor's row has existed                              look                           the end of the worker
//	seen     the highest epoch and sequence, and how far the log was   every look, lease and advance  the end of the worker
//	alone    no other process had halted as restored at the first look noteBeside                     the end of the worker
//	reign    the epoch of the cursor                                   began, work                    the next epoch
//	server   the run of the server that was looked at for a promotion  notePromotion, work            the next epoch
//	run      the run of the server that answered last                  othersLook                     another run answers
//	reset    a read met ids before the cursor                          seesReset                      noteReset has written it
//	clock    the server's clock was seen behind a position             watchClock, reads              the row has it, or the next epoch
//	waiting  the last look found only records that may be preceded     peek                           the next look
//	passing  what another worker may be about to pass                  othersToPass                   the row has moved
//	deferred when the next attempt is due, by this machine's clock     resting                        another attempt
type Process struct {
	config  Config
	log     *slog.Logger
	tracing tracing
	limiter *rate.Limiter // nil: no limit

	progress  progress      // of the delivery, beyond the row
	stopped   bool          // the last shift halted the process
	notBefore time.Time     // the limit lets no record go before then
	patience  time.Duration // for all that a pass asks the database before it has the lease

	existed  bool     // the cursor's row has existed at some time
	alone    bool     // no other process had halted as restored when this worker came
	waiting  bool     // the last look found only records that may still be preceded
	passing  passing  // what another worker may be about to pass
	deferred deferred // the next attempt, as this worker first saw it

	torn time.Time // when the log last reported that a torn session cannot be ended

	clock clockWatch
	reset *cursor.ResetHalt // the ids were seen before the cursor, and the row does not have it yet

	seen   cursor.Seen  // the highest of the cursor
	server string       // the run of the server on which this worker has already looked for a promotion
	reign  cursor.Epoch // of the cursor when it was last seen
	run    serverRun    // of the server, at the last look
}

// New returns the process that config describes. It does not use the database or the sink yet.
func New(config Config) (*Process, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	if _, ok := config.Source.(Ender); config.Start == End && !ok {
		return nil, fmt.Errorf("process %q: its source cannot find its end: start at the beginning or at a position", config.Process)
	}
	return &Process{
		config:  config,
		log:     config.Logger.With("process", config.Process),
		tracing: newTracing(config),
		limiter: config.Limit.limiter(),

		progress: progress{atomic: config.Dispatch.atomic()},
		patience: askTimeout,
	}, nil
}

// Run delivers records until ctx ends. Then it stops reading, lets the sink call in flight finish within
// Config.Grace, advances, gives the lease back and returns nil, or ErrGrace if the call did not finish. It
// makes the cursor if there is none, and returns a *NoStartError if it does not know where. It does not end
// because a database is away, a table changed or the process is halted: it logs that and looks again.
//
// It returns cursor.ErrPoolTooSmall at once if the pool of Config.Store does not have enough connections for
// all processes that run on the store: see Connections.
//
// Run and Drain must not run at the same time on one Process.
func (p *Process) Run(ctx context.Context) error {
	return p.loop(ctx, func(_ state, err error) (bool, error) { return isNoStart(err), err })
}

// Drain is Run until every committed record is delivered, by this or another worker. It returns a *HaltError if
// the process halts, cursor.ErrPaused if it is paused, and a *NoStartError as Run does. It also returns any
// error that will not pass by itself: a wrong password or name of the database, a host that has no address,
// missing tables or grants. It waits for a server that is away.
func (p *Process) Drain(ctx context.Context) error {
	return p.loop(ctx, func(s state, err error) (bool, error) {
		switch {
		case IsPermanent(err), isDenied(err), isNoStart(err), errors.Is(err, cursor.ErrUnknown), errors.Is(err, cursor.ErrDeleted), errors.Is(err, cursor.ErrRenamed):
			return true, err
		case err != nil:
			return false, nil
		case s.halt != nil:
			return true, s.halt
		case s.is == StatePaused:
			return true, fmt.Errorf("process %q: %w: `ordered-dispatcher resume %s` sets it running", p.config.Process, cursor.ErrPaused, visible.Shell(p.config.Process))
		default:
			return s.is == StateIdle, nil
		}
	})
}

// loop makes pass after pass, waits between them, and stops when ctx ends or done returns true.
func (p *Process) loop(ctx context.Context, done func(state, error) (bool, error)) error {
	leave, err := p.config.Store.Join(p.config.Process, p.Connections())
	if err != nil {
		return err
	}
	defer leave()
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { p.watchClock(watching) })
	defer func() {
		stop()
		watch.Wait()
		p.leaveStep(ctx)
	}()
	pace := newPace(p.config.Poll)
	report := newReporter(p.log)
	for ctx.Err() == nil {
		s, err := p.pass(ctx)
		if errors.Is(err, ErrGrace) {
			return fmt.Errorf("process %q: %w", p.config.Process, err)
		}
		if ctx.Err() != nil {
			break
		}
		p.observePass(s, err)
		if !isNoStart(err) && (err != nil || !p.stopped) { // the next pass reports the halt
			report.pass(s, err)
		}
		if stop, err := done(s, err); stop {
			return err
		}
		wait(ctx, pace.next(s, err))
	}
	return nil
}

// observePass reports the result of a pass.
func (p *Process) observePass(s state, err error) {
	switch {
	case errors.Is(err, cursor.ErrLeaseLost):
		p.config.observe(Event{Kind: EventLeaseLost})
	case err != nil:
		p.config.observe(Event{Kind: EventDatabaseError})
	}
	if err != nil {
		s.is = StateError
	}
	p.config.observe(Event{Kind: EventPass, State: s.is})
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

// pass looks whether there is something to deliver, without a lock or a transaction id, and delivers it if so.
func (p *Process) pass(ctx context.Context) (state, error) {
	p.stopped = false
	asking, cancel := context.WithTimeoutCause(ctx, p.patience, errOverdue)
	defer cancel()
	todo, s, err := p.find(asking)
	if todo == nil {
		return s, p.overdue(asking, err)
	}
	err = p.work(ctx, todo.lease, todo.seen)
	p.seesReset(err, todo.lease.Position())
	if errors.Is(err, cursor.ErrStoodAside) {
		p.log.Info("gave way between two checkpoints: another session has the cursor's row, or waits for it")
		return state{is: StateStandby, wait: yieldDelay}, nil
	}
	return state{is: StateWorked}, err
}

// work delivers the records that there are under a lease, and gives the lease back. What an earlier shift left
// comes first: the advance that it owes, then its verdict, then the failing record that the row has.
func (p *Process) work(run context.Context, lease *cursor.Lease, seen peeked) error {
	release := p.holding(lease)
	defer release()
	s := p.newShift(run, lease)
	defer s.stop()
	defer func() { p.stopped, p.notBefore = s.halted, s.notBefore }()
	p.log.Debug("lease acquired", "epoch", lease.Epoch(), "position", visible.Cut(string(lease.Position())))
	if err := s.settle(); err != nil {
		return err
	}
	if err := s.conclude(); err != nil {
		return s.outcome(err)
	}
	s.progress.recalled(placeOf(lease), lease.Failure(), p.config.Retry)
	if err := s.reader.onServer(lease, seen.Page); err != nil {
		return err
	}
	if seen.after != lease.Position() {
		return nil // another worker delivered in between: look again
	}
	page := seen.Page
	if seen.under != lease.Epoch() { // an operator decided: the table may have changed before the page was read
		p.began(lease.Epoch())
		s.recycle(page.Records)
		var err error
		if page, err = s.await(s.begin(seen.after, p.config.Batch)); err != nil {
			return s.outcome(err)
		}
	}
	p.reign, p.server = lease.Epoch(), lease.Server()
	if page.Passed != "" {
		return s.outcome(s.passOver(page.Passed))
	}
	return s.outcome(s.deliverAll(page.Records, release))
}
