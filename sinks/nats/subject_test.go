package nats_test

import (
	"fmt"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// The user of the sink may publish to $JS.API, where the server takes orders: a type
// of a record was one.
func TestDeliverBatch_NoRecordGivesTheServerAnOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	victim, err := b.admin.CreateStream(t.Context(), jetstream.StreamConfig{Name: "VICTIM", Subjects: []string{"victim"}})
	require.NoError(t, err)
	_, err = b.admin.Publish(t.Context(), "victim", []byte("precious"))
	require.NoError(t, err)
	for i, subject := range []string{"{{tokens .Type}}", "{{.Type}}", "{{tokens .Key}}.{{tokens .Type}}"} {
		for _, typ := range []string{"$JS.API.STREAM.PURGE.VICTIM", "JS.API.STREAM.PURGE.VICTIM", "_INBOX.x", "_R_.x", "_GR_.x", "victim", fence, "a.>", "*"} {
			s := b.sink(t, func(c *nats.Config) { c.Subject = `{{if eq .Type "made"}}bookings.{{end}}` + subject; c.Window = 4 })
			ds := sinktest.Deliveries(10*i+1, 2)
			ds[0].Key, ds[1].Key, ds[1].Type, ds[1].Payload = "made", "$", typ, []byte(" ")
			n, err := sinktest.Deliver(t, s, ds)
			require.Equal(t, 1, n, "%s %s: %v", subject, typ, err)
			require.Error(t, err, "%s %s", subject, typ)
			require.NotContains(t, err.Error(), "no responders", "%s %s was asked", subject, typ)
		}
	}
	info, err := victim.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, info.State.Msgs)
	for _, m := range b.read(t) {
		require.Contains(t, m.Subject, "bookings.")
	}
}

func TestDeliverBatch_AValueOfARecordIsOneToken(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, func(c *nats.Config) { c.Subject = "bookings.{{.Key}}.{{tokens (lower .Type)}}" })
	for i, c := range []struct{ key, want string }{
		{"a b", "bookings.a%20b.order.made"},
		{"a..b", "bookings.a%2E%2Eb.order.made"},
		{"*", "bookings.%2A.order.made"},
		{"a.>", "bookings.a%2E%3E.order.made"},
		{"$JS", "bookings.%24JS.order.made"},
		{"a\r\nPUB x 0", "bookings.a%0D%0APUB%20x%200.order.made"},
		{"\x00\xff", "bookings.%00%FF.order.made"},
	} {
		ds := sinktest.Deliveries(i+1, 1)
		ds[0].Key, ds[0].Type = c.key, "Order.Made"
		sinktest.Delivered(t, s, ds)
		all := b.read(t)
		require.Equal(t, c.want, all[len(all)-1].Subject)
	}
}

func TestNew_RefusesTheServersOwnSubjects(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{"$JS.API.STREAM.PURGE.{{.Type}}", "$KV.bucket.{{.Key}}", "_INBOX.{{.ID}}"} {
		c := nats.Config{URL: "nats://x", Stream: stream, Subject: subject}
		_, err := nats.New(c)
		require.ErrorContains(t, err, "subject: it begins with $ or _INBOX", subject)
		c.Subject, c.Fence = "x", subject
		_, err = nats.New(c)
		require.ErrorContains(t, err, "fence: it begins with $ or _INBOX", subject)
	}
}

// A stream may be given the subject while the sink runs.
func TestDeliverBatch_FindsASubjectThatTheStreamWasGiven(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"bookings.made", fence} })
	s := b.sink(t, window(3))
	ds := sinktest.Deliveries(1, 3)
	ds[1].Type = "paid"
	n, err := sinktest.Deliver(t, s, ds)
	require.Equal(t, 1, n)
	require.ErrorContains(t, err, fmt.Sprintf("nats stream edit %s --subjects=", stream))
	require.False(t, processor.IsPermanent(err))
	b.edit(t, func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "bookings.paid") })
	sinktest.Delivered(t, s, ds[1:])
	require.Equal(t, "1 2 3", b.log(t))
}

// TestDeliverBatch_ASubjectThatAServiceHasNowIsSaid: a stream may lose a subject while the sink runs, and a plain service may listen on it.
func TestDeliverBatch_ASubjectThatAServiceHasNowIsSaid(t *testing.T) {
	t.Parallel()
	for name, service := range map[string]client.MsgHandler{
		"it answers":   func(m *client.Msg) { _ = m.Respond([]byte("thanks")) },
		"it is silent": func(*client.Msg) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			s := b.sink(t, func(c *nats.Config) { c.Timeout = 5 * time.Second }) // a busy machine connects again in that
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
			b.edit(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"bookings.paid", fence} })
			subscription, err := b.admin.Conn().Subscribe("bookings.made", service)
			require.NoError(t, err)
			require.NoError(t, b.admin.Conn().Flush())
			next := sinktest.Deliveries(3, 1)
			n, err := sinktest.Deliver(t, s, next)
			require.Zero(t, n)
			require.ErrorContains(t, err, `the stream no longer takes subject "bookings.made", and what listens there instead may have received the record`)
			require.True(t, outcome.IsUnknown(err), "%v", err)
			for range 2 {
				n, err = sinktest.Deliver(t, s, next)
				require.Zero(t, n)
				require.ErrorContains(t, err, `the stream does not take subject "bookings.made"`)
				require.ErrorContains(t, err, "nothing was sent: this holds for this attempt; an earlier one had no answer")
				require.True(t, processor.IsUnreached(err), "%v", err)
			}
			require.NoError(t, subscription.Unsubscribe())
			b.edit(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"bookings.>", fence} })
			sinktest.Delivered(t, s, next)
			require.Equal(t, "1 2 3", b.log(t))
		})
	}
}

// TestDeliverBatch_ASubjectThatAnotherStreamHasNowIsNoAttemptOfTheRecord: the other stream refuses it, as it would each one.
func TestDeliverBatch_ASubjectThatAnotherStreamHasNowIsNoAttemptOfTheRecord(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 3} {
		t.Run(fmt.Sprint("window ", size), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			s := b.sink(t, window(size))
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
			b.edit(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"bookings.paid", fence} })
			other, err := b.admin.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"bookings.made"}})
			require.NoError(t, err)
			next := sinktest.Deliveries(3, 3)
			for _, want := range []string{"error 10060 of the server", "nothing was sent: the stream does not take subject"} { // the next attempt looks
				n, err := sinktest.Deliver(t, s, next)
				require.Zero(t, n)
				require.ErrorContains(t, err, want)
				require.Equal(t, "unreached", sinktest.Class(err), "an attempt of the record: %v", err)
			}
			info, err := other.Info(t.Context())
			require.NoError(t, err)
			require.Zero(t, info.State.Msgs)
			require.NoError(t, b.admin.DeleteStream(t.Context(), "OTHER"))
			b.edit(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"bookings.>", fence} })
			sinktest.Delivered(t, s, next)
			require.Equal(t, "1 2 3 4 5", b.log(t))
		})
	}
}
