package pubsub_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/pubsub"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestSink_KeepsThePromisesOfAllSinks(t *testing.T) {
	t.Parallel()
	for _, window := range []int{1, 20} {
		t.Run(fmt.Sprintf("window %d", window), func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, func(t *testing.T) sinktest.Subject {
				b := newBench(t)
				return sinktest.Subject{
					Sink:     b.sink(t, func(c *pubsub.Config) { c.Window = window }),
					Received: b.received,
					Header:   b.headers,
					Refuse: func(_ testing.TB, typ string) func() {
						return b.refuse(typ, status.Error(codes.InvalidArgument, "it fits no schema"))
					},
					Deny: func(testing.TB) (processor.BatchSink, func()) {
						return nil, b.answers(func(*pb.PublishRequest) error { return status.Error(codes.PermissionDenied, "no") })
					},
					Away: b.away,
					Lose: sinktest.Lose(b.link, sinktest.Payload),
					Another: func(t testing.TB, _ string) processor.BatchSink {
						return b.sink(t, func(c *pubsub.Config) { c.Window = window })
					},
					Empty:    func(testing.TB) { b.fake.ClearMessages() },
					Silence:  func(testing.TB) { b.link.Stall() },
					TooLarge: 10_000_000,
					Order:    true,
				}
			})
		})
	}
}

// keyed are n records in turn of the keys.
func keyed(n int, keys ...string) []processor.Delivery {
	ds := sinktest.Deliveries(1, n)
	for i := range ds {
		ds[i].Key = keys[i%len(keys)]
	}
	return ds
}

func TestDeliverBatch_MessageCarriesTheRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := sinktest.Deliveries(9007199254740993, 1)[0]
	d.Headers = map[string]string{"traceparent": "00-1", "ordered-epoch": "99", "Ordered-Key": "x", "googclient_schemaencoding": "x"}
	sinktest.Delivered(t, b.sink(t, nil), []processor.Delivery{d})
	m := b.fake.Messages()[0]
	require.Equal(t, string(d.Payload), string(m.Data))
	require.Equal(t, "customer", m.OrderingKey)
	require.Equal(t, map[string]string{
		"ordered-process": "sms", "ordered-origin": "here", "ordered-sequence": "9007199254740993", "ordered-epoch": "3", "ordered-attempt": "1",
		"ordered-position": string(d.Position), "ordered-dedup-key": d.DedupKey(), "ordered-key": "customer", "ordered-type": "made",
		"ordered-created-at": d.CreatedAt.Format(time.RFC3339Nano), "ordered-version": "1", "content-type": "application/json",
		"traceparent": "00-1",
	}, m.Attributes)
}

func TestDeliverBatch_OrderingKey(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"":                    "customer",
		"{{lower .Type}}":     "made",
		"all":                 "all",
		"{{.Headers.absent}}": "sms", // the process: no record is without an order
	} {
		b := newBench(t)
		sinktest.Delivered(t, b.sink(t, func(c *pubsub.Config) { c.OrderingKey = template }), sinktest.Deliveries(1, 1))
		require.Equal(t, want, b.fake.Messages()[0].OrderingKey, template)
	}
}

func TestDeliverBatch_ASubscriberSeesTheOrderOfEachKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ds := keyed(60, "a", "b", "c")
	sinktest.Delivered(t, b.sink(t, func(c *pubsub.Config) { c.Window = 25 }), ds)
	want := map[string][]string{}
	for _, d := range ds {
		want[d.Key] = append(want[d.Key], strconv.FormatInt(d.Sequence, 10))
	}
	for key, got := range b.read(t, 60) {
		require.Equal(t, strings.Join(want[key], " "), got)
	}
}

func TestDeliverBatch_AWindowOfOneSendsNothingBehindAFailure(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, nil)
	ds := keyed(4, "a", "b")
	ds[1].Type = "refused"
	restore := b.refuse("refused", status.Error(codes.ResourceExhausted, "not now"))
	n, err := sinktest.Deliver(t, s, ds)
	require.ErrorContains(t, err, `publish record "2" to projects/p/topics/orders`)
	require.ErrorContains(t, err, "a quota is used up")
	require.Equal(t, 1, n)
	require.Equal(t, "1|2", b.requested())
	restore()
	sinktest.Delivered(t, s, ds[1:]) // nothing has to be resumed
	require.Equal(t, "1 2 3 4", b.landed())
}

