package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	outcomes "github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

// Sink sends records to topics of one cluster. It implements processor.BatchSink
// and is safe for concurrent use; calls take turns.
type Sink struct {
	config Config
	topic  *route.Template
	guard  secret.Guard
	more   []kgo.Opt                                                            // of tests
	dial   func(ctx context.Context, network, address string) (net.Conn, error) // of tests

	mu    sync.Mutex
	link  *link // nil: to be opened
	fence fence
	stood stood
	sizes sizes
}

var _ processor.BatchSink = (*Sink)(nil)

// New makes a sink. It connects with the first delivery, not before.
func New(c Config) (*Sink, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("configure kafka sink: %w", err)
	}
	topic, _ := route.New(c.Topic) // validated
	return &Sink{config: c, topic: topic, guard: newGuard(c), sizes: sizes{}}, nil
}

// String names the brokers and the topic.
func (s *Sink) String() string { return s.config.String() }

// GoString is String, so that no verb prints the password.
func (s *Sink) GoString() string { return s.String() }

// Close closes the connections. A later delivery opens others.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop()
	return nil
}

func (s *Sink) drop() {
	if s.link != nil {
		s.link.close()
		s.link = nil
	}
}

// DeliverBatch sends records in order. It returns how many of them, from the first on, all in-sync replicas have.
// With a transactional id it returns how many are committed. After an error that is a time-out, outcomes are unknown.
func (s *Sink) DeliverBatch(ctx context.Context, ds []processor.Delivery) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := newCall(ds, s.config.Window)
	for len(c.left) > 0 {
		o := s.send(ctx, c)
		c.settle(o.places)
		if n = c.acknowledged(); o.next == 0 {
			clear(s.sizes)
			return n, s.guard.Of(processor.Redact(ds)).Error(s.failed(ds[n], o))
		}
		c.limit = o.next
	}
	return len(ds), nil
}

// outcome is the result of a window.
type outcome struct {
	places []place // of the records that were sent
	// next is how many records may be sent next; 0: err is about the first that is left.
	next int
	err  error
}

// next returns how many records may be sent after a window that failed. Where the whole transaction had to fail with
// a record, the records before that one can be sent without it. And a broker refuses whole batches: which record it
// means shows where that record is alone. Records that may have arrived are not sent again.
func (s *Sink) next(records []*kgo.Record, p produced, o outcome) (n int) {
	if isLoss(o.err) {
		return 0
	}
	if isRefusal(o.err) && !isOpen(o.err) {
		n = s.sizes.halve(records, o.places, p.failed, s.config.Window)
	}
	if before := p.failed - p.acknowledged; before > 0 {
		return before
	}
	return n
}

// send sends as many records as may be on their way together.
func (s *Sink) send(ctx context.Context, c *call) outcome {
	epoch := c.ds[c.left[0]].Epoch
	if lost := s.stood.undecided(epoch); lost != nil {
		return outcome{err: lost}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.Timeout, fmt.Errorf("no answer within %v: %w", s.config.Timeout, context.DeadlineExceeded))
	defer cancel()
	if err := s.connect(ctx, epoch); err != nil {
		return outcome{err: processor.Unreached(&unsent{&unconnected{err}})}
	}
	records, err := s.take(c)
	if len(records) == 0 {
		return outcome{err: err}
	}
	stop := context.AfterFunc(ctx, s.link.end) // a silent broker would not end the call
	defer func() {
		if !stop() {
			s.drop() // its client has ended
		}
	}()
	if err := s.identify(ctx, records, epoch); err != nil {
		s.drop()
		return outcome{err: err}
	}
	p := s.link.produce(ctx, records, func(places []place) bool { return s.stood.older(places) || s.gone(ctx, places, epoch) })
	p = s.confirm(ctx, p, epoch)
	of := s.link.written.end()
	of.silent = p.silent
	o := s.judge(p, of, epoch)
	if o.err == nil {
		for _, r := range records {
			s.link.topics[r.Topic] = true
		}
		o.next = s.config.Window
		return o
	}
	if s.isFenced(o.err) {
		s.fence.raise(epoch)
	}
	s.drop()
	o.next = s.next(records, p, o)
	return o
}

