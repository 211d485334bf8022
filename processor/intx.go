package processor

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// inTx applies records in the lease's transaction and returns how many of them it holds then. The advance that
// follows commits these effects and no others, so each case below has to leave exactly these in the transaction.
func (s *shift) inTx(ds []Delivery) (int, error) {
	applied := s.apply(ds)
	if applied.failure == nil {
		return applied.records, nil
	}
	// The transaction also holds what the failing record wrote before it failed, and PostgreSQL takes no more
	// statements in it. So all effects are undone. TestInTx_AFailedStatementIsUndoneAndTriedAgain
	if err := s.lease.Rollback(context.WithoutCancel(s.run)); err != nil {
		return 0, err // the lease is over, and with it the transaction
	}
	if applied.records == 0 {
		return 0, applied.failure
	}
	again, failure := s.inTx(ds[:applied.records])
	switch {
	case again < applied.records:
		// One of them fails now, or the process ends. The records after it were undone and come later, so no
		// record overtakes another.
		return again, failure
	case applied.suspect:
		// The failure belongs to one of the others, and the next chunk begins with them. Each round has at most
		// half as many records, so the search ends. TestInTx_FindsTheRecordThatBreaksADeferredConstraint
		return again, nil
	default:
		// The records before the failing one commit without it.
		// TestInTx_CommitsWhatStandsBeforeTheFailingRecordAndNothingOfIt
		return again, applied.failure
	}
}

// applied is how far records were applied in the lease's transaction.
type applied struct {
	records int   // before the failure; without one, all that the transaction holds
	failure error // of the record after these
	suspect bool  // the failure is of any of the records, and not known to be of that one
}

// apply applies records in the lease's transaction until one fails or the process ends. It checks deferred
// constraints itself. COMMIT would check them, too, but there a failure would be that of the advance, and of no
// record.
func (s *shift) apply(ds []Delivery) applied {
	for i := range ds {
		if s.ending() {
			// COMMIT checks the constraints of these records. If it fails, no effect and no advance is
			// committed, and the next worker applies the records again.
			return applied{records: i}
		}
		if err := s.callTx(ds[i : i+1]); err != nil {
			return applied{records: i, failure: err}
		}
	}
	switch err := s.checkConstraints(); {
	case err == nil:
		return applied{records: len(ds)}
	case len(ds) == 1:
		return applied{failure: broken(s.config.Dispatch.tx, ds[0], err)}
	default:
		return applied{records: len(ds) / 2, failure: err, suspect: true}
	}
}

// txMargin is how much longer than Config.Timeout a call in a transaction may take. The server ends its
// statements at that time-out, which leaves the connection whole; the end of a context would close it.
const txMargin = 5 * time.Second

// callTx is call in the lease's transaction, for one record.
func (s *shift) callTx(d []Delivery) error {
	return s.inLease(func(ctx context.Context, tx pgx.Tx) error {
		_, err := s.attempt(ctx, tx, d)
		return err
	})
}

// checkConstraints checks the deferred constraints of what was applied.
func (s *shift) checkConstraints() error {
	return s.inLease(func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SET CONSTRAINTS ALL IMMEDIATE")
		return err
	})
}

// inLease runs statements in the lease's transaction, within Config.Timeout.
func (s *shift) inLease(f func(ctx context.Context, tx pgx.Tx) error) error {
	if err := s.lease.Held(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.calls, s.config.Timeout+txMargin)
	defer cancel()
	return s.lease.WithTx(ctx, func(tx pgx.Tx) error { return f(ctx, tx) })
}

// broken returns the sink's word on an error of its deferred constraints. If the sink is no ConstraintSink, broken
// returns the error without the record's data.
func broken(sink TxSink, d Delivery, err error) error {
	if s, ok := sink.(ConstraintSink); ok {
		return s.Broken(d, err)
	}
	return d.redactError(err)
}
