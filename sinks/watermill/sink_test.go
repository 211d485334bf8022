package watermill_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/watermill"
)

// bench is a GoChannel that waits for its subscriber, and the subscriber.
type bench struct {
	mu       sync.Mutex
	channel  *gochannel.GoChannel
	messages []*message.Message // in the order in which they came
	silent   bool               // the subscriber acknowledges nothing
	refused  string             // the type of records that are refused
	away     bool
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{channel: gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, nil)}
	t.Cleanup(func() { _ = b.channel.Close() })
	messages, err := b.channel.Subscribe(t.Context(), "bookings")
	require.NoError(t, err)
	go func() {
		for m := range messages {
			if b.take(m) {
				m.Ack()
			}
		}
	}()
	return b
}

func (b *bench) take(m *message.Message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.silent {
		return false
	}
	b.messages = append(b.messages, m)
	return true
}

// Publish is what stands between the sink and the channel: a network, and a receiver
// that may refuse.
func (b *bench) Publish(topic string, messages ...*message.Message) error {
	b.mu.Lock()
	away, refused := b.away, b.refused
	b.mu.Unlock()
	switch {
	case away:
		return errors.New("connection refused")
	case refused != "" && messages[0].Metadata.Get("ordered-type") == refused:
		return errors.New("refused")
	case len(messages[0].Payload) > 1_000_000:
		return processor.Permanent(errors.New("too large"))
	default:
		return b.channel.Publish(topic, messages...)
	}
}

func (b *bench) Close() error { return nil }

// set changes the bench and returns what changes it back.
func (b *bench) set(change, restore func()) func() {
	locked := func(f func()) {
		b.mu.Lock()
		defer b.mu.Unlock()
		f()
	}
	locked(change)
	return func() { locked(restore) }
}

func (b *bench) received(testing.TB) []sinktest.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := []sinktest.Message{}
	for _, m := range b.messages {
		all = append(all, sinktest.Message{DedupKey: m.Metadata.Get("ordered-dedup-key"), Payload: string(m.Payload)})
	}
	return all
}

func (b *bench) headers(_ testing.TB, name string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, m := range b.messages {
		all = append(all, m.Metadata.Get(name))
	}
	return all
}

func newSink(t testing.TB, c watermill.Config) *watermill.Sink {
	t.Helper()
	s, err := watermill.New(c)
	require.NoError(t, err)
	return s
}

func TestSink_KeepsThePromisesOfAllSinks(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, func(t *testing.T) sinktest.Subject {
		b := newBench(t)
		return sinktest.Subject{
			Sink:     sinktest.One(newSink(t, watermill.Config{Publisher: b, Topic: "bookings"})),
			Received: b.received,
			Header:   b.headers,
			Refuse: func(_ testing.TB, typ string) func() {
				return b.set(func() { b.refused = typ }, func() { b.refused = "" })
			},
			Vague:   true,
			Away:    func(testing.TB) func() { return b.set(func() { b.away = true }, func() { b.away = false }) },
			Silence: func(testing.TB) { b.set(func() { b.silent = true }, nil) },
			Another: func(t testing.TB, _ string) processor.BatchSink {
				return sinktest.One(newSink(t, watermill.Config{Publisher: b, Topic: "bookings"}))
			},
			Empty:    func(testing.TB) { b.set(func() { b.messages = nil }, nil) },
			TooLarge: 1_000_001,
			Order:    true,
		}
	})
}

func TestDeliver_MessageCarriesTheRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := newSink(t, watermill.Config{Publisher: b, Topic: "bookings"})
	d := sinktest.Deliveries(9007199254740993, 1)[0]
	d.Headers = map[string]string{"traceparent": "00-1", "ordered-epoch": "99", "Ordered-Key": "x", "CC": "x", "Nats-Rollup": "all"}
	require.NoError(t, s.Deliver(t.Context(), d))
	d.Attempt, d.Epoch = 2, 4
	require.NoError(t, s.Deliver(t.Context(), d))
	first, second := b.messages[0], b.messages[1]
	require.Equal(t, string(d.Payload), string(first.Payload))
	require.Equal(t, message.Metadata{
		"ordered-process": "sms", "ordered-origin": "here", "ordered-sequence": "9007199254740993", "ordered-epoch": "3", "ordered-attempt": "1",
		"ordered-position": string(d.Position), "ordered-dedup-key": d.DedupKey(), "ordered-key": "customer", "ordered-type": "made",
		"ordered-version": "1", "ordered-created-at": d.CreatedAt.UTC().Format(time.RFC3339Nano), "content-type": "application/json",
		"traceparent": "00-1",
	}, first.Metadata)
	require.Equal(t, watermill.UUID(d), first.UUID)
	require.Equal(t, first.UUID, second.UUID)
	require.Equal(t, uuid.Version(5), uuid.MustParse(first.UUID).Version())
	// Receivers keep them: this one, made by Python's uuid, stays what it is for ever.
	require.Equal(t, "341edde0-e687-58d9-990c-488ec50ca8cd", watermill.UUID(sinktest.Deliveries(1, 1)[0]))
}