// judge decides the outcome of a window. It uses the client's error, the facts about the requests, and the
// acknowledgements that the topics gave before.
func (s *Sink) judge(p produced, of requests, epoch cursor.Epoch) outcome {
	o := outcome{places: p.places, err: p.err}
	switch {
	case o.err == nil, isLoss(o.err):
	case !of.any:
		o.err = processor.Unreached(&unsent{uncommittedCause(o.err)})
	case !s.link.transactional:
		o.err = unanswered(o.err, of)
	case isUnfinished(o.err, of) && isOpen(o.err): // the commit
		o.err = &noWord{o.err}
	case isUnfinished(o.err, of):
		o.err = processor.Unreached(&noWord{o.err})
	}
	if first := s.compare(p.places, epoch); first < len(p.places) {
		for i := range o.places[first:] {
			o.places[first+i].acknowledged = false
		}
		o.err = s.stood.lost
	}
	return o
}

// compare notes the broker's answer about each record of a window, wherever the window failed: no later call would
// hear it. It returns the first answer that shows that acknowledged records are missing, or how many answers there
// are.
func (s *Sink) compare(places []place, epoch cursor.Epoch) (first int) {
	first = len(places)
	for i, p := range places {
		if s.stood.next(p, epoch) || s.stood.refused(p, s.link, epoch) {
			first = min(i, first)
		}
	}
	return first
}

// identify asks for the ids of the topics that the link has sent nothing to. It compares them with the ids that
// earlier links used. It asks again for topics that the broker does not know yet.
func (s *Sink) identify(ctx context.Context, records []*kgo.Record, epoch cursor.Epoch) error {
	if topics := s.unasked(records); len(topics) > 0 {
		all, err := s.link.describe(ctx, topics)
		if err != nil {
			return processor.Unreached(&unsent{&unconnected{err}})
		}
		for _, name := range topics { // an answer may name any others
			if topic, described := all[name]; described && topic.err == nil {
				s.link.asked[name] = true
				s.stood.is(name, topic.id, epoch)
			}
		}
	}
	if err := s.stood.undecided(epoch); err != nil {
		return err
	}
	return s.look(ctx, epoch)
}

// unasked returns the topics of records whose ids the link has not asked for. A new link asks for all known topics:
// if one event made several of them anew, that is one halt.
func (s *Sink) unasked(records []*kgo.Record) []string {
	topics := map[string]bool{}
	if len(s.link.asked) == 0 {
		for topic := range s.stood.topics {
			topics[topic] = true
		}
	}
	for _, r := range records {
		if !s.link.asked[r.Topic] {
			topics[r.Topic] = true
		}
	}
	return slices.Sorted(maps.Keys(topics))
}

// connect makes sure that there is a link for a worker of that epoch.
func (s *Sink) connect(ctx context.Context, epoch cursor.Epoch) (err error) {
	if s.link != nil && s.link.old() {
		clear(s.sizes) // the topic may take more by now
	}
	if s.link != nil && (s.link.old() || s.link.superseded(epoch)) {
		s.drop()
	}
	if s.link != nil {
		return context.Cause(ctx)
	}
	if err := s.fence.check(epoch); err != nil {
		return err
	}
	if s.link, err = s.open(ctx, epoch); err != nil {
		return err
	}
	return late(ctx, time.Since(s.link.opened))
}

// failed returns the error of a record.
func (s *Sink) failed(d processor.Delivery, o outcome) error {
	if isLoss(o.err) { // it names the next step itself
		return processor.Refused(fmt.Errorf("send record %q to %s: %w", visible.Cut(d.ID), s, o.err))
	}
	err := fmt.Errorf("send record %q to %s: %w%s", visible.Cut(d.ID), s, o.err, s.fix(o.err))
	if s.isFenced(err) {
		err = processor.RetryAfter(err, fenceDelay)
	}
	var held *fencedError
	switch {
	case errors.As(err, &held):
		return processor.RetryAfter(err, held.wait)
	case isOpen(err) && (isPassing(err) || isNoWord(err) || isOldEpoch(err)):
		return processor.Unreached(outcomes.Outage(err))
	case isOpen(err): // a no after a lost answer proves nothing about the first request
		return err
	case isOldEpoch(err): // the record was not the cause
		return processor.Unreached(&known{err})
	case s.refusesUs(err):
		return processor.Refused(err)
	case isOneOf(err, conditions), isPassing(err):
		return processor.Unreached(err)
	case isRefusal(err):
		return processor.Permanent(err)
	default:
		return err
	}
}
