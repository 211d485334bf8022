package processor

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
)

// Dispatch is a sink together with its guarantee: Each, Batch, Pipeline or InTx makes one.
type Dispatch struct {
	acquire func(ctx context.Context, c Config) (*cursor.Lease, error)
	// deliver hands records to the sink and returns how many of them, from the first on, are acknowledged. The
	// error is that of the record after these. Fewer records without an error mean that the process is shutting
	// down, or that the rest is for the next call.
	deliver func(s *shift, ds []Delivery) (int, error)
	// chunk bounds the records of one deliver; an advance follows each.
	chunk func(c Config) int
	// outlives reports that records stay acknowledged if the advance fails.
	outlives bool
	// batch reports that one call takes several records.
	batch bool
}

// Each delivers one record at a time, at least once. The cursor advances after every Config.Checkpoint records.
func Each(sink Sink) Dispatch {
	return Dispatch{
		acquire: acquire,
		deliver: func(s *shift, ds []Delivery) (int, error) {
			for i, d := range ds {
				if s.ending() {
					return i, nil
				}
				_, err := s.call(ds[i:i+1], func(ctx context.Context) (int, error) { return one(sink.Deliver(ctx, d)) })
				if err != nil {
					return i, err
				}
			}
			return len(ds), nil
		},
		chunk:    func(c Config) int { return c.Checkpoint },
		outlives: true,
	}
}

// Batch delivers all records of a read in one call, at least once. The cursor advances after each acknowledged
// prefix.
func Batch(sink BatchSink) Dispatch {
	return Dispatch{
		acquire: acquire,
		deliver: func(s *shift, ds []Delivery) (int, error) {
			return s.call(ds, func(ctx context.Context) (int, error) { return sink.DeliverBatch(ctx, ds) })
		},
		chunk:    func(c Config) int { return c.Batch },
		outlives: true,
		batch:    true,
	}
}

// Pipeline is Batch for a sink that sends records one by one and may have several on their way. A call has up
// to Config.Checkpoint records, so that no more than those are sent again after a fault.
func Pipeline(sink BatchSink) Dispatch {
	d := Batch(sink)
	d.chunk = func(c Config) int { return c.Checkpoint }
	return d
}

// InTx delivers into the database that holds the cursor, exactly once: the effects of Config.Checkpoint records
// commit together with the advance.
func InTx(sink TxSink) Dispatch {
	return Dispatch{
		acquire: func(ctx context.Context, c Config) (*cursor.Lease, error) {
			return c.Store.AcquireTx(ctx, c.Process, c.Timeout)
		},
		deliver: func(s *shift, ds []Delivery) (int, error) { return inTx(s, sink, ds) },
		chunk:   func(c Config) int { return c.Checkpoint },
	}
}

// one returns how many of one record were acknowledged.
func one(err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return 1, nil
}

func acquire(ctx context.Context, c Config) (*cursor.Lease, error) {
	return c.Store.Acquire(ctx, c.Process)
}

// inTx applies records until one fails. It undoes those before it together with it, and then applies them once
// more, so that they commit without it.
func inTx(s *shift, sink TxSink, ds []Delivery) (int, error) {
	n, failure := applyAll(s, sink, ds)
	if failure == nil {
		return n, nil
	}
	if err := s.lease.Rollback(context.WithoutCancel(s.run)); err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, failure
	}
	if m, err := inTx(s, sink, ds[:n]); m < n {
		return m, err
	}
	if _, unattributed := failure.(*deferredError); unattributed {
		return n, nil
	}
	return n, failure
}

// applyAll applies records in the lease's transaction and returns how many of them are before the one that
// failed. It checks deferred constraints here, because at COMMIT they would fail the advance. To find which
// record broke one, it halves the records.
func applyAll(s *shift, sink TxSink, ds []Delivery) (int, error) {
	for i, d := range ds {
		if s.ending() {
			return i, nil
		}
		err := s.callTx(ds[i:i+1], func(ctx context.Context, tx pgx.Tx) error { return sink.DeliverTx(ctx, tx, d) })
		if err != nil {
			return i, err
		}
	}
	err := s.inLease(func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SET CONSTRAINTS ALL IMMEDIATE")
		return err
	})
	if err != nil {
		return len(ds) / 2, &deferredError{broken(sink, ds[0], err)}
	}
	return len(ds), nil
}

// constraintSink is a TxSink that words the errors of deferred constraints itself.
type constraintSink interface {
	Broken(d Delivery, err error) error
}

// broken returns the sink's wording of an error of its deferred constraints. If the sink has none, broken
// returns the error without the record's data.
func broken(sink TxSink, d Delivery, err error) error {
	if s, ok := sink.(constraintSink); ok {
		return s.Broken(d, err)
	}
	return d.redactError(err)
}

// deferredError reports a broken constraint that any of several records may have broken.
type deferredError struct{ error }

func (e *deferredError) Unwrap() error { return e.error }

// prefix checks that a batch sink keeps its contract.
func prefix(n, of int, err error) (int, error) {
	switch {
	case n < 0 || n > of:
		return 0, Permanent(errPrefix(n, of))
	case err == nil && n < of:
		return n, errPrefix(n, of)
	case n == of:
		return n, nil // ignore an error once every record is acknowledged
	case n > 0 && outcome.IsNoTime(err):
		return n, nil // the next call delivers the rest
	default:
		return n, err
	}
}
