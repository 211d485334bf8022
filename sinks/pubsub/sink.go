package pubsub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	vkit "cloud.google.com/go/pubsub/v2/apiv1"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/status"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

// Sink publishes records to one topic. It implements processor.BatchSink and is
// safe for concurrent use; calls take turns.
type Sink struct {
	config Config
	topic  string
	key    *route.Template
	room   int // bytes for messages in a request

	mu     sync.Mutex
	client *vkit.TopicAdminClient // nil: to be opened
	guard  secret.Guard           // of the credentials of client
	looked time.Time              // when the sink last looked at the topic; zero: it looks before the next message
	every  time.Duration          // after which it is looked at again
	epoch  cursor.Epoch           // of the last record
	since  string                 // id of the first record that was acknowledged after the last look
}

// lookEvery bounds how long records go to a topic that no longer has a subscription.
const lookEvery = 30 * time.Second

var _ processor.BatchSink = (*Sink)(nil)

// New makes a sink. It connects with the first delivery, not before.
func New(c Config) (*Sink, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("configure pubsub sink: %w", err)
	}
	key, _ := route.New(c.OrderingKey) // validated
	return &Sink{config: c, topic: c.name(), key: key, room: maxRequestBytes - len(c.name()) - frame, every: lookEvery}, nil
}

// String names the topic.
func (s *Sink) String() string { return s.config.String() }

// GoString is String.
func (s *Sink) GoString() string { return s.String() }

// Close closes the connection. A later delivery opens another.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.close()
}

func (s *Sink) close() error {
	if s.client == nil {
		return nil
	}
	err := s.client.Close()
	s.client = nil
	return err
}

// Check connects and looks at the topic, as the first delivery does. Its error ends with the next step, where there
// is one.
func (s *Sink) Check(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.connect(ctx); err != nil {
		return s.guard.Error(fmt.Errorf("publish to %s: %w", s, err))
	}
	return nil
}

// connect makes the connection, and looks at the topic from time to time.
func (s *Sink) connect(ctx context.Context) error {
	if s.client != nil && time.Since(s.looked) < s.every {
		return nil
	}
	var x exchange
	if err := s.look(context.WithValue(ctx, sentKey{}, &x)); err != nil {
		_ = s.close()
		if errors.Is(err, errNoSubscription) && s.since != "" {
			err = fmt.Errorf("%w. The records from %q on were acknowledged since the topic was last checked, and may be lost: `seek` back to the first that receivers lack", err, visible.Cut(s.since))
		}
		f := failed(ctx, x.explained(err), false)
		f.denied = x.sent.Load() && isDenial(status.Code(err)) // otherwise the client made the code, as for a token that it could not get
		return f
	}
	s.looked, s.since = time.Now(), ""
	return nil
}

func (s *Sink) look(ctx context.Context) (err error) {
	if s.client == nil {
		s.guard = newGuard(s.config)
		s.client, err = s.open(ctx)
		return err
	}
	ctx, cancel := s.bounded(ctx, "no answer about the topic")
	defer cancel()
	return ended(ctx, s.checkTopic(ctx, s.client))
}

// DeliverBatch publishes records in order. It returns how many of them, from the first on, Pub/Sub has acknowledged.
// An error with Timeout leaves the outcome of its record unknown.
func (s *Sink) DeliverBatch(ctx context.Context, ds []processor.Delivery) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var acknowledged int
	for acknowledged < len(ds) {
		window := ds[acknowledged:min(acknowledged+s.config.Window, len(ds))]
		n, err := s.publishWindow(ctx, window)
		if n > 0 && s.since == "" {
			s.since = window[0].ID
		}
		acknowledged += n
		if err != nil {
			err = s.guard.Of(processor.Redact(ds)).Error(fmt.Errorf("publish record %q to %s: %w", visible.Cut(ds[acknowledged].ID), s, err))
		}
		if isDenied(err) {
			return acknowledged, processor.Refused(err)
		}
		if err != nil {
			return acknowledged, err
		}
	}
	return acknowledged, nil
}

