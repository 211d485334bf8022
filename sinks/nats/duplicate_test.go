package nats_test

import (
	"fmt"
	"testing"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// mine are deliveries of another cursor.
func mine(process, origin string, ds []processor.Delivery) []processor.Delivery {
	for i := range ds {
		ds[i].Process, ds[i].Origin = process, origin
	}
	return ds
}

// eachWindow runs a test without a window and with one.
func eachWindow(t *testing.T, test func(t *testing.T, n int)) {
	t.Parallel()
	for _, n := range []int{1, 4} {
		t.Run(fmt.Sprintf("window %d", n), func(t *testing.T) {
			t.Parallel()
			test(t, n)
		})
	}
}

// Two processes read one table, and two databases have one of the same name: the dedup
// keys and the numbers are the same.
func TestDuplicate_OfAnotherProcessOrDatabaseIsNone(t *testing.T) {
	eachWindow(t, func(t *testing.T, n int) {
		b := newBench(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"bookings.>", "ordered-fence.>"} })
		sinktest.Delivered(t, b.sink(t, window(n)), sinktest.Deliveries(1, 5))
		sinktest.Delivered(t, b.sink(t, window(n)), mine("mail", "here too", sinktest.Deliveries(1, 5)))
		elsewhere := b.sink(t, func(c *nats.Config) { c.Window, c.Fence = n, "ordered-fence.elsewhere" })
		sinktest.Delivered(t, elsewhere, sinktest.Under(2, mine("sms", "elsewhere", sinktest.Deliveries(1, 5)))) // its epochs are of another count
		require.Equal(t, "1/sms 2/sms 3/sms 4/sms 5/sms 1/mail 2/mail 3/mail 4/mail 5/mail 1/sms 2/sms 3/sms 4/sms 5/sms", b.log(t, "ordered-process"))
	})
}

func TestFence_BelongsToOneCursor(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Deliveries(1, 1))
	other := b.sink(t, nil)
	n, err := sinktest.Deliver(t, other, mine("sms", "elsewhere", sinktest.Deliveries(1, 2)))
	require.Zero(t, n)
	require.ErrorContains(t, err, `"ordered-fence.sms" belongs to another cursor, whose process is called sms, too`)
	require.False(t, processor.IsPermanent(err))
	require.NoError(t, b.stream.Purge(t.Context(), jetstream.WithPurgeSubject(fence)))
	sinktest.Delivered(t, other, mine("sms", "elsewhere", sinktest.Deliveries(1, 2)))
	require.Equal(t, "1 1 2", b.log(t))
}

// An operator empties the stream, or removes a message of it, within the time in which
// the server knows the ids.
func TestDuplicate_OfAMessageThatIsGoneIsSent(t *testing.T) {
	eachWindow(t, func(t *testing.T, n int) {
		for _, c := range []struct {
			empty func(b *bench) error
			want  string
		}{
			{func(b *bench) error { return b.stream.Purge(t.Context()) }, "2 3 4 5 6"},
			{func(b *bench) error { return b.stream.DeleteMsg(t.Context(), 3) }, "1 3 4 5 2 6"},
		} {
			b := newBench(t, nil)
			sinktest.Delivered(t, b.sink(t, window(n)), sinktest.Deliveries(1, 5))
			require.NoError(t, c.empty(b))
			sinktest.Delivered(t, b.sink(t, window(n)), sinktest.Deliveries(2, 5))
			require.Equal(t, c.want, b.log(t))
		}
	})
}

// TRUNCATE … RESTART IDENTITY, or a failover that lost commits: the numbers, the ids and
// the places are those of other rows.
func TestDuplicate_OfAnotherRowIsNone(t *testing.T) {
	eachWindow(t, func(t *testing.T, n int) {
		b := newBench(t, nil)
		sinktest.Delivered(t, b.sink(t, window(n)), sinktest.Deliveries(1, 5))
		again := sinktest.Deliveries(1, 5)
		for i := range again {
			again[i].Payload = fmt.Appendf(nil, `{"new": %d}`, i)
		}
		sinktest.Delivered(t, b.sink(t, window(n)), again)
		require.Equal(t, "1 2 3 4 5 1 2 3 4 5", b.log(t))
		for i, m := range b.received(t)[5:] {
			require.Equal(t, string(again[i].Payload), m.Payload)
		}
	})
}

// Someone else's message has the id of a record that is still to come.
func TestDuplicate_OfAStrangersMessageIsNone(t *testing.T) {
	eachWindow(t, func(t *testing.T, n int) {
		twin := newBench(t, nil)
		sinktest.Delivered(t, twin.sink(t, nil), sinktest.Deliveries(1, 5))
		b := newBench(t, nil)
		for _, m := range twin.read(t)[1:4] {
			_, err := b.admin.PublishMsg(t.Context(), &client.Msg{Subject: "bookings.stranger"}, jetstream.WithMsgID(m.Headers["Nats-Msg-Id"]))
			require.NoError(t, err)
		}
		s := b.sink(t, window(n))
		sinktest.Delivered(t, s, sinktest.Deliveries(1, 5))
		require.Equal(t, "1 2 3 4 5", b.log(t))
		require.NoError(t, s.Close())
		sinktest.Delivered(t, s, sinktest.Deliveries(1, 6))
		require.Equal(t, "1 2 3 4 5 6", b.log(t), "what stands there under another id is found")
	})
}

// From a work queue a message goes when it is consumed: its record was delivered.
func TestDuplicate_OfAConsumedMessageCounts(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy })
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Deliveries(1, 2))
	consumer, err := b.stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{FilterSubject: "bookings.>", AckPolicy: jetstream.AckExplicitPolicy})
	require.NoError(t, err)
	for range 2 {
		m, err := consumer.Next()
		require.NoError(t, err)
		require.NoError(t, m.DoubleAck(t.Context()))
	}
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Deliveries(2, 2))
	require.EqualValues(t, 3, b.stored(t), "two claims and a record")
}

// stored is how many messages the stream has, with the claims.
func (b *bench) stored(t testing.TB) uint64 {
	t.Helper()
	info, err := b.stream.Info(t.Context())
	require.NoError(t, err)
	return info.State.Msgs
}
