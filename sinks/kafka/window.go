package kafka

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// answers holds the answers to a window's records.
type answers struct {
	done chan struct{} // closed when all are there

	mu      sync.Mutex
	errs    []error
	there   []bool
	places  []place
	missing int
}

func newAnswers(n int) *answers {
	return &answers{done: make(chan struct{}), errs: make([]error, n), there: make([]bool, n), places: make([]place, n), missing: n}
}

// of returns the function that the client calls with the answer to the record at i.
func (a *answers) of(i int) func(*kgo.Record, error) {
	return func(r *kgo.Record, err error) {
		err = heard(err)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.errs[i], a.there[i], a.places[i] = err, true, place{markOf(r), err == nil, err}
		if a.missing--; a.missing == 0 {
			close(a.done)
		}
	}
}

// prefix returns how many records from the first on are acknowledged, and the error of the next. whole is true if no
// answer is missing.
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

// silent reports whether an answer is missing, does not come from the broker, or leaves open whether the broker took
// the record.
func (a *answers) silent() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.missing > 0 || slices.ContainsFunc(a.errs, func(err error) bool { return err != nil && (!isWord(err) || isOneOf(err, vague)) })
}

// all returns the places of the records, acknowledged or not, wherever they are in the window. A record that is not
// acknowledged has an offset below 0.
func (a *answers) all() []place {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := slices.Clone(a.places)
	for i := range all {
		if !a.there[i] || a.errs[i] != nil {
			all[i].offset = -1
		}
	}
	return all
}

// produced is the client's result for a window.
type produced struct {
	acknowledged int // records, from the first on
	failed       int // the record that err is about: with a transaction, one after them
	places       []place
	err          error
	silent       bool // the broker has not answered for a part of the window
}

// produce sends a window and waits for its answers. older reports whether the places of its records prove that
// acknowledged records are missing. Then a transaction is not committed, since its records would come after the gap.
// None of the places counts.
func (l *link) produce(ctx context.Context, records []*kgo.Record, older func([]place) bool) produced {
	window, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.written.begin(cancel)
	if !l.transactional {
		p, _ := l.flush(ctx, window, records)
		return p
	}
	if err := l.client.BeginTransaction(); err != nil {
		return produced{err: heard(err)}
	}
	p, whole := l.flush(ctx, window, records)
	if p.err == nil {
		p.err = context.Cause(ctx) // a worker that has lost its lease commits nothing
	}
	if p.err != nil {
		if whole && ctx.Err() == nil {
			l.abort(ctx)
		}
		return p.without(&uncommitted{p.err})
	}
	if older(p.places) {
		l.abort(ctx)
		for i := range p.places {
			p.places[i].acknowledged = false
		}
		p.acknowledged = 0
		return p
	}
	if err := l.client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		p.failed = 0
		return p.without(unconfirmed(ended(ctx, heard(err)), l.written.end().ends))
	}
	return p
}

// without returns the result of a window whose transaction is not known to be committed: its acknowledgements do not
// count.
func (p produced) without(err error) produced {
	for i := range p.places {
		p.places[i].offset, p.places[i].acknowledged = -1, false
	}
	p.acknowledged, p.err = 0, err
	return p
}

// flush hands all records to the client before the first is sent: see the package comment. The client takes them
// without waiting, as its buffer has room for a window. If ctx, the context of a call, ends, the client may see that
// before the window does.
func (l *link) flush(ctx, window context.Context, records []*kgo.Record) (p produced, whole bool) {
	a := newAnswers(len(records))
	for i, r := range records {
		l.client.Produce(window, r, a.of(i))
	}
	l.written.release()
	_ = l.client.Flush(window) // its only error is the end of window
	select {
	case <-a.done:
	case <-window.Done():
	}
	n, whole, err := a.prefix()
	var word *kerr.Error
	if end := cmp.Or(context.Cause(window), context.Cause(ctx)); n < len(records) && end != nil && !errors.As(err, &word) {
		err = end // and not the error that the client makes of it
	}
	return produced{n, n, a.all(), err, a.silent()}, whole
}

// ended returns the cause of ctx's end, if that ended the call.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// abort ends a transaction, so that consumers need not wait for its time-out. If that fails, the producer id of the
// next link does it.
func (l *link) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, abortTimeout)
	defer cancel()
	_ = l.client.EndTransaction(ctx, kgo.TryAbort)
}
