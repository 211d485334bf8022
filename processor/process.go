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
type Process struct {
	config  Config
	log     *slog.Logger
	tracing tracing

	seen    bool         // the cursor's row has existed at some time
	beside  bool         // no other process had halted as restored when this worker came
	waiting bool         // the last look found only records that may still be preceded
	stuck   *stuck       // the record that failed last, while this worker retries it
	owed    *advance     // acknowledged by the sink, but not yet known to be durable
	verdict *verdict     // on a record that failed for good, until it is durable
	epoch   cursor.Epoch // of the last lease; 0 before the first
	doubt   doubt        // the records that may have been sent without an outcome
	sent    sent         // after the cursor, under numbers that are theirs
	bridge  bridge       // what the cursor passed last without a record
	passing passing      // what another worker may be about to pass

	letters   int           // dead letters in a row, since a delivery or a new epoch
	failures  int           // failed attempts in a row, of any record: see Breaker
	limiter   *rate.Limiter // nil: no limit
	deferred  deferred      // the next attempt, as this worker first saw it
	patience  time.Duration // for all that a round asks the database before it has the lease
	stopped   bool          // the last shift halted the process
	notBefore time.Time     // the limit lets no record go before then
	torn      time.Time     // when the log last reported that a torn session cannot be ended

	clock clockWatch
	reset *cursor.ResetHalt // the ids were seen before the cursor, and the row does not have it yet

	numbers cursor.Seen  // the highest of the cursor
	server  string       // the run of the server on which no promotion is left to note
	reign   cursor.Epoch // of the cursor when it was last seen
	run     serverRun    // of the server, at the last look
}

