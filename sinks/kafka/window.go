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

// answers are those of a window's records.
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

// of returns what the client calls with the answer of the record at i.
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

// silent reports whether an answer is missing, is no word of the broker's, or leaves open whether it took the record.
func (a *answers) silent() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.missing > 0 || slices.ContainsFunc(a.errs, func(err error) bool { return err != nil && (!isWord(err) || isOneOf(err, vague)) })
}

// all are the places of the records, acknowledged or not, wherever they are in the window. Those that are not
// have an offset below 0.
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

// produced is what became of a window at the client.
type produced struct {
	acknowledged int // records, from the first on
	failed       int // the one that err is about: with a transaction, one behind them
	places       []place
	err          error
	silent       bool // of a part of the window the broker has said nothing
}

// produce sends a window and waits for its answers. older reports whether the places of its records prove that acknowledged records
// are missing. Then a transaction is not committed, since its records would stand behind the gap. None of the places counts.
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
		p.err = context.Cause(ctx) // a worker that was given up commits nothing
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

// without is a window of a transaction that is not known to be committed: what was acknowledged
// does not count.
func (p produced) without(err error) produced {
	for i := range p.places {
		p.places[i].offset, p.places[i].acknowledged = -1, false
	}
	p.acknowledged, p.err = 0, err
	return p
}

// flush hands all records to the client before the first is sent: see the package
// comment. The client takes them without a wait, as its buffer has room for a window. The
// end of ctx, a call's, may reach the client before the window.
func (l *link) flush(ctx, window context.Context, records []*kgo.Record) (p produced, whole bool) {
	a := newAnswers(len(records))
	for i, r := range records {
		l.client.Produce(window, r, a.of(i))
	}
	l.written.release()
	_ = l.client.Flush(window) // its one error is the end of window
	select {
	case <-a.done:
	case <-window.Done():
	}
	n, whole, err := a.prefix()
	var word *kerr.Error
	if end := cmp.Or(context.Cause(window), context.Cause(ctx)); n < len(records) && end != nil && !errors.As(err, &word) {
		err = end // and not what the client makes of it
	}
	return produced{n, n, a.all(), err, a.silent()}, whole
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