// A request has one answer for all its messages: what is behind a refused one in its
// chain cannot land.
func TestDeliverBatch_AWindowOfOneKeyIsAChain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, func(c *pubsub.Config) { c.Window = 4 })
	ds := keyed(8, "a")
	ds[5].Type = "refused"
	restore := b.refuse("refused", status.Error(codes.Unavailable, "in mid-window"))
	n, err := sinktest.Deliver(t, s, ds)
	require.Error(t, err)
	require.False(t, processor.IsPermanent(err))
	require.Equal(t, 4, n)
	require.Equal(t, "1 2 3 4|5 6 7 8", b.requested(), "one attempt: another is the processor's")
	require.Equal(t, "1 2 3 4", b.landed())
	restore()
	sinktest.Delivered(t, s, ds[n:])
	require.Equal(t, "1 2 3 4 5 6 7 8", b.landed())
}

// The order that docs/sinks/pubsub.md shows: within each key it holds.
func TestDeliverBatch_AWindowOfSeveralKeysHoldsTheOrderOfEach(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, func(c *pubsub.Config) { c.Window = 6 })
	ds := keyed(6, "a", "b")
	ds[2].Type = "refused" // with 1 and 5, of key a
	restore := b.refuse("refused", status.Error(codes.Unavailable, "in mid-window"))
	n, err := sinktest.Deliver(t, s, ds)
	require.Error(t, err)
	require.Zero(t, n)
	restore()
	sinktest.Delivered(t, s, ds)
	require.Equal(t, map[string]string{"a": "1 3 5", "b": "2 4 6 2 4 6"}, b.read(t, 9))
}

func TestDeliverBatch_FindsTheRecordThatCannotSucceed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ds := keyed(5, "a")
	ds[2].Type = "refused"
	b.refuse("refused", status.Error(codes.InvalidArgument, "it fits no schema"))
	n, err := sinktest.Deliver(t, b.sink(t, func(c *pubsub.Config) { c.Window = 5 }), ds)
	require.True(t, processor.IsPermanent(err), err)
	require.ErrorContains(t, err, `record "3"`)
	require.Equal(t, 2, n)
	require.Equal(t, "1 2 3 4 5|1|2|3", b.requested())
	require.Equal(t, "1 2", b.landed())
}

func TestDeliverBatch_RequestsStayBelowTheLimitOfPubSub(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ds := keyed(3, "a")
	for i := range ds {
		ds[i].Payload = fmt.Appendf(nil, "%q", strings.Repeat("x", 4_900_000))
	}
	sinktest.Delivered(t, b.sink(t, func(c *pubsub.Config) { c.Window = 3 }), ds)
	require.Equal(t, "1 2|3", b.requested())
}

func TestDeliverBatch_SortsErrorsByTheCodeOfGRPC(t *testing.T) {
	t.Parallel()
	for code, want := range map[codes.Code]string{
		codes.InvalidArgument:    "permanent",
		codes.OutOfRange:         "permanent",
		codes.NotFound:           "refused",
		codes.PermissionDenied:   "refused",
		codes.Unauthenticated:    "refused",
		codes.FailedPrecondition: "refused",
		codes.Unimplemented:      "refused",
		codes.ResourceExhausted:  "unreached",
		codes.AlreadyExists:      "unknown",
		codes.Aborted:            "unknown",
		codes.Internal:           "unknown",
		codes.Unknown:            "unknown",
		codes.Unavailable:        "unknown",
		codes.DeadlineExceeded:   "unknown",
		codes.Canceled:           "unknown",
		codes.DataLoss:           "unknown",
	} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.sink(t, nil)
			restore := b.refuse("made", status.Error(code, "no"))
			n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 2))
			require.Zero(t, n)
			require.Equal(t, want, sinktest.Class(err), err)
			require.Equal(t, "1", b.requested(), "one attempt")
			restore()
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
		})
	}
}

