package processor

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
)

// Dispatch is a sink together with its guarantee: Each, Batch, Pipeline or InTx makes one. It is data: how to
// call the sink, and how many records between two advances. The shift makes the calls.
type Dispatch struct {
	kind kind
	one  Sink      // of kindEach
	many BatchSink // of kindBatch and kindPipeline
	tx   TxSink    // of kindInTx
}

// kind is the guarantee of a Dispatch; the zero kind is none.
type kind int

const (
	kindEach kind = iota + 1
	kindBatch
	kindPipeline
	kindInTx
)

// Each delivers one record at a time, at least once. The cursor advances after every Config.Checkpoint records.
func Each(sink Sink) Dispatch { return Dispatch{kind: kindEach, one: sink} }

// Batch delivers all records of a read in one call, at least once. The cursor advances after each acknowledged
// prefix.
func Batch(sink BatchSink) Dispatch { return Dispatch{kind: kindBatch, many: sink} }

// Pipeline is Batch for a sink that sends records one by one and may have several on their way. A call has up
// to Config.Checkpoint records, so that no more than those are sent again after a fault.
func Pipeline(sink BatchSink) Dispatch { return Dispatch{kind: kindPipeline, many: sink} }

// InTx delivers into the database that holds the cursor, exactly once: the effects of Config.Checkpoint records
// commit together with the advance.
func InTx(sink TxSink) Dispatch { return Dispatch{kind: kindInTx, tx: sink} }

// atomic reports that the effects of a delivery commit together with the advance. Otherwise records stay
// acknowledged if the advance fails.
func (d Dispatch) atomic() bool { return d.kind == kindInTx }

// batch reports that one call takes several records.
func (d Dispatch) batch() bool { return d.kind == kindBatch || d.kind == kindPipeline }

// chunk bounds the records that are handed over together; an advance follows each chunk.
func (d Dispatch) chunk(c *Config) int {
	if d.kind == kindBatch {
		return c.Batch
	}
	return c.Checkpoint
}

// calls is how many sink calls a chunk may take.
func (d Dispatch) calls(c *Config) int {
	if d.batch() {
		return 1
	}
	return d.chunk(c)
}

// perCall is how many of the records left one call takes.
func (d Dispatch) perCall(left int) int {
	if d.batch() {
		return left
	}
	return min(1, left)
}

// called is how many records of a chunk have reached a sink call, if the sink acknowledged n of them. After a
// failure the next record was called, too; a batch was called as a whole.
func (d Dispatch) called(n, of int, failure error) int {
	if failure == nil {
		return n
	}
	return n + d.perCall(of-n)
}

// send calls the sink once. tx is the lease's transaction; only InTx has one.
func (d Dispatch) send(ctx context.Context, tx pgx.Tx, ds []Delivery) (int, error) {
	switch d.kind {
	case kindInTx:
		return one(d.tx.DeliverTx(ctx, tx, ds[0]))
	case kindEach:
		return one(d.one.Deliver(ctx, ds[0]))
	default:
		return d.many.DeliverBatch(ctx, ds)
	}
}

// one returns how many of one record were acknowledged.
func one(err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return 1, nil
}

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