// publishWindow publishes the chains of a window at once. It returns how many records of the window, from the first
// on, are acknowledged.
func (s *Sink) publishWindow(ctx context.Context, ds []processor.Delivery) (int, error) {
	chains, n, err := s.chains(ds)
	if len(chains) == 0 {
		return n, err
	}
	if ds[0].Epoch != s.epoch { // another worker had the lease, or an operator has decided: the topic may be another one
		s.epoch, s.looked = ds[0].Epoch, time.Time{}
	}
	if err := s.connect(ctx); err != nil {
		return 0, err
	}
	var others sync.WaitGroup
	for _, c := range chains[1:] {
		others.Go(func() { s.publishChain(ctx, c) })
	}
	s.publishChain(ctx, chains[0])
	others.Wait()
	var first *failure
	open := false // the server may have records of the window
	for _, c := range chains {
		if c.err == nil {
			continue
		}
		if !c.err.answered {
			// The client's remaining part of a request goes with its connection. The client would also wait before it
			// makes another connection.
			_ = s.close()
		}
		if c.err.denied {
			s.looked = time.Time{} // a topic that is made anew has none of the former one's subscriptions
		}
		open = open || c.err.unknown
		if i := c.indexes[c.acknowledged]; i < n {
			n, first = i, c.err
		}
	}
	switch {
	case first == nil:
		return n, err
	case open && !first.unknown:
		return n, besideAnOpenOne(first)
	case first.refused:
		return n, processor.Permanent(first)
	default:
		return n, first
	}
}

// chain holds the messages of a window that share an ordering key.
type chain struct {
	messages     []*pb.PubsubMessage
	indexes      []int // of the messages' records in the window
	acknowledged int
	err          *failure // of the first message that is not acknowledged
}

// chains sorts a window by ordering key, up to the first record that cannot be a message. n is how many records come
// before it, and err is its error.
func (s *Sink) chains(ds []processor.Delivery) (all []*chain, n int, err error) {
	byKey := map[string]*chain{}
	for i, d := range ds {
		m, err := s.message(d)
		if err != nil {
			return all, i, err
		}
		c := byKey[m.OrderingKey]
		if c == nil {
			c = &chain{}
			byKey[m.OrderingKey] = c
			all = append(all, c)
		}
		c.messages, c.indexes = append(c.messages, m), append(c.indexes, i)
	}
	return all, len(ds), nil
}

// publishChain publishes the messages of a chain in order, in as few requests as possible.
func (s *Sink) publishChain(ctx context.Context, c *chain) {
	most := len(c.messages)
	for c.acknowledged < len(c.messages) && c.err == nil {
		request := c.messages[c.acknowledged:][:s.fitting(c.messages[c.acknowledged:], most)]
		f := s.publish(ctx, request)
		switch {
		case f == nil:
			c.acknowledged += len(request)
		case f.refused && len(request) > 1:
			most = 1 // none of them landed, and sending one at a time finds the one that is meant
		default:
			c.err = f
		}
	}
}

// fitting returns how many messages, from the first on, fit into a request.
func (s *Sink) fitting(ms []*pb.PubsubMessage, most int) int {
	room := s.room
	for i, m := range ms[:min(most, len(ms))] {
		if room -= size(m); room < 0 && i > 0 {
			return i
		}
	}
	return min(most, len(ms))
}

// publish makes one request.
func (s *Sink) publish(ctx context.Context, ms []*pb.PubsubMessage) *failure {
	ctx, cancel := s.bounded(ctx, "no answer")
	defer cancel()
	var x exchange
	answer, err := s.client.Publish(context.WithValue(ctx, sentKey{}, &x), &pb.PublishRequest{Topic: s.topic, Messages: ms})
	switch {
	case err != nil:
		return failed(ctx, x.explained(err), x.sent.Load())
	case len(answer.GetMessageIds()) != len(ms):
		return &failure{error: fmt.Errorf("Pub/Sub acknowledged %d of %d messages", len(answer.GetMessageIds()), len(ms)), unknown: true}
	default:
		return nil
	}
}