func TestDeliverBatch_HonoursTheDelayThatPubSubAsksFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answer, err := status.New(codes.ResourceExhausted, "slower").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
	require.NoError(t, err)
	b.refuse("made", answer.Err())
	_, err = sinktest.Deliver(t, b.sink(t, nil), sinktest.Deliveries(1, 1))
	require.Equal(t, 7*time.Second, processor.RetryAfterDelay(err))
}

func TestDeliverBatch_AConnectionThatDiesUnderARequestLeavesItsOutcomeUnknown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	restore := b.answers(func(*pb.PublishRequest) error {
		b.link.Cut() // and the server takes the request on
		return nil
	})
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 2))
	require.Zero(t, n)
	require.Equal(t, "unknown", sinktest.Class(err), err)
	restore()
	sinktest.Delivered(t, s, sinktest.Deliveries(2, 2))
	require.Equal(t, "1 2 2 3", b.landed())
}

func TestDeliverBatch_AConnectionThatTakesTooLongLeavesNothingUnknown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, func(c *pubsub.Config) { c.Timeout = 200 * time.Millisecond })
	b.link.Stall()
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "nothing was sent: no connection within 200ms")
	require.Equal(t, "unreached", sinktest.Class(err))
}

func TestDeliverBatch_AnAbandonedRequestIsNotSentAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, func(c *pubsub.Config) { c.Timeout = 5 * time.Second }) // a busy machine connects in that
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	b.link.Stall()
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 1))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "no answer within 5s")
	b.link.Cut()
	b.link.Resume()
	sinktest.Delivered(t, s, sinktest.Deliveries(3, 1))
	require.Equal(t, "1 3", b.landed())
}

// connections counts those that a server has taken.
type connections struct{ atomic.Int32 }

func (c *connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (c *connections) HandleConn(_ context.Context, event stats.ConnStats) {
	if _, begin := event.(*stats.ConnBegin); begin {
		c.Add(1)
	}
}

func (c *connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (c *connections) HandleRPC(context.Context, stats.RPCStats) {}

func TestDeliverBatch_UsesNoConnectionAgainThatOwesAnAnswer(t *testing.T) {
	t.Parallel()
	for code, want := range map[codes.Code]int32{codes.Unavailable: 2, codes.ResourceExhausted: 1, codes.InvalidArgument: 1} {
		var taken connections
		b := newBench(t, grpc.StatsHandler(&taken))
		s := b.sink(t, nil)
		restore := b.refuse("made", status.Error(code, "no"))
		_, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
		require.Error(t, err)
		restore()
		sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
		require.Equal(t, want, taken.Load(), code)
	}
}

func TestDeliverBatch_NamesTheFixOfATopic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := sinktest.Deliver(t, b.sink(t, func(c *pubsub.Config) { c.Topic = "absent" }), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "create the topic (gcloud pubsub topics create)")
	require.Equal(t, "refused", sinktest.Class(err))

	// Pub/Sub acknowledges what nobody subscribes to, and drops it.
	_, err = b.fake.GServer.DeleteSubscription(t.Context(), &pb.DeleteSubscriptionRequest{Subscription: subscription})
	require.NoError(t, err)
	_, err = sinktest.Deliver(t, b.sink(t, nil), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "create a subscription first")
	require.Equal(t, "unreached", sinktest.Class(err))
	require.Empty(t, b.requested())

	_, err = b.fake.GServer.CreateTopic(t.Context(), &pb.Topic{Name: "projects/p/topics/kept", MessageRetentionDuration: durationpb.New(time.Hour)})
	require.NoError(t, err)
	sinktest.Delivered(t, b.sink(t, func(c *pubsub.Config) { c.Topic = "projects/p/topics/kept" }), sinktest.Deliveries(1, 1)) // the topic itself keeps messages
}

// The last subscription is deleted while records flow: Pub/Sub goes on to acknowledge.
func TestDeliverBatch_LooksAtTheTopicAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, nil)
	s.LookEvery(0)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	_, err := b.fake.GServer.DeleteSubscription(t.Context(), &pb.DeleteSubscriptionRequest{Subscription: subscription})
	require.NoError(t, err)
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 1))
	require.ErrorContains(t, err, "create a subscription first")
	require.Equal(t, "unreached", sinktest.Class(err))
	require.Zero(t, n)
	require.Len(t, b.requested(), 1)

	b.listing.denied.Store(true)
	sinktest.Delivered(t, s, sinktest.Deliveries(2, 1)) // who may not look publishes
}

