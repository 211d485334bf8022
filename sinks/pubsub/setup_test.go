package pubsub_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	client "cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/pubsub"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

const (
	project      = "p"
	topic        = "projects/p/topics/orders"
	subscription = "projects/p/subscriptions/all"
)

// bench is a server of one test with one topic, reached over a link to be broken.
type bench struct {
	fake *pstest.Server
	link *link.Link

	listing listing

	mu       sync.Mutex
	answer   func(*pb.PublishRequest) error // nil: all are taken
	requests [][]string                     // the ordered-sequence of the messages of each, taken or not
}

func newBench(t testing.TB, options ...grpc.ServerOption) *bench {
	t.Helper()
	b := &bench{}
	b.fake = pstest.NewServer(pstest.ServerReactorOption{FuncName: "Publish", Reactor: b},
		pstest.ServerReactorOption{FuncName: "ListTopicSubscriptions", Reactor: &b.listing})
	t.Cleanup(func() { _ = b.fake.Close() })
	b.link = tcptest.Link(t, b.serve(t, options))
	_, err := b.fake.GServer.CreateTopic(t.Context(), &pb.Topic{Name: topic})
	require.NoError(t, err)
	b.subscribe(t)
	return b
}

func (b *bench) subscribe(t testing.TB) {
	t.Helper()
	_, err := b.fake.GServer.CreateSubscription(t.Context(), &pb.Subscription{Name: subscription, Topic: topic, AckDeadlineSeconds: 60, EnableMessageOrdering: true})
	require.NoError(t, err)
}

func (b *bench) unsubscribe(t testing.TB) {
	t.Helper()
	_, err := b.fake.GServer.DeleteSubscription(t.Context(), &pb.DeleteSubscriptionRequest{Subscription: subscription})
	require.NoError(t, err)
}

// remove takes the topic away, and its subscription.
func (b *bench) remove(t testing.TB) {
	t.Helper()
	b.unsubscribe(t)
	_, err := b.fake.GServer.DeleteTopic(t.Context(), &pb.DeleteTopicRequest{Topic: topic})
	require.NoError(t, err)
}

// serve has the fake answer as the service does: to requests of 10 MB too.
func (b *bench) serve(t testing.TB, options []grpc.ServerOption) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(append(options, grpc.MaxRecvMsgSize(11_000_000))...)
	pb.RegisterPublisherServer(server, &b.fake.GServer)
	pb.RegisterSubscriberServer(server, &b.fake.GServer)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// React is what the server does first with a request to publish.
func (b *bench) React(request any) (handled bool, answer any, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := request.(*pb.PublishRequest)
	var sequences []string
	for _, m := range r.Messages {
		sequences = append(sequences, m.Attributes["ordered-sequence"])
	}
	b.requests = append(b.requests, sequences)
	if b.answer == nil {
		return false, nil, nil
	}
	err = b.answer(r)
	return err != nil, &pb.PublishResponse{}, err
}

// listing is what the server does first when it is asked for subscriptions.
type listing struct{ denied atomic.Bool }

func (l *listing) React(any) (handled bool, answer any, err error) {
	if l.denied.Load() {
		return true, &pb.ListTopicSubscriptionsResponse{}, status.Error(codes.PermissionDenied, "User not authorized to perform this action.")
	}
	return false, nil, nil
}

// answers lets the server answer requests by f until the returned function is called.
func (b *bench) answers(f func(*pb.PublishRequest) error) (restore func()) {
	set := func(f func(*pb.PublishRequest) error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.answer = f
	}
	set(f)
	return func() { set(nil) }
}

// refuse answers with err whatever has a message of the type.
func (b *bench) refuse(typ string, err error) (restore func()) {
	return b.answers(func(r *pb.PublishRequest) error {
		for _, m := range r.Messages {
			if m.Attributes["ordered-type"] == typ {
				return err
			}
		}
		return nil
	})
}

// requested returns the sequences of each request so far: "1 2|3" are two requests.
func (b *bench) requested() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, sequences := range b.requests {
		all = append(all, strings.Join(sequences, " "))
	}
	return strings.Join(all, "|")
}

func (b *bench) sink(t testing.TB, change func(*pubsub.Config)) *pubsub.Sink {
	t.Helper()
	return sinktest.Made(t, pubsub.New, pubsub.Config{Project: project, Topic: "orders", Emulator: b.link.Addr()}, change)
}

// away takes the server off the network.
func (b *bench) away(testing.TB) (back func()) { return b.link.Away() }

// received is what the server has, in its order.
func (b *bench) received(testing.TB) []sinktest.Message {
	all := []sinktest.Message{}
	for _, m := range b.fake.Messages() {
		all = append(all, sinktest.Message{DedupKey: m.Attributes["ordered-dedup-key"], Payload: string(m.Data)})
	}
	return all
}

func (b *bench) headers(_ testing.TB, name string) []string {
	var all []string
	for _, m := range b.fake.Messages() {
		all = append(all, m.Attributes[name])
	}
	return all
}

// landed are the sequences of the messages that the server has, in its order.
func (b *bench) landed() string {
	var all []string
	for _, m := range b.fake.Messages() {
		all = append(all, m.Attributes["ordered-sequence"])
	}
	return strings.Join(all, " ")
}

// read asks the client of Google Cloud, subscribed in order, for n messages and
// returns the sequences of each ordering key.
func (b *bench) read(t testing.TB, n int) map[string]string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := b.client(t)
	byKey := map[string][]string{}
	var mu sync.Mutex
	err := c.Subscriber(subscription).Receive(ctx, func(_ context.Context, m *client.Message) {
		mu.Lock()
		defer mu.Unlock()
		byKey[m.OrderingKey] = append(byKey[m.OrderingKey], m.Attributes["ordered-sequence"])
		m.Ack()
		if n--; n == 0 {
			cancel()
		}
	})
	require.NoError(t, err)
	all := map[string]string{}
	for key, sequences := range byKey {
		all[key] = strings.Join(sequences, " ")
	}
	return all
}

// client is that of Google Cloud, which is not ours.
func (b *bench) client(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.NewClient(t.Context(), project, option.WithEndpoint(b.link.Addr()), option.WithoutAuthentication(),
		option.WithTelemetryDisabled(), option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
