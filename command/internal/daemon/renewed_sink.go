package daemon

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// renewed makes a sink anew when the files of its references have changed. It looks after a call that failed, or
// before a call if the last look was a while ago. Nothing is on its way then. It closes the old sink before the new
// one sends, so two never send at once.
type renewed struct {
	rotation *rotation
	env      sinks.Environment

	mu    sync.Mutex
	sink  sinks.Opened
	final bool // the last call ended with an error that only the sink understands
}

// call hands records to the sink. If a changed file may explain the failure, and the receiver has not taken the
// record, it sends the record again at once, with the new sink.
func (r *renewed) call(ctx context.Context, send func(sinks.Opened) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.final && r.rotation.due() {
		r.renew()
	}
	begin := time.Now()
	err := send(r.sink)
	took := time.Since(begin)
	r.final = outcome.IsReportedOnce(err)
	if err != nil && !r.final && r.renew() && isNotTaken(err) {
		err = r.again(ctx, took, err, send)
		r.final = outcome.IsReportedOnce(err)
	}
	return r.rotation.secrets().Error(err)
}

// again repeats a call that has failed, unless the call could not end in time or the receiver asked for a delay.
// Kafka keeps away a worker that another one has superseded.
func (r *renewed) again(ctx context.Context, took time.Duration, err error, send func(sinks.Opened) error) error {
	delay := processor.RetryAfterDelay(err)
	if delay == 0 && isTimeFor(ctx, took) {
		return send(r.sink)
	}
	return processor.RetryAfter(later(err), delay)
}

// isNotTaken reports whether the receiver has not taken the record, and will not.
func isNotTaken(err error) bool {
	return !outcome.IsOutage(err) && (processor.IsRefused(err) || processor.IsUnreached(err) || processor.IsPermanent(err))
}

// isTimeFor reports whether ctx lasts as long again as a call took.
func isTimeFor(ctx context.Context, took time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return ctx.Err() == nil && (!bounded || time.Until(deadline) > took)
}

// later returns an error that does not judge the record, which is tried again.
func later(err error) error {
	return processor.Unreached(errors.New(err.Error() + "; the file of a secret has changed meanwhile, and the next attempt uses the new value"))
}

// renew makes the sink anew if its files have changed, and reports whether it did.
func (r *renewed) renew() bool {
	if p, ok := r.sink.Sink().(sinks.Pending); ok && p.Pending() {
		return false
	}
	now, changed := r.rotation.look()
	if !changed {
		return false
	}
	sink, err := now.Sink.Config.Open(r.env)
	if err != nil {
		r.rotation.warn("the file of a secret has changed, and the sink cannot be made with the new value: the former value stays in use", "err", err.Error())
		return false
	}
	closeSink(r.sink.Sink())
	r.sink = sink
	r.rotation.follow(now)
	return true
}

// Close closes the sink.
func (r *renewed) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	closeSink(r.sink.Sink())
	return nil
}

// closeSink closes a sink that holds a resource. A failure loses nothing: no call is under way.
func closeSink(sink any) {
	if closer, ok := sink.(io.Closer); ok {
		_ = closer.Close()
	}
}

// follow hands records to a sink that is made anew when the files of its process change.
func (d dependencies) follow(opened sinks.Opened, env sinks.Environment) processor.Dispatch {
	r := &renewed{rotation: d.rotation, env: env, sink: opened}
	switch {
	case opened.Each != nil:
		d.closers.add(r)
		return processor.Each(processor.SinkFunc(r.deliver))
	case opened.Pipeline != nil:
		d.closers.add(r)
		return processor.Pipeline(processor.BatchSinkFunc(r.deliverBatch))
	default:
		if closer, ok := opened.InTx.(io.Closer); ok {
			d.closers.add(closer)
		}
		watched := watchedTx{opened.InTx, d.rotation}
		if sink, ok := opened.InTx.(processor.ConstraintSink); ok {
			return processor.InTx(watchedConstraints{watched, sink})
		}
		return processor.InTx(watched)
	}
}

func (r *renewed) deliver(ctx context.Context, d processor.Delivery) error {
	return r.call(ctx, func(sink sinks.Opened) error { return sink.Each.Deliver(ctx, d) })
}

func (r *renewed) deliverBatch(ctx context.Context, ds []processor.Delivery) (n int, err error) {
	err = r.call(ctx, func(sink sinks.Opened) error {
		m, err := sink.Pipeline.DeliverBatch(ctx, ds[n:])
		if n += m; n == len(ds) {
			return nil
		}
		return err
	})
	return n, err
}

// watchedTx is a sink in the cursor's own database, which has no credentials. Its statement may refer to files. If
// one of them has changed, it warns.
type watchedTx struct {
	processor.TxSink
	rotation *rotation
}

// DeliverTx looks at the files from time to time.
func (w watchedTx) DeliverTx(ctx context.Context, tx pgx.Tx, d processor.Delivery) error {
	if w.rotation.due() {
		w.rotation.look()
	}
	return w.TxSink.DeliverTx(ctx, tx, d)
}

// watchedConstraints is a watchedTx whose sink judges errors of deferred constraints.
type watchedConstraints struct {
	watchedTx
	constraints processor.ConstraintSink
}

// Broken is the sink's.
func (w watchedConstraints) Broken(d processor.Delivery, err error) error {
	return w.constraints.Broken(d, err)
}