// TestDeliverBatch_LooksAtATopicThatIsMadeAnewBeforeItPublishes: it has none of the former one's subscriptions.
func TestDeliverBatch_LooksAtATopicThatIsMadeAnewBeforeItPublishes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	b.remove(t)
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 1))
	require.Equal(t, "refused", sinktest.Class(err), err)
	require.Equal(t, "1|2", b.requested(), "it is Pub/Sub that says so")
	require.ErrorContains(t, err, "create the topic (gcloud pubsub topics create) and its subscriptions (gcloud pubsub subscriptions create")
	require.ErrorContains(t, err, "`seek` back to what receivers lack")

	_, err = b.fake.GServer.CreateTopic(t.Context(), &pb.Topic{Name: topic})
	require.NoError(t, err)
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 1))
	require.ErrorContains(t, err, "create a subscription first")
	require.Zero(t, n)
	require.Equal(t, "1|2", b.requested(), "it would be acknowledged, and lost")

	b.subscribe(t)
	sinktest.Delivered(t, s, sinktest.Deliveries(2, 1))
	require.Equal(t, "1 2", b.landed())
}

// TestDeliverBatch_LooksAtTheTopicAfterARefusalOfAnotherKey: the first failure of a window may say less.
func TestDeliverBatch_LooksAtTheTopicAfterARefusalOfAnotherKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, func(c *pubsub.Config) { c.Window = 2 })
	b.answers(func(r *pb.PublishRequest) error {
		if r.Messages[0].OrderingKey == "a" {
			return status.Error(codes.ResourceExhausted, "slower")
		}
		return status.Error(codes.NotFound, "no such topic")
	})
	_, err := sinktest.Deliver(t, s, keyed(2, "a", "b"))
	require.Equal(t, "unreached", sinktest.Class(err), err)
	b.unsubscribe(t)
	_, err = sinktest.Deliver(t, s, keyed(2, "a", "b"))
	require.ErrorContains(t, err, "create a subscription first")
}

// TestDeliverBatch_LooksAtTheTopicWhenAnOperatorHasDecided: each decision begins an epoch, and he may have worked on the topic.
func TestDeliverBatch_LooksAtTheTopicWhenAnOperatorHasDecided(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	b.unsubscribe(t)
	ds := sinktest.Deliveries(2, 1)
	ds[0].Epoch++
	_, err := sinktest.Deliver(t, s, ds)
	require.ErrorContains(t, err, "create a subscription first")
	require.Equal(t, "1", b.requested())
}

// TestDeliverBatch_NamesWhatWasAcknowledgedSinceTheLastLook: whether a subscription has it is not known.
func TestDeliverBatch_NamesWhatWasAcknowledgedSinceTheLastLook(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	again := sinktest.Deliveries(2, 2)
	again[0].Epoch++
	again[1].Epoch++
	sinktest.Delivered(t, s, again) // looks
	b.unsubscribe(t)
	s.LookEvery(0)
	for range 2 {
		_, err := sinktest.Deliver(t, s, sinktest.Deliveries(4, 1))
		require.ErrorContains(t, err, "create a subscription first")
		require.ErrorContains(t, err, `records from "2" on were acknowledged since the topic was last checked, and may be lost`)
	}
	b.subscribe(t)
	sinktest.Delivered(t, s, sinktest.Deliveries(4, 1))
	b.unsubscribe(t)
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(5, 1))
	require.ErrorContains(t, err, `records from "4" on`)
}

func TestDeliverBatch_AnAccountThatMayOnlyPublishPublishes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.listing.denied.Store(true)
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Deliveries(1, 1))
}

