package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// refusedPatience is for how long a receiver may refuse credentials from files before that is its
// last word: it may know of a new one before the file does. A secret of Kubernetes takes
// up to a minute and a half to come into its volume.
const refusedPatience = 2 * time.Minute

// pending is a sink that may have something on its way between two calls. It is not made anew
// meanwhile.
type pending interface{ Pending() bool }

// renewed makes a sink anew when the files of its references hold something else: after a call
// that failed, or before one if it has not looked for a while. Nothing is on its way then, and the
// old sink is closed before the new one sends: two never send at once.
type renewed[S Sink, T any] struct {
	rotation *rotation
	make     func(S) (T, error)
	patience time.Duration

	mu      sync.Mutex
	sink    T
	refused time.Time // the first refusal since a call that was none; zero: there is none
}

// call hands records to the sink. What a changed file may explain is sent again at once, with
// the new sink, if the receiver has not taken it.
func (r *renewed[S, T]) call(ctx context.Context, send func(T) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rotation.due() {
		r.renew()
	}
	begin := time.Now()
	err := send(r.sink)
	if err == nil {
		r.refused = time.Time{}
		return nil
	}
	took := time.Since(begin)
	if r.renew() && isNotTaken(err) {
		err = r.again(ctx, took, err, send)
	}
	return r.rotation.secrets().Error(r.patiently(err))
}

// again makes a call again that has failed, unless it could not end in time.
func (r *renewed[S, T]) again(ctx context.Context, took time.Duration, err error, send func(T) error) error {
	if isTimeFor(ctx, took) {
		return send(r.sink)
	}
	return later(err, "a file of a secret has changed meanwhile, and the next attempt uses it")
}

// isNotTaken reports whether the receiver has not taken the record, and will not.
func isNotTaken(err error) bool {
	return processor.IsRefused(err) || processor.IsUnreached(err) || processor.IsPermanent(err)
}

// isTimeFor reports whether ctx lasts for as long again as a call took.
func isTimeFor(ctx context.Context, took time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return ctx.Err() == nil && (!bounded || time.Until(deadline) > took)
}

// later is an error that is no verdict on the record, which is tried again.
func later(err error, why string) error {
	return processor.Unreached(errors.New(err.Error() + "; " + why))
}

// patiently has a refusal tried again for a while.
func (r *renewed[S, T]) patiently(err error) error {
	if !processor.IsRefused(err) {
		r.refused = time.Time{}
		return err
	}
	if r.refused.IsZero() {
		r.refused = time.Now()
	}
	if time.Since(r.refused) >= r.patience {
		return err
	}
	return later(err, fmt.Sprintf("its secrets are read from files, which may be renewed: the process halts if this lasts for %v", r.patience))
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
	r := &renewed[S, T]{rotation: d.rotation, make: make, patience: d.refusedPatience, sink: sink}
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
