package processor

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
)

// hand gives the records of a chunk to the sink. It returns how many of them, from the first on, are
// acknowledged; the error is that of the record after these. Fewer records without an error mean that the
// process is shutting down, or that the rest is for the next call. A record that the source could not read
// fails without the sink.
func (s *shift) hand(ds []Delivery) (int, error) {
	if fault := ds[0].Fault; fault != nil {
		return 0, &unreadableError{fault}
	}
	if s.config.Dispatch.atomic() {
		return s.inTx(ds)
	}
	for n := 0; n < len(ds); {
		if s.ending() {
			return n, nil
		}
		size := s.config.Dispatch.perCall(len(ds) - n)
		acknowledged, err := s.call(ds[n : n+size])
		n += acknowledged
		if err != nil || acknowledged < size {
			return n, err // the next record may not go before this one
		}
	}
	return len(ds), nil
}

// call makes one sink call, under the lease, within Config.Timeout.
func (s *shift) call(ds []Delivery) (int, error) {
	if err := s.lease.Held(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(s.calls, s.config.Timeout)
	defer cancel()
	return s.attempt(ctx, nil, ds)
}

// attempt calls the sink and returns how many records, from the first on, it acknowledged. A panic is a failure
// of the record, not of the program. tx is the lease's transaction, for InTx alone.
func (s *shift) attempt(ctx context.Context, tx pgx.Tx, ds []Delivery) (n int, err error) {
	began := time.Now()
	ctx, span := s.tracing.attempt(ctx, ds, s.config.Dispatch.batch())
	defer func() {
		if value := recover(); value != nil {
			n, err = 0, newPanicError(value, debug.Stack(), ds)
		}
		class := s.classOf(err)
		endSpan(span, class)
		s.config.observe(Event{Kind: EventAttempt, Records: n, Class: class, Took: time.Since(began)})
	}()
	defer s.watchCall(ctx, ds)()
	n, err = s.config.Dispatch.send(ctx, tx, ds)
	return prefix(n, len(ds), err)
}