// New returns the process that config describes. It does not use the database or the sink yet.
func New(config Config) (*Process, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	if _, ok := config.Source.(Ender); config.Start == End && !ok {
		return nil, fmt.Errorf("process %q: its source cannot say where its end is: start at the beginning or at a position", config.Process)
	}
	return &Process{
		config:  config,
		log:     config.Logger.With("process", config.Process),
		tracing: newTracing(config),
		limiter: config.Limit.limiter(),

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

// state is what one pass found, and how long to wait before the next.
type state struct {
	is   State
	wait time.Duration // at most; 0 = as State implies
	halt *HaltError

	ahead time.Duration // StateWaiting: how far the next record is stamped ahead of the clock

	stranger *cursor.StrangerError // StateStandby: which transaction has the row, if it is not a worker's
}

// State is the result of one round of a process.
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

// observePass reports the result of a round.
func (p *Process) observePass(s state, err error) {
	switch {
	case errors.Is(err, cursor.ErrLeaseLost):
		p.observe(Event{Kind: EventLeaseLost})
	case err != nil:
		p.observe(Event{Kind: EventDatabaseError})
	}
	if err != nil {
		s.is = StateError
	}
	p.observe(Event{Kind: EventPass, State: s.is})
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
		return state{is: StateStandby, wait: asideDelay}, nil
	}
	return state{is: StateWorked}, err
}

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
	if s, err := p.noteBeside(ctx, row); err != nil || s.is != "" {
		return nil, s, err
	}
	p.began(row.Epoch)
	if s, err := p.noteStep(ctx, row); err != nil || s.is != "" {
		return nil, s, err
	}
	if s, err := p.noteReset(ctx); err != nil || s.is != "" {
		return nil, s, err
	}
	p.numbers = p.numbers.On(row)
	if s, ok := p.resting(row); ok {
		if row.State == cursor.Paused && p.numbers.Lost(row) && (row.Failure == nil || !row.Failure.OfServer()) {
			switch err := p.config.Store.HaltRestored(ctx, p.config.Process, p.numbers); {
			case errors.Is(err, cursor.ErrPaused):
				p.log.Error("the database was restored while the process is paused: `resume` is refused until an operator decides; `status` says why")
			case err != nil:
				return nil, s, err
			}
		}
		p.verdict = p.verdict.unless(s.halt)
		p.numbers = p.numbers.See(row) // an operator may have to decide about an older row
		return nil, s, nil
	}
	if s, err := p.remember(ctx, row); err != nil || s.is != "" {
		return nil, s, err
	}
	if wait := time.Until(p.notBefore); wait > 0 {
		return nil, state{is: StateLimited, wait: wait}, nil
	}
	seen, err := p.peek(ctx, row)
	if err != nil {
		return p.behind(ctx, row, err)
	}
	if wait := p.othersLook(seen.Page); wait > 0 {
		return nil, state{is: StateWaiting, wait: wait}, nil
	}
	switch {
	case len(seen.Records) > 0:
	case seen.Passed != "":
		if p.othersToPass(row) {
			return nil, state{is: StateStandby}, nil
		}
	default:
		if p.waiting {
			return nil, state{is: StateWaiting, wait: seen.Due, ahead: seen.Ahead}, nil
		}
		s, err := p.haltedBy(p.notePromotion(ctx, seen.Server))
		if s.is == "" {
			s.is = StateIdle
		}
		return nil, s, err
	}
	if active, err := p.othersTurn(ctx, row); active || err != nil {
		return nil, state{is: StateStandby}, err
	}
	lease, err := p.acquire(ctx)
	if err != nil {
		p.warnOfTorn(err)
		s, err := p.haltedBy(err)
		return nil, s, err
	}
	p.numbers = p.numbers.Leased(lease)
	p.inherit(row, lease)
	p.tookOver(row, lease.Epoch())
	return &todo{lease, seen}, state{}, nil
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

// tookOver logs a take-over or, if there was none, that an operator decided (resume, retry, skip, seek). Both
// begin an epoch, but only a take-over changes the holder.
func (p *Process) tookOver(row cursor.Row, epoch cursor.Epoch) {
	switch {
	case epoch != row.Epoch:
		p.observe(Event{Kind: EventTakeOver})
		p.log.Info("took over", "epoch", epoch, "position", visible.Cut(string(row.Position)), "from", row.Holder)
	case epoch != p.epoch && p.epoch != 0:
		p.log.Info("an operator decided: see `ordered-dispatcher history`", "epoch", epoch, "position", visible.Cut(string(row.Position)))
	}
	if epoch != p.epoch {
		p.letters = 0
	}
	p.epoch = epoch
}

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
		p.log.Warn("a session holds the lease that will never finish its command, and it cannot be ended: end it with "+torn.Holder.Fix(),
			"session", torn.Holder.String(), "err", torn.Err)
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

// peeked is a page, the position before it, and the epoch of the lease under which it may be delivered.
type peeked struct {
	Page
	after cursor.Position
	under cursor.Epoch
}

// peek looks for records after the row's position. A worker may not expect to deliver them, because another
// worker does or because they were waiting at the last look. Then it reads at most one.
func (p *Process) peek(ctx context.Context, row cursor.Row) (peeked, error) {
	limit := p.config.Batch
	if p.anothers(row) || p.waiting {
		limit = 1
	}
	page, err := p.read(ctx, row.Position, limit)
	if err != nil {
		return peeked{}, fmt.Errorf("read behind position %q: %w", visible.Cut(string(row.Position)), err)
	}
	p.noteLog(page)
	p.waiting = page.Waiting && len(page.Records) == 0 && page.Passed == ""
	return peeked{page, row.Position, p.next(row)}, nil
}

// next is the epoch of the lease that this worker gets if no operator comes in between: a take-over adds one.
func (p *Process) next(row cursor.Row) cursor.Epoch {
	if row.Holder == p.config.Store.Worker() {
		return row.Epoch
	}
	return row.Epoch + 1
}

// anothers reports whether another worker delivered last.
func (p *Process) anothers(row cursor.Row) bool {
	return row.Holder != "" && row.Holder != p.config.Store.Worker()
}

// othersTurn gives the worker that delivered last the first right to deliver new records, so that the epoch
// does not grow with every lull. If the cursor does not move for a quarter of a poll, that worker counts as
// gone.
func (p *Process) othersTurn(ctx context.Context, row cursor.Row) (bool, error) {
	if !p.anothers(row) {
		return false, nil
	}
	wait(ctx, p.config.Poll/patienceFraction)
	now, err := p.config.Store.Look(ctx, p.config.Process)
	return now.Epoch != row.Epoch || now.Position != row.Position, err
}
