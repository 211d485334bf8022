package sql

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Remote runs the statements of a Sink in another database than the cursor's, the target. It does so exactly once: in
// one transaction with a note of the applied records. It implements processor.BatchSink and is safe for concurrent
// use; calls take turns on its one connection.
type Remote struct {
	config  Config
	address *pgx.ConnConfig
	sink    *Sink
	guard   secret.Guard

	mu   sync.Mutex
	conn *pgx.Conn // nil: to be opened
	// most bounds how many records are one transaction, after one of several took longer than a call may. 0: no bound.
	most int
}

var _ processor.BatchSink = (*Remote)(nil)

// NewRemote makes a sink. It connects with the first delivery, not before.
func NewRemote(c Config) (*Remote, error) {
	c = c.withDefaults()
	if err := c.validateRemote(); err != nil {
		return nil, fmt.Errorf("configure sql sink: %w", err)
	}
	address, _ := c.parse() // validated
	sink, err := New(c)
	if err != nil {
		return nil, err
	}
	return &Remote{config: c, address: address, sink: sink, guard: newGuard(c, address)}, nil
}

// String names the target.
func (r *Remote) String() string { return target(r.address) }

// GoString is String, so that no verb prints the password.
func (r *Remote) GoString() string { return r.String() }

// Close closes the connection. A later delivery opens another.
func (r *Remote) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
	return nil
}

// DeliverBatch applies records in order. It returns how many of them, from the first on, the target has committed,
// now or at an earlier attempt. They are one transaction, unless one fails: then the records before it are committed
// without it. After a transaction of several records took longer than the call may, the next ones have one record, two,
// four and so on. ErrFenced, ErrMissing, ErrHistory and ErrForeign explain why nothing may be applied.
func (r *Remote) DeliverBatch(ctx context.Context, ds []processor.Delivery) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n < len(ds) && err == nil {
		var rest []processor.Delivery
		if rest, err = r.sink.fit(ds[n:]); err != nil {
			break
		}
		if r.most > 0 {
			rest = rest[:min(len(rest), r.most)]
		}
		var m int
		m, err = r.some(ctx, rest)
		n += m
		if err == nil && r.most > 0 && r.most < len(ds) {
			r.most *= 2
		}
	}
	return n, r.guard.Error(err)
}

// some commits records from the first on, all of them if it can, or returns why the first cannot be committed. After
// each transaction that fails it tries a shorter one.
func (r *Remote) some(ctx context.Context, ds []processor.Delivery) (int, error) {
	for {
		before, err := r.try(ctx, ds)
		if err == nil {
			return len(ds), nil
		}
		if before == 0 {
			return 0, r.refused(ctx, ds[0], err)
		}
		ds = ds[:before]
	}
}

// try applies records in one transaction. If it fails, fewer may succeed: those before the one that failed, or half
// of them if any may have been at fault.
func (r *Remote) try(ctx context.Context, ds []processor.Delivery) (before int, err error) {
	defer r.end()
	t, err := r.enter(ctx, ds)
	if err != nil {
		return 0, err
	}
	effects := len(t.rest) * len(r.sink.statements)
	done, err := r.apply(ctx, t, ds[0].Process)
	if err == nil {
		return 0, nil
	}
	switch {
	case (isServers(err) || errors.Is(err, errNoRow)) && done < effects:
		at := done / len(r.sink.statements)
		return t.done + at, outcome.AboutRecord(r.failed(r.sink.failure(done%len(r.sink.statements), t.rest[at], err)))
	case isServers(err) && done == effects && effects > 0:
		return t.done + len(t.rest)/2, outcome.AboutRecord(r.failed(r.sink.Broken(t.rest[0], err)))
	case isNotKept(err):
		return 0, r.notKept()
	case isServers(err) && isUnencodable(err):
		return 0, r.unencodable(err)
	case len(t.rest) > 1 && errors.Is(ctx.Err(), context.DeadlineExceeded):
		// All together took too long, which shows nothing about the first. TestRemote_ACheckpointOfSlowStatementsIsApplied
		r.drop()
		r.most = 1
		return 0, processor.Unreached(outcome.Outage(r.unknown(ctx, fmt.Errorf("%d records took longer together than a call may, and the next attempt makes smaller transactions: %w", len(t.rest), err))))
	default:
		r.drop()
		return 0, r.unknown(ctx, err)
	}
}

// apply commits the effects of the records, with the note of them. It returns how many statements succeeded.
func (r *Remote) apply(ctx context.Context, t turn, process string) (done int, err error) {
	var batch pgconn.Batch
	for _, d := range t.rest {
		r.sink.queue(&batch, d)
	}
	if r.sink.requireRow { // the rows have to be counted before a COMMIT is on its way
		if done, err = r.sink.run(ctx, r.conn.PgConn(), &batch); err != nil {
			return done, err
		}
		batch = pgconn.Batch{}
	}
	batch.ExecParams(constraintsSQL, nil, nil, nil, nil)
	r.queueDone(&batch, t, process)
	committed, err := r.commit(ctx, &batch)
	return done + committed, err
}

// enter is begin on the present connection, or on a new one. If the connection of the last delivery ended while it
// was idle, that is not a failure.
func (r *Remote) enter(ctx context.Context, ds []processor.Delivery) (turn, error) {
	reused := r.conn != nil && !r.conn.IsClosed()
	if err := r.open(ctx); err != nil {
		return turn{}, r.unsent(err)
	}
	t, err := r.begin(ctx, ds)
	if err == nil || !reused || r.conn != nil || ctx.Err() != nil {
		return t, err
	}
	if err := r.open(ctx); err != nil {
		return turn{}, r.unsent(err)
	}
	return r.begin(ctx, ds)
}

// constraintsSQL checks deferred constraints while a failure of the transaction can still be distinguished from one
// of its commit. The sink finds the record that broke a constraint by halves.
const constraintsSQL = `SET CONSTRAINTS ALL IMMEDIATE`

// refused notes in the target that a record failed there. So an operator's skip or a dead letter can be distinguished
// from a record that the target lost. A record is not given up unless that is noted.
func (r *Remote) refused(ctx context.Context, d processor.Delivery, failure error) error {
	if !outcome.IsAboutRecord(failure) || processor.IsRefused(failure) {
		return failure
	}
	defer r.end()
	t, err := r.enter(ctx, []processor.Delivery{d}) // on a new connection, if the target hung when the failed transaction was to end
	if err == nil {
		var batch pgconn.Batch
		r.queueRefused(&batch, t, d)
		_, err = r.commit(ctx, &batch)
	}
	switch {
	case isNotKept(err):
		err = r.notKept()
	case isUnencodable(err) && !processor.IsRefused(err):
		err = r.unencodable(err)
	}
	if err != nil {
		return fmt.Errorf("%w; and the target could not note that: %w", outcome.Text(failure), err)
	}
	return failure
}
