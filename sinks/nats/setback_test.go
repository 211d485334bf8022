package nats_test

import (
	"testing"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// TestDeliverBatch_AStreamThatIsSetBackIsSaidAfterOthersHavePublished: their messages have the numbers of those that are lost.
func TestDeliverBatch_AStreamThatIsSetBackIsSaidAfterOthersHavePublished(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]func(*testing.T, *broker.NATS, func() *nats.Sink){
		"strangers": func(t *testing.T, server *broker.NATS, _ func() *nats.Sink) {
			connection, err := client.Connect(server.URL(server.Addr()))
			require.NoError(t, err)
			defer connection.Close()
			js, err := jetstream.New(connection)
			require.NoError(t, err)
			for range 30 {
				_, err := js.Publish(t.Context(), "bookings.stranger", nil)
				require.NoError(t, err)
			}
		},
		"another worker": func(t *testing.T, _ *broker.NATS, another func() *nats.Sink) {
			sinktest.Delivered(t, another(), sinktest.Under(4, sinktest.Deliveries(31, 30)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := brokertest.NewNATS(t, broker.NATSConfig{})
			another := func() *nats.Sink {
				return sinktest.Made(t, nats.New, nats.Config{
					URL: server.URL(server.Addr()), Stream: stream, Subject: "bookings.{{.Type}}", Window: 10, Declare: &nats.Declare{Subjects: []string{"bookings.>"}},
				})
			}
			s := another()
			sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(1, 20)))
			require.NoError(t, server.Kill(t.Context()))
			require.NoError(t, server.Snapshot(t.Context()))
			require.NoError(t, server.Start(t.Context()))
			require.NoError(t, s.Close())
			sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(21, 10)))
			require.NoError(t, server.Kill(t.Context()))
			require.NoError(t, server.PutBack(t.Context()))
			require.NoError(t, server.Start(t.Context()))
			others(t, server, another)
			require.NoError(t, s.Close())
			for range 2 {
				requireLost(t, s, sinktest.Under(5, sinktest.Deliveries(61, 5)), "the stream was set back: it acknowledged message")
			}
			sinktest.Delivered(t, s, sinktest.Under(6, sinktest.Deliveries(61, 5)))
		})
	}
}

// TestConnect_AMessageThatIsGoneIsNoLoss: limits, operators and consumers remove what was acknowledged.
func TestConnect_AMessageThatIsGoneIsNoLoss(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stream func(*jetstream.StreamConfig)
		remove func(*testing.T, *bench)
	}{
		"nothing": {nil, func(*testing.T, *bench) {}},
		"others have replaced": {func(c *jetstream.StreamConfig) { c.AllowRollup = true }, func(t *testing.T, b *bench) {
			sinktest.Delivered(t, b.sink(t, nil), sinktest.Under(3, sinktest.Deliveries(3, 1)))
		}},
		"a purge":              {nil, func(t *testing.T, b *bench) { require.NoError(t, b.stream.Purge(t.Context())) }},
		"a message is deleted": {nil, func(t *testing.T, b *bench) { require.NoError(t, b.stream.DeleteMsg(t.Context(), 3)) }},
		"the last state alone": {func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }, func(t *testing.T, b *bench) {
			_, err := b.admin.Publish(t.Context(), "bookings.made", nil)
			require.NoError(t, err)
		}},
		"a limit": {func(c *jetstream.StreamConfig) { c.MaxMsgs = 2 }, func(t *testing.T, b *bench) {
			for range 3 {
				_, err := b.admin.Publish(t.Context(), "bookings.stranger", nil)
				require.NoError(t, err)
			}
		}},
		"a work queue": {func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, func(t *testing.T, b *bench) {
			consumer, err := b.stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{FilterSubject: "bookings.>", AckPolicy: jetstream.AckExplicitPolicy})
			require.NoError(t, err)
			for range 2 {
				m, err := consumer.Next()
				require.NoError(t, err)
				require.NoError(t, m.DoubleAck(t.Context()))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.stream)
			s := b.sink(t, nil)
			sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(1, 2)))
			c.remove(t, b)
			for first := 4; first < 7; first++ {
				require.NoError(t, s.Close())
				sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(first, 1)))
			}
		})
	}
}
