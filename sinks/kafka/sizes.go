package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// sizes holds, for each topic whose broker has refused a batch of several records, how many bytes the topic's records
// in one window may have. It outlives the links, since a refusal ends a link. It also outlives a call that succeeds:
// its records were right, so the batches were too large. A call that fails forgets it: either the sink was searching
// for one record, or forgetting does no harm.
type sizes map[string]int

// fit reports whether n more bytes of a topic fit into a window. One record of each topic always does.
func (s sizes) fit(topic string, has map[string]int, n int) bool {
	limit, limited := s[topic]
	if !limited {
		return true
	}
	has[topic] += n
	return has[topic] == n || has[topic] <= limit
}

// halve makes room for half of each batch that was refused. It returns how many records may be sent next: those of a
// window, or the one at failed without the others that were refused with it. 0: it was refused alone.
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

// take makes messages of the records that may be on their way together: see the package comment. It returns an error
// if the first record cannot be a message.
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
		r.Timestamp = now // one for all: each batch records it, and a clock may be set back between two records
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

// batchOverhead is more than the size of a batch without its records.
const batchOverhead = 128