func TestDeliverBatch_CountsNothingThatPubSubDoesNotName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fake.SetAutoPublishResponse(false)
	b.fake.AddPublishResponse(&pb.PublishResponse{MessageIds: []string{"m0"}}, nil)
	n, err := sinktest.Deliver(t, b.sink(t, func(c *pubsub.Config) { c.Window = 2 }), sinktest.Deliveries(1, 2))
	require.ErrorContains(t, err, "Pub/Sub acknowledged 1 of 2 messages")
	require.Equal(t, "unknown", sinktest.Class(err))
	require.Zero(t, n)
}

func TestDeliverBatch_RefusesWhatPubSubCannotCarry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, func(c *pubsub.Config) { c.Window = 10 })
	headers := func(n int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprint(i)] = "x"
		}
		return all
	}
	for want, change := range map[string]func(*processor.Delivery){
		"its ordering key has 1025 bytes, and Pub/Sub takes 1024": func(d *processor.Delivery) { d.Key = strings.Repeat("k", 1025) },
		"its ordering key is not UTF-8":                           func(d *processor.Delivery) { d.Key = "\xff" },
		`attribute "ordered-type" has 1025 bytes`:                 func(d *processor.Delivery) { d.Type = strings.Repeat("t", 1025) },
		"a header's name has 257 bytes, and Pub/Sub takes 256":    func(d *processor.Delivery) { d.Headers = map[string]string{strings.Repeat("h", 257): "x"} },
		`attribute "h" has 1025 bytes, and Pub/Sub takes 1024`:    func(d *processor.Delivery) { d.Headers = map[string]string{"h": strings.Repeat("x", 1025)} },
		`attribute "h" is not UTF-8`:                              func(d *processor.Delivery) { d.Headers = map[string]string{"h": "\xff"} },
		"it has 101 attributes, and Pub/Sub takes 100":            func(d *processor.Delivery) { d.Headers = headers(89) },
		"bytes, and Pub/Sub takes requests of 10000000":           func(d *processor.Delivery) { d.Payload = make([]byte, 10_000_000) },
	} {
		ds := sinktest.Deliveries(1, 3)
		change(&ds[1])
		n, err := sinktest.Deliver(t, s, ds)
		require.True(t, processor.IsPermanent(err), "%s: %v", want, err)
		require.ErrorContains(t, err, want)
		require.Equal(t, 1, n, want)
	}
	require.Equal(t, strings.TrimSpace(strings.Repeat("1 ", 8)), b.landed(), "nothing behind the refused")

	d := sinktest.Deliveries(1, 1)
	d[0].Headers = headers(88)
	d[0].ID = strings.Repeat("i", 2000)
	sinktest.Delivered(t, s, d)
	all := b.fake.Messages()
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", all[len(all)-1].Attributes["ordered-dedup-key"])
}

// TestDeliverBatch_NamesTheFixOfARefusalOfUs: each was tried as often as retry.attempts allow, and healthy records were put aside.
func TestDeliverBatch_NamesTheFixOfARefusalOfUs(t *testing.T) {
	t.Parallel()
	for code, fix := range map[codes.Code]string{
		codes.PermissionDenied:   "grant roles/pubsub.publisher",
		codes.Unauthenticated:    "correct the credentials",
		codes.FailedPrecondition: "set endpoint to one that it allows",
		codes.Unimplemented:      "correct endpoint or emulator",
	} {
		b := newBench(t)
		b.refuse("made", status.Error(code, "no"))
		_, err := sinktest.Deliver(t, b.sink(t, nil), sinktest.Deliveries(1, 1))
		require.Equal(t, "refused", sinktest.Class(err), err)
		require.ErrorContains(t, err, fix)
	}
}

// TestDeliverBatch_WhatIsNoPubSubRefusesUsAtTheFirstLook: an address of something else that speaks gRPC.
func TestDeliverBatch_WhatIsNoPubSubRefusesUsAtTheFirstLook(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	other := grpc.NewServer()
	go func() { _ = other.Serve(listener) }()
	t.Cleanup(other.Stop)
	s := sinktest.Made(t, pubsub.New, pubsub.Config{Topic: topic, Emulator: listener.Addr().String()})
	_, err = sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
	require.Equal(t, "refused", sinktest.Class(err), err)
	require.ErrorContains(t, err, "nothing was sent")
	require.ErrorContains(t, err, "correct endpoint or emulator")
}
