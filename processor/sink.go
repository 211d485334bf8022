package processor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/packed"
)

// Sink delivers one record at a time.
type Sink interface {
	// Deliver hands the record over. nil means that the receiver has it for good. After an error the record is
	// handed over again, unless the error is marked:
	//
	//	Unreached   nothing was sent, or the receiver takes no record now    tried again; with DeadLetter not an attempt of the record
	//	Unknown     it was sent, and it is not known whether it arrived      tried again, or a halt with HaltOnTimeout
	//	Permanent   the receiver refuses this record for good                a halt, or a dead letter
	//	Refused     the receiver refuses us, for any record                  a halt, until an operator retries
	//	RetryAfter  the receiver asks for a delay                            tried again, no sooner than that
	//
	// The text of the error goes to the log, the cursor's row and the audit: see Record.Redact. Deliver returns
	// soon after ctx ends.
	Deliver(ctx context.Context, d Delivery) error
}

// BatchSink delivers several records in one call.
type BatchSink interface {
	// DeliverBatch hands the records over in order and returns how many of them, from the first on, the
	// receiver has for good. As with io.Writer, n < len(ds) comes with an error, which is that of ds[n].
	// DeliverBatch must not keep ds, which the next call uses again; it may keep what the deliveries hold.
	DeliverBatch(ctx context.Context, ds []Delivery) (n int, err error)
}

// TxSink delivers into the database that holds the cursor, in the transaction that advances it.
type TxSink interface {
	// DeliverTx applies the record through tx. It neither commits nor rolls back; tx refuses both.
	//
	// Deferred constraints are checked after it: see ConstraintSink.
	DeliverTx(ctx context.Context, tx pgx.Tx, d Delivery) error
}

// ConstraintSink is a TxSink that judges errors of deferred constraints itself. They come after DeliverTx, when the
// processor checks the constraints. Broken returns the server's error about a record as DeliverTx would: Permanent,
// Refused or neither, without secrets and the record's data. A TxSink that wraps another one has to hand Broken on.
type ConstraintSink interface {
	TxSink
	Broken(d Delivery, err error) error
}

// SinkFunc is a function that is a Sink.
type SinkFunc func(ctx context.Context, d Delivery) error

// Deliver calls f.
func (f SinkFunc) Deliver(ctx context.Context, d Delivery) error { return f(ctx, d) }

// BatchSinkFunc is a function that is a BatchSink.
type BatchSinkFunc func(ctx context.Context, ds []Delivery) (int, error)

// DeliverBatch calls f.
func (f BatchSinkFunc) DeliverBatch(ctx context.Context, ds []Delivery) (int, error) {
	return f(ctx, ds)
}

// TxSinkFunc is a function that is a TxSink.
type TxSinkFunc func(ctx context.Context, tx pgx.Tx, d Delivery) error

// DeliverTx calls f.
func (f TxSinkFunc) DeliverTx(ctx context.Context, tx pgx.Tx, d Delivery) error { return f(ctx, tx, d) }

// JSON makes a Sink of a typed handler: the payload is decoded into a T for each delivery. A payload that is
// not a T can never be delivered: it halts the process. A payload that is a claim check or compressed is
// Refused: the process lacks the Config.Prepare that makes it whole (package payload).
func JSON[T any](handle func(ctx context.Context, value T, d Delivery) error) Sink {
	return SinkFunc(func(ctx context.Context, d Delivery) error {
		if err := packed.Fault(d.Headers); err != nil {
			return Refused(err)
		}
		var value T
		if err := json.Unmarshal(d.Payload, &value); err != nil {
			return Permanent(fmt.Errorf("decode payload as %T: %w", value, d.redactError(err)))
		}
		return handle(ctx, value, d)
	})
}
