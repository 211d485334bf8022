package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// sizes are how many bytes the records of a topic in one window may have, where a broker has refused a batch of
// several. They outlive the links, since a refusal ends a link, and a call that succeeds: its records were right, so the
// batches were too large. A call that fails forgets them: it was the search for one record, or it does no harm.
type sizes map[string]int

// fit reports whether n bytes more of a topic go with those that a window has; of each topic one record always does.
func (s sizes) fit(topic string, has map[string]int, n int) bool {
	limit, limited := s[topic]
	if !limited {
		return true
	}
	has[topic] += n
	return has[topic] == n || has[topic] <= limit
}

// halve makes room for half of each batch that was refused, and returns how many records may be sent next: those of a window,
// or the one at failed without the others that were refused with it. 0: it was refused alone.
func (s sizes) halve(records []*kgo.Record, places []place, failed, window int) int {
	type batch struct {
		topic     string
		partition int32
	}
	refused, bytes, several := 0, map[batch]int{}, map[batch]bool{}
	for i, p := range places {
		if isRefusal(p.err) {
			b := batch{p.topic, p.partition}
			several[b] = bytes[b] > 0
			bytes[b] += size(records[i])
			refused++
		}
	}
	for b := range bytes {
		if limit, limited := s[b.topic]; several[b] && (!limited || bytes[b]/2 < limit) {
			s[b.topic] = bytes[b] / 2
		}
	}
	switch {
	case several[batch{places[failed].topic, places[failed].partition}]:
		return window
	case refused > 1:
		return 1
	default:
		return 0
	}
}

// take makes messages of the records that may be on their way together: see the
// package comment. The error is that of the first record, if it can be none.
func (s *Sink) take(c *call) ([]*kgo.Record, error) {
	window := c.window()
	records, now := make([]*kgo.Record, 0, len(window)), time.Now()
	bytes, has := 0, map[string]int{}
	for i, at := range window {
		r, err := s.message(&c.ds[at])
		if err != nil && i == 0 {
			return nil, err
		}
		if err != nil {
			break
		}
		r.Timestamp = now // one of all: their batch says which it is, and a clock may be set back between two
		n := size(r)
		alone := n > s.config.MaxBytes/2 || !s.link.knows(r.Topic)
		if bytes += n; (alone || bytes > s.config.MaxBytes-batchOverhead || !s.sizes.fit(r.Topic, has, n)) && i > 0 {
			break
		}
		records = append(records, r)
		if alone {
			break
		}
	}
	return records, nil
}

// batchOverhead is more than what a batch takes beside its records.
const batchOverhead = 128
