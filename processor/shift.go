package processor

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// shift is the work of one worker under one lease.
type shift struct {
	*Process
	lease *cursor.Lease
	run   context.Context // ends when the process has to stop
	sink  context.Context // of sink calls: ends with the lease, or with run and its grace
	stop  func()

	handed []Delivery // to the sink, one chunk after another
}

// advance is a step of the cursor.
type advance struct {
	epoch    cursor.Epoch
	from, to cursor.Position
	n        int64
	created  time.Time // when the last record was created
}

func (p *Process) newShift(run context.Context, lease *cursor.Lease) *shift {
	sink, cancel := context.WithCancelCause(lease.Context())
	var grace *time.Timer
	started := make(chan struct{})
	unwatch := context.AfterFunc(run, func() {
		grace = time.AfterFunc(p.config.Grace, func() { cancel(ErrGrace) })
		close(started)
	})
	return &shift{Process: p, lease: lease, run: run, sink: sink, stop: func() {
		if !unwatch() {
			<-started
			grace.Stop()
		}
		cancel(nil)
	}}
}

// ending reports that no further record may be handed over.
func (s *shift) ending() bool { return s.run.Err() != nil || s.clock.noticed() }

// call makes one sink call, under the lease, within Config.Timeout.
func (s *shift) call(ds []Delivery, deliver func(ctx context.Context) (int, error)) (int, error) {
	if err := s.lease.Held(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(s.sink, s.config.Timeout)
	defer cancel()
	return s.attempt(ctx, ds, deliver)
}

// attempt hands records to the sink and returns how many of them, from the first on, it acknowledged. A panic
// is a failure of the record, not of the program.
func (s *shift) attempt(ctx context.Context, ds []Delivery, deliver func(ctx context.Context) (int, error)) (n int, err error) {
	began := time.Now()
	ctx, span := s.tracing.attempt(ctx, ds, s.config.Dispatch.batch)
	defer func() {
		if value := recover(); value != nil {
			n, err = 0, newPanicError(value, debug.Stack(), ds)
		}
		class := s.classOf(err)
		endSpan(span, class)
		s.observe(Event{Kind: EventAttempt, Records: n, Class: class, Took: time.Since(began)})
	}()
	defer s.watchCall(ctx, ds)()
	n, err = deliver(ctx)
	return prefix(n, len(ds), err)
}

// txMargin is how much longer than Config.Timeout a call in a transaction may take. The server ends its
// statements at that time-out, which leaves the connection whole; the end of a context would close it.
const txMargin = 5 * time.Second

// callTx is call with the lease's transaction, for one record.
func (s *shift) callTx(d []Delivery, deliver func(ctx context.Context, tx pgx.Tx) error) error {
	return s.inLease(func(ctx context.Context, tx pgx.Tx) error {
		_, err := s.attempt(ctx, d, func(ctx context.Context) (int, error) {
			return one(deliver(ctx, tx))
		})
		return err
	})
}

// inLease runs statements in the lease's transaction, within Config.Timeout.
func (s *shift) inLease(f func(ctx context.Context, tx pgx.Tx) error) error {
	if err := s.lease.Held(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.sink, s.config.Timeout+txMargin)
	defer cancel()
	return s.lease.WithTx(ctx, func(tx pgx.Tx) error { return f(ctx, tx) })
}

// work delivers the records that there are under a lease, and gives the lease back. It reads the next records
// while these are delivered; a pass that fails drops them.
func (p *Process) work(run context.Context, lease *cursor.Lease, seen peeked) error {
	release := p.holding(lease)
	defer release()
	s := p.newShift(run, lease)
	defer s.stop()
	p.log.Debug("lease acquired", "epoch", lease.Epoch(), "position", visible.Cut(string(lease.Position())))
	if err := s.settle(); err != nil {
		return err
	}
	if err := s.conclude(); err != nil {
		return s.outcome(err)
	}
	s.recall()
	if err := p.onServer(lease, seen.Page); err != nil {
		return err
	}
	if seen.after != lease.Position() {
		return nil // another worker delivered in between: look again
	}
	if seen.under != lease.Epoch() { // an operator decided: the table may have changed before the page was read
		p.began(lease.Epoch())
		s.recycle(seen.Records)
		var err error
		if seen.Page, err = s.await(s.begin(seen.after, p.config.Batch)); err != nil {
			return s.outcome(err)
		}
	}
	p.reign, p.server = lease.Epoch(), lease.Server()
	if seen.Passed != "" {
		return s.outcome(s.passOver(seen.Passed))
	}
	records, err := seen.Records, error(nil)
	limit := p.config.Batch
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
	return s.outcome(err)
}

// recycle gives the memory of a delivered page back to the source.
func (s *shift) recycle(records []Record) {
	if r, ok := s.config.Source.(Recycler); ok {
		r.Recycle(records)
	}
}

// outcome distinguishes an end that was asked for from one that was not.
func (s *shift) outcome(err error) error {
	switch cause := context.Cause(s.sink); {
	case errors.Is(cause, ErrGrace):
		return ErrGrace
	case errors.Is(cause, cursor.ErrLeaseLost):
		return cause
	case errors.Is(err, errSetAside), errors.Is(err, errLimited):
		return nil
	default:
		return err
	}
}

// A read takes several batches while records go out fast: then more records share the cost of a read before its
// first row.
const (
	readAheadTime    = 40 * time.Millisecond
	readAheadBatches = 16
)

// readLimit is how many records to read ahead after the given number were delivered in the given time: as many
// as go out in readAheadTime, between one and readAheadBatches batches.
func (s *shift) readLimit(delivered int, took time.Duration) int {
	batch := s.config.Batch
	return min(max(batch, int(int64(delivered)*int64(readAheadTime)/int64(took+1))), readAheadBatches*batch)
}

// heavyBytes is the payload from which a record is in memory alone. Two of that size at a time become four
// while one of them is copied, and eight with a garbage collector that waits until the heap has doubled.
const heavyBytes = 8 << 20

func heavy(records []Record) bool { return len(records) == 1 && len(records[0].Payload) >= heavyBytes }

// readBehind reads the records after these once these are delivered, and not if they failed. It gives their
// memory back first.
func (s *shift) readBehind(records []Record, limit int) func(error) (Page, error) {
	after := records[len(records)-1].Position
	return func(failed error) (Page, error) {
		s.recycle(records)
		if failed != nil {
			return Page{}, failed
		}
		return s.await(s.begin(after, limit))
	}
}

// readAhead reads the records after these while these are delivered. The returned function waits for the read,
// and drops it if they failed. It gives the memory of the records back last: a source may take it only between
// two reads.
func (s *shift) readAhead(records []Record, limit int) func(error) (Page, error) {
	read := s.begin(records[len(records)-1].Position, limit)
	return func(failed error) (Page, error) {
		defer s.recycle(records)
		if failed != nil {
			s.drop(read)
			return Page{}, failed
		}
		return s.await(read)
	}
}