func TestDeliver_TheAttemptsTraceGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	d := sinktest.Deliveries(1, 1)[0]
	d.Headers = map[string]string{"traceparent": "00-1"}
	s := newSink(t, watermill.Config{Publisher: b, Topic: "bookings"})
	require.NoError(t, s.Deliver(trace.ContextWithSpanContext(t.Context(), span), d))
	require.Equal(t, "00-01000000000000000000000000000000-0200000000000000-00", b.messages[0].Metadata.Get("traceparent"))
}

func TestDeliver_Topic(t *testing.T) {
	t.Parallel()
	var topics []string
	p := publisher(func(_ context.Context, topic string) error { topics = append(topics, topic); return nil })
	d := sinktest.Deliveries(1, 1)[0]
	require.NoError(t, newSink(t, watermill.Config{Publisher: p, Topic: "b.{{upper .Type}}"}).Deliver(t.Context(), d))
	topicOf := func(d processor.Delivery) (string, error) {
		if d.Key == "" {
			return "", errors.New("no key")
		}
		return "of-" + d.Key, nil
	}
	s := newSink(t, watermill.Config{Publisher: p, TopicOf: topicOf})
	require.NoError(t, s.Deliver(t.Context(), d))
	require.Equal(t, "b.MADE of-customer", strings.Join(topics, " "))

	d.Key = ""
	err := s.Deliver(t.Context(), d)
	require.ErrorContains(t, err, "no key")
	require.True(t, processor.IsPermanent(err))
	err = newSink(t, watermill.Config{Publisher: p, Topic: "{{.Key}}"}).Deliver(t.Context(), d)
	require.ErrorContains(t, err, "it is empty")
	require.True(t, processor.IsPermanent(err))
}

func TestNew_NamesAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := watermill.New(watermill.Config{})
	require.ErrorContains(t, err, "there is no Publisher")
	require.ErrorContains(t, err, "there is no topic")
	_, err = watermill.New(watermill.Config{Publisher: publisher(nil), Topic: "{{.Nothing}}", TopicOf: func(processor.Delivery) (string, error) { return "", nil }})
	require.ErrorContains(t, err, "there are two topics")
	require.ErrorContains(t, err, "Nothing")
}

// publisher is a Publisher that is a function.
type publisher func(ctx context.Context, topic string) error

func (p publisher) Publish(topic string, messages ...*message.Message) error {
	return p(messages[0].Context(), topic)
}

func (p publisher) Close() error { return nil }

// What an abandoned Publish sends may arrive at any time until it returns: a record
// sent meanwhile could arrive before it.
func TestDeliver_SendsNothingBehindAPublishThatHasNotReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		end := sync.OnceFunc(func() { close(stuck) })
		defer end()
		var calls atomic.Int32
		s := newSink(t, watermill.Config{Topic: "t", Publisher: publisher(func(context.Context, string) error {
			if calls.Add(1) == 1 {
				<-stuck // and ignores its context
			}
			return nil
		})})
		deliver := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return s.Deliver(ctx, sinktest.Deliveries(1, 1)[0])
		}
		began := time.Now()
		err := deliver()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		err = deliver()
		require.ErrorContains(t, err, "nothing was sent: the Publisher has not returned")
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 1, calls.Load())
		end()
		require.NoError(t, deliver())
		require.EqualValues(t, 2, calls.Load())
	})
}

// unheard is a context whose end wakes nobody.
type unheard struct{ context.Context }

func (unheard) Done() <-chan struct{} { return nil }

func TestDeliver_APublishThatEndsWithItsContextLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(context.Context) context.Context{
		"the end is seen first":   func(ctx context.Context) context.Context { return ctx },
		"the error is seen first": func(ctx context.Context) context.Context { return unheard{ctx} },
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := newSink(t, watermill.Config{Topic: "t", Publisher: publisher(func(context.Context, string) error {
			cancel(context.DeadlineExceeded)
			return errors.New("broken")
		})})
		require.ErrorIs(t, s.Deliver(wrap(ctx), sinktest.Deliveries(1, 1)[0]), context.DeadlineExceeded, name)
	}
}

func TestDeliver_PublishesNothingWhenItsContextIsOver(t *testing.T) {
	t.Parallel()
	s := newSink(t, watermill.Config{Topic: "t", Publisher: publisher(func(context.Context, string) error {
		require.Fail(t, "published")
		return nil
	})})
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	err := s.Deliver(ctx, sinktest.Deliveries(1, 1)[0])
	require.ErrorContains(t, err, "nothing was sent: context deadline exceeded")
	require.NotErrorIs(t, err, context.DeadlineExceeded, "so its outcome is known")
}

func TestDeliver_APanicOfThePublisherIsOneOfTheCall(t *testing.T) {
	t.Parallel()
	fail := true
	s := newSink(t, watermill.Config{Topic: "t", Publisher: publisher(func(context.Context, string) error {
		if fail {
			panic("no marshaler")
		}
		return nil
	})})
	require.PanicsWithValue(t, "no marshaler", func() { _ = s.Deliver(t.Context(), sinktest.Deliveries(1, 1)[0]) })
	fail = false
	require.NoError(t, s.Deliver(t.Context(), sinktest.Deliveries(1, 1)[0]))
}
