package table

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// inspectInterval is how long the source relies on the last look at the catalog. It notices a default that is changed
// under a running source within this time.
const inspectInterval = time.Minute

// Source reads the records of one table (processor.Source). It keeps the bounds of the writers it has seen. So it
// must be read regularly, also when idle.
type Source struct {
	pool   *pgxpool.Pool
	config Config
	waits  waits

	held   atomic.Pointer[Held]   // nil: not held
	pinned atomic.Pointer[string] // the table's name with its schema, once it was found

	mu       sync.Mutex
	layout   *layout // nil: to be inspected
	fence    fence
	fenced   fenced
	standing standing
	clock    clockSeen
	rows     int // number that fits into MaxBytes, as far as is known; 0 = not known
	sparse   sparse
	detail   detail // of the next read
	stretch  stretch
	warned   map[Finding]bool // of the last inspection
	scratch
}

// New returns the source that config describes. It does not touch the database yet. Read refuses a table that cannot
// be read in order, and Inspect finds it. Each read takes one connection of the pool. No call waits for ever: it ends
// with "no answer in time" within 30 s for a connection, and within 90 s for a read or 45 s for anything else.
func New(pool *pgxpool.Pool, config Config) (*Source, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	return &Source{pool: pool, config: config, waits: defaultWaits()}, nil
}

// Recycle takes back the memory of a page (processor.Recycler).
func (s *Source) Recycle(records []processor.Record) {
	clear(records) // payloads may be large
	s.mu.Lock()
	defer s.mu.Unlock()
	if cap(records) > cap(s.spare) {
		s.spare = records[:0]
	}
}

// located returns the configuration with the name of the table that was found first. A name without a schema could
// mean another table later: one that a role makes in a schema that comes earlier in the search_path.
func (s *Source) located() Config {
	c := s.config
	if name := s.pinned.Load(); name != nil {
		c.Table = *name
	}
	return c
}

// pin keeps the table that the name means.
func (s *Source) pin(cat *catalog) {
	name := cat.name()
	s.pinned.CompareAndSwap(nil, &name)
}

// Name returns the table that the configured name means, with its schema. It returns "" if there is none, or if it is
// not certain which: see Inspect. Once found, the name stays.
func (s *Source) Name(ctx context.Context) (string, error) {
	if s.pinned.Load() == nil {
		if _, err := s.Inspect(ctx); err != nil {
			return "", err
		}
	}
	if name := s.pinned.Load(); name != nil {
		return *name, nil
	}
	return "", nil
}

// Refresh forgets the catalog's description of the table (processor.Refresher).
func (s *Source) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.layout = nil
}

// current returns the layout. It inspects the table if that was never done, or not lately. The caller holds mu.
func (s *Source) current(ctx context.Context) (*layout, error) {
	if s.layout != nil && time.Since(s.layout.inspected) < inspectInterval {
		return s.layout, nil
	}
	l, findings, err := s.inspect(ctx)
	if err != nil {
		return nil, lasting(err)
	}
	s.layout = l
	if l == nil {
		return nil, refusal(findings)
	}
	warned := make(map[Finding]bool, len(findings))
	for _, f := range findings {
		warned[f] = true
		if !s.warned[f] {
			s.config.Logger.Warn("source table: "+f.Problem, "fix", f.Fix)
		}
	}
	s.warned = warned // a finding that is gone is reported again when it comes back
	if now := (fenced{l.oid, l.stamp, l.sequence}); s.fenced != now {
		s.fence, s.fenced = fence{}, now // its bounds belonged to other locks
		s.stretch = stretch{}
	}
	return l, nil
}

// fenced identifies the object of a fence's bounds.
type fenced struct {
	table    uint32
	stamp    stamp
	sequence uint32
}

// refusal returns everything that refuses a table, as one error. The error will not pass by itself.
func refusal(findings []Finding) error {
	var all error
	for _, f := range findings {
		if f.Severity != Refuse {
			continue
		}
		if all == nil {
			all = fmt.Errorf("%s", f)
		} else {
			all = fmt.Errorf("%w; %s", all, f)
		}
	}
	return processor.Permanent(all)
}

// End returns the position after everything stamped so far. Rows that are stamped from now on follow it. Rows that an
// open transaction stamped before do not.
func (s *Source) End(ctx context.Context) (cursor.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.current(ctx)
	if err != nil {
		return "", err
	}
	r, err := s.flush(ctx, l, "", 0)
	if err == nil && !r.durable {
		_, err = s.harden(ctx, r.sample.server)
	}
	if err != nil {
		return "", fmt.Errorf("find the end of %s: %w", l.name(), err)
	}
	if l.ordersByTime() {
		return l.kind.position(key{at: r.sample.mark - l.rounding.Microseconds(), id: l.kind.lowestID()})
	}
	return l.kind.position(key{id: fmt.Sprint(r.sample.mark)})
}
