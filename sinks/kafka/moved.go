package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// absentError: a window was acknowledged, and is not there. It may be elsewhere, so its outcome is unknown.
type absentError struct {
	mark
	why string
}

func (e *absentError) Error() string {
	return fmt.Sprintf("the record is not where the broker acknowledged it (partition %d of topic %q, offset %d): %s. The connection is new, "+
		"and an older copy of the broker's data may have answered over it", e.partition, e.topic, e.offset, e.why)
}

// confirm checks, before a window counts, that its records are there, and so are those acknowledged before it. It
// does so if the client has gone on over another connection than before. The broker may have an older copy of its
// data. Such a broker takes any number of a producer that it does not know. It takes a commit for the commit before
// it, and drops a record whose number it has from another producer. If nothing can be found out, the window counts.
func (s *Sink) confirm(ctx context.Context, p produced, epoch cursor.Epoch) produced {
	if s.stood.older(p.places) {
		return p // it shows the loss by itself
	}
	if s.stood.undecided(epoch) != nil || s.gone(ctx, p.places, epoch) {
		return p.without(s.stood.lost)
	}
	absent := s.absent(ctx, p.places)
	if absent == nil {
		return p
	}
	if s.link.transactional {
		p.failed = 0
		return p.without(&open{&noWord{fmt.Errorf("the commit may have happened: %w", absent)}})
	}
	for i := range p.places {
		if p.places[i].spot == absent.spot {
			p.places[i].offset, p.places[i].acknowledged = -1, false
		}
	}
	p.acknowledged = slices.IndexFunc(p.places, func(p place) bool { return !p.acknowledged })
	p.failed, p.err = p.acknowledged, &noWord{absent}
	return p
}

// gone checks whether the last records before a window are still there, in its partitions, and records a loss. It
// does not ask while the connection stays the same.
func (s *Sink) gone(ctx context.Context, places []place, epoch cursor.Epoch) bool {
	if !s.link.written.moved() {
		return false
	}
	var before []mark
	for _, p := range ends(places, false) {
		if topic := s.stood.topics[p.topic]; topic != nil {
			if last, known := topic.last[p.partition]; known {
				before = append(before, last)
			}
		}
	}
	missing, _ := s.link.missing(ctx, before, s.config.patience(), true)
	for _, m := range before {
		if why := missing[m.spot]; why != "" && s.stood.topics[m.topic] != nil { // one partition of it is enough
			s.stood.missed(m, why, epoch)
		}
	}
	return len(missing) > 0
}

// absent checks whether the records of a window are there. It looks at the last and the first of each partition,
// since the window has one batch in each, or two.
func (s *Sink) absent(ctx context.Context, places []place) *absentError {
	if !s.link.written.moved() {
		return nil
	}
	looked := map[mark]bool{} // one record may be both
	for _, last := range []bool{true, false} {
		marks := slices.DeleteFunc(ends(places, last), func(m mark) bool { return looked[m] })
		missing, _ := s.link.missing(ctx, marks, s.config.patience(), true)
		for _, m := range marks {
			looked[m] = true
			if why := missing[m.spot]; why != "" {
				return &absentError{m, why}
			}
		}
	}
	return nil
}

// ends returns the first or the last place of each partition that the broker has acknowledged, grouped by topic.
func ends(places []place, last bool) (all []mark) {
	at := map[spot]mark{}
	for _, p := range places {
		if _, known := at[p.spot]; p.offset >= 0 && (last || !known) {
			at[p.spot] = p.mark
		}
	}
	for _, m := range at {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b mark) int { return strings.Compare(a.topic, b.topic) })
	return all
}
