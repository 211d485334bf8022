package table

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Bound is the fence at one moment.
type Bound struct {
	// Before is where the fence is. A row that sorts before this position, and that no snapshot taken after the
	// question shows, does not exist: it may not appear later either. "" if nothing is known to be complete.
	Before cursor.Position
	// Writers are the transactions that the fence looked at, by their virtual ids. Where the fence waits for sessions,
	// they are "session " and the pid.
	Writers []string
	// Holder is the one of the Writers that holds the fence back; "" if none does.
	Holder string
	// Held is the state of the fence.
	Held Held
}

// Fence asks for the fence and reads no row. Ask first, and take the snapshot of the rows after that: with a snapshot
// that is older, a row may be missing that was committed in between. A source knows no bound of the writers that its
// first question finds, so Before is "" until they have ended. The source must not be Delivered.
func (s *Source) Fence(ctx context.Context) (Bound, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.current(ctx)
	if err != nil {
		return Bound{}, err
	}
	r, err := s.flush(ctx, l, "", 0)
	if errors.Is(err, prepared.ErrStale) {
		r, err = s.flush(ctx, l, "", 0)
	}
	if err != nil {
		s.distrust(err)
		return Bound{}, fmt.Errorf("ask for the fence of %s: %w", l.name(), lasting(err))
	}
	b := Bound{Held: s.Held()}
	for _, w := range r.sample.writers {
		b.Writers = append(b.Writers, w.id)
	}
	if r.bound < r.sample.mark {
		b.Holder = s.fence.holder.id
	}
	b.Before, err = l.fencePosition(r.bound, r.slack)
	return b, err
}

// fencePosition returns the position that every row at or past the fence has or follows: see layout.below.
func (l *layout) fencePosition(bound, slack int64) (cursor.Position, error) {
	switch {
	case bound == unbounded:
		return "", nil
	case l.ordersByTime():
		return l.kind.position(key{at: bound - slack, id: l.kind.lowestID()})
	default:
		return l.kind.position(key{id: strconv.FormatInt(bound+min(1, math.MaxInt64-bound), 10)})
	}
}

// Look is a snapshot of the committed rows after a position.
type Look struct {
	// Records are the rows in order, whether or not they may be read yet, without key, type, headers and payload.
	Records []processor.Record
	// Clock is the server's clock right before the snapshot was taken.
	Clock time.Time
}

// Look returns the first rows after a position, at most limit of them, by index range.
func (s *Source) Look(ctx context.Context, after cursor.Position, limit int) (look Look, err error) {
	err = s.ask(ctx, "look at", func(l *layout, ask asker) error {
		look, err = l.look(s.config, ask, after, limit)
		return err
	})
	return look, err
}

func (l *layout) look(c Config, ask asker, after cursor.Position, limit int) (look Look, err error) {
	args, err := l.startAfter(after)
	if err != nil {
		return Look{}, err
	}
	clock, err := ask(`/* source.clock */ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`)
	if err != nil {
		return Look{}, err
	}
	at, err := strconv.ParseInt(string(clock[0][0]), 10, 64)
	if err != nil {
		return Look{}, err
	}
	look.Clock = time.UnixMicro(at).UTC()
	look.Records, err = l.found(ask(fmt.Sprintf("/* source.look */ SELECT %s FROM %s AS t WHERE %s ORDER BY %s LIMIT %d",
		l.keys(c), l.sql(), l.behind(c, after == ""), strings.Join(l.orderBy(c), ", "), limit), args...))
	return look, err
}

// Tail returns the position after which the last rows are, as many as asked for; "" if the table has no more. Like
// Look, it counts rows that may not be read yet.
func (s *Source) Tail(ctx context.Context, rows int) (position cursor.Position, err error) {
	err = s.ask(ctx, "find the last rows of", func(l *layout, ask asker) error {
		records, err := l.found(ask(fmt.Sprintf("/* source.tail */ SELECT %s FROM %s AS t WHERE %s ORDER BY %s DESC LIMIT 1 OFFSET %d",
			l.keys(s.config), l.sql(), l.behind(s.config, true), strings.Join(l.orderBy(s.config), " DESC, "), rows)))
		if err == nil && len(records) > 0 {
			position = records[0].Position
		}
		return err
	})
	return position, err
}
