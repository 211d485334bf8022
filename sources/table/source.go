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

// inspectInterval is how long what the catalog said is relied on. A default that
// is changed under a running source is noticed within it.
const inspectInterval = time.Minute

// Source reads the records of one table (processor.Source). It keeps the bounds
// of the writers it has seen, so it is read regularly, also when idle.
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
	rows     int // that fit into MaxBytes, as far as is known; 0 = not known
	sparse   sparse
	detail   detail // of the next read
	stretch  stretch
	warned   map[Finding]bool // of the last inspection
	scratch
}

// New returns the source that config describes. It touches no database yet: a
// table that cannot be read in order is refused by Read and found by Inspect.
// Each read takes one connection of the pool. No call waits for ever: within 30 s for
// a connection, and 90 s for a read or 45 s for anything else, it ends with "no answer
// in time".
func New(pool *pgxpool.Pool, config Config) (*Source, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	return &Source{pool: pool, config: config, waits: defaultWaits()}, nil
}

// Recycle takes back the room of a page (processor.Recycler).
func (s *Source) Recycle(records []processor.Record) {
	clear(records) // payloads may be large
	s.mu.Lock()
	defer s.mu.Unlock()
	if cap(records) > cap(s.spare) {
		s.spare = records[:0]
	}
}

// located is the configuration that names the table which was found first. A name without
// a schema could mean another table later: one that a role makes in a schema that comes
// earlier in the search_path.
func (s *Source) located() Config {
	c := s.config
	if name := s.pinned.Load(); name != nil {
		c.Table = *name
	}
	return c
}

// pin keeps what the name of the table means.
func (s *Source) pin(cat *catalog) {
	name := cat.name()
	s.pinned.CompareAndSwap(nil, &name)
}

// Name is the table that the configured name means, with its schema; "" if there is none,
// or if it is not certain which: see Inspect. Once found it stays.
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

// Refresh forgets what the catalog said of the table (processor.Refresher).
func (s *Source) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.layout = nil
}

// current returns the layout, inspecting the table if it was not, or not lately.
// The caller holds mu.
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
	s.warned = warned // what is no longer found is said again when it comes back
	if now := (fenced{l.oid, l.stamp, l.sequence}); s.fenced != now {
		s.fence, s.fenced = fence{}, now // its bounds were those of other locks
		s.stretch = stretch{}
	}
	return l, nil
}

// fenced is what the bounds of a fence are about.
type fenced struct {
	table    uint32
	stamp    stamp
	sequence uint32
}

// refusal is all that stands against a table, as one error. It will not pass by
// itself.
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

// End returns the position behind everything stamped so far: what is stamped
// from now on follows it, and what an open transaction stamped before does not.
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
