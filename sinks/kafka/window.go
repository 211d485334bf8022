package kafka

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// answers are those of a window's records.
type answers struct {
	done chan struct{} // closed when all are there

	mu      sync.Mutex
	errs    []error
	there   []bool
	missing int
}

func newAnswers(n int) *answers {
	return &answers{done: make(chan struct{}), errs: make([]error, n), there: make([]bool, n), missing: n}
}

// of returns what the client calls with the answer of the record at i.
func (a *answers) of(i int) func(*kgo.Record, error) {
	return func(_ *kgo.Record, err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.errs[i], a.there[i] = err, true
		if a.missing--; a.missing == 0 {
			close(a.done)
		}
	}
}

// prefix is how many records from the first on are acknowledged, and the error of
// the next. whole says that no answer is missing.
func (a *answers) prefix() (n int, whole bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	whole = a.missing == 0
	for i, err := range a.errs {
		if err != nil || !a.there[i] {
			return i, whole, err
		}
	}
	return len(a.errs), whole, nil
}

// produce sends a window and waits for its answers. It returns how many records
// from the first on are acknowledged, and which one failed: with a transaction,
// one behind them.
func (l *link) produce(ctx context.Context, records []*kgo.Record) (n, failed int, err error) {
	if !l.transactional {
		n, _, err = l.flush(ctx, records)
		return n, n, err
	}
	if err := l.client.BeginTransaction(); err != nil {
		return 0, 0, err
	}
	failed, whole, err := l.flush(ctx, records)
	if err == nil {
		err = context.Cause(ctx) // a worker that was given up commits nothing
	}
	if err != nil {
		if whole && ctx.Err() == nil {
			l.abort(ctx)
		}
		return 0, failed, &uncommitted{err}
	}
	before := l.written.ends.Load()
	if err := l.client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return 0, 0, unconfirmed(ended(ctx, err), l.written.ends.Load()-before)
	}
	return len(records), 0, nil
}

// flush hands all records to the client before the first is sent: see the package
// comment.
func (l *link) flush(ctx context.Context, records []*kgo.Record) (n int, whole bool, err error) {
	a := newAnswers(len(records))
	for i, r := range records {
		l.client.Produce(ctx, r, a.of(i))
	}
	_ = l.client.Flush(ctx) // its one error is the end of ctx
	select {
	case <-a.done:
	case <-ctx.Done():
	}
	n, whole, err = a.prefix()
	if n < len(records) && ctx.Err() != nil {
		err = context.Cause(ctx) // and not what the client makes of it
	}
	return n, whole, err
}

// ended is the end of ctx, if that is what ended a call.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// abort ends a transaction, so that consumers need not wait for its time-out. If
// that fails, the next link's producer id does it.
func (l *link) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, abortTimeout)
	defer cancel()
	_ = l.client.EndTransaction(ctx, kgo.TryAbort)
}
