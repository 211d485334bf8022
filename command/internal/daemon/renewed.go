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
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// pending is a sink that may have something on its way between two calls. It is not made anew
// meanwhile.
type pending interface{ Pending() bool }

// renewed makes a sink anew when the files of its references hold something else: after a call
// that failed, or before one if it has not looked for a while. Nothing is on its way then, and the
// old sink is closed before the new one sends: two never send at once.
type renewed[S Sink, T any] struct {
	rotation *rotation
	make     func(S) (T, error)

	mu    sync.Mutex
	sink  T
	final bool // the last call ended with what the sink alone knows of
}

// call hands records to the sink. What a changed file may explain is sent again at once, with
// the new sink, if the receiver has not taken it.
func (r *renewed[S, T]) call(ctx context.Context, send func(T) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.final && r.rotation.due() {
		r.renew()
	}
	begin := time.Now()
	err := send(r.sink)
	took := time.Since(begin)
	r.final = outcome.IsFinal(err)
	if err != nil && !r.final && r.renew() && isNotTaken(err) {
		err = r.again(ctx, took, err, send)
		r.final = outcome.IsFinal(err)
	}
	return r.rotation.secrets().Error(err)
}

// again makes a call again that has failed, unless it could not end in time, or the receiver asked
// for a delay: Kafka keeps away a worker that another one has superseded.
func (r *renewed[S, T]) again(ctx context.Context, took time.Duration, err error, send func(T) error) error {
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

// isTimeFor reports whether ctx lasts for as long again as a call took.
func isTimeFor(ctx context.Context, took time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return ctx.Err() == nil && (!bounded || time.Until(deadline) > took)
}

// later is an error that is no verdict on the record, which is tried again.
func later(err error) error {
	return processor.Unreached(errors.New(err.Error() + "; a file of a secret has changed meanwhile, and the next attempt uses it"))
}

// renew makes the sink anew if its files have changed, and reports whether it did.
func (r *renewed[S, T]) renew() bool {
	if p, ok := any(r.sink).(pending); ok && p.Pending() {
		return false
	}
	now, changed := r.rotation.look()
	if !changed {
		return false
	}
	sink, err := r.make(now.Sink.(S))
	if err != nil {
		r.rotation.warn("a file of a secret has changed, and the sink cannot be made with it: its former value stays in use", "err", err.Error())
		return false
	}
	closeSink(r.sink)
	r.sink = sink
	r.rotation.follow(now)
	return true
}

// Close closes the sink.
func (r *renewed[S, T]) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	closeSink(r.sink)
	return nil
}

// closeSink closes a sink that holds something. Nothing is lost by what fails: no call is under way.
func closeSink(sink any) {
	if closer, ok := sink.(io.Closer); ok {
		_ = closer.Close()
	}
}

// open makes a sink, to be closed at the end. renewed is nil where no file is to be followed.
func open[S Sink, T any](d dependencies, s S, make func(S) (T, error)) (sink T, _ *renewed[S, T], err error) {
	if sink, err = make(s); err != nil {
		return sink, nil, err
	}
	if d.rotation == nil {
		if closer, ok := any(sink).(io.Closer); ok {
			d.closers.add(closer)
		}
		return sink, nil, nil
	}
	r := &renewed[S, T]{rotation: d.rotation, make: make, sink: sink}
	d.closers.add(r)
	return sink, r, nil
}

// openEach makes a sink that takes one record at a time.
func openEach[S Sink, T processor.Sink](d dependencies, s S, make func(S) (T, error)) (processor.Dispatch, error) {
	sink, renewed, err := open(d, s, make)
	if err != nil || renewed == nil {
		return processor.Each(sink), err
	}
	return processor.Each(processor.SinkFunc(func(ctx context.Context, d processor.Delivery) error {
		return renewed.call(ctx, func(sink T) error { return sink.Deliver(ctx, d) })
	})), nil
}

// openPipeline makes a sink that has several records on their way.
func openPipeline[S Sink, T processor.BatchSink](d dependencies, s S, make func(S) (T, error)) (processor.Dispatch, error) {
	sink, renewed, err := open(d, s, make)
	if err != nil || renewed == nil {
		return processor.Pipeline(sink), err
	}
	return processor.Pipeline(processor.BatchSinkFunc(func(ctx context.Context, ds []processor.Delivery) (n int, err error) {
		err = renewed.call(ctx, func(sink T) error {
			m, err := sink.DeliverBatch(ctx, ds[n:])
			if n += m; n == len(ds) {
				return nil
			}
			return err
		})
		return n, err
	})), nil
}

// watchedTx is a sink in the cursor's own database, which has no credentials. Its statement may
// refer to files: that one has changed is said.
type watchedTx struct {
	*sql.Sink
	rotation *rotation
}

// DeliverTx looks at the files from time to time.
func (w watchedTx) DeliverTx(ctx context.Context, tx pgx.Tx, d processor.Delivery) error {
	if w.rotation.due() {
		w.rotation.look()
	}
	return w.Sink.DeliverTx(ctx, tx, d)
}
