package nats_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// snapshot is a stream as a backup has it.
type snapshot struct {
	Config json.RawMessage `json:"config"`
	State  json.RawMessage `json:"state"`
	chunks [][]byte
}

// backup does what `nats stream backup` does: see https://docs.nats.io/reference/reference-protocols/nats_api_reference.
func backup(t *testing.T, connection *client.Conn) snapshot {
	t.Helper()
	inbox := connection.NewInbox()
	subscription, err := connection.SubscribeSync(inbox)
	require.NoError(t, err)
	request, err := json.Marshal(map[string]string{"deliver_subject": inbox})
	require.NoError(t, err)
	answer, err := connection.Request("$JS.API.STREAM.SNAPSHOT."+stream, request, time.Minute)
	require.NoError(t, err)
	var s snapshot
	require.NoError(t, json.Unmarshal(answer.Data, &s))
	for {
		m, err := subscription.NextMsg(time.Minute)
		require.NoError(t, err)
		if len(m.Data) == 0 {
			return s
		}
		s.chunks = append(s.chunks, m.Data)
		if m.Reply != "" { // it waits for this before it sends more
			require.NoError(t, m.Respond(nil))
		}
	}
}

// restore does what `nats stream restore` does, in the place of the stream that is there.
func (s snapshot) restore(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	require.NoError(t, js.DeleteStream(t.Context(), stream))
	request, err := json.Marshal(s)
	require.NoError(t, err)
	answer, err := js.Conn().Request("$JS.API.STREAM.RESTORE."+stream, request, time.Minute)
	require.NoError(t, err)
	var to struct {
		Subject string `json:"deliver_subject"`
	}
	require.NoError(t, json.Unmarshal(answer.Data, &to))
	for _, chunk := range append(s.chunks, nil) {
		answer, err = js.Conn().Request(to.Subject, chunk, time.Minute)
		require.NoError(t, err)
	}
	require.NotContains(t, string(answer.Data), `"error"`)
}

// TestDeliverBatch_AStreamThatIsRestoredUnderAConnectionIsSaid: nothing breaks the connection, the claim stands in the backup, and
// what others publish comes up to the number of the last message, or past it.
func TestDeliverBatch_AStreamThatIsRestoredUnderAConnectionIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ window, others int }{
		"one by one":                    {1, 9},
		"a window":                      {10, 9},
		"refilled exactly":              {1, 6},
		"refilled exactly and a window": {4, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			s := b.sink(t, window(c.window))
			sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(1, 5)))
			copied := backup(t, b.admin.Conn())
			sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(6, 6)))
			copied.restore(t, b.admin)
			b.strangers(t, c.others)
			for range 2 {
				requireLost(t, s, sinktest.Under(3, sinktest.Deliveries(12, 4)), "it acknowledged message 12, and ")
			}
			sinktest.Delivered(t, s, sinktest.Under(4, sinktest.Deliveries(6, 10)))
		})
	}
}

// TestDeliverBatch_AStreamThatIsRestoredWhileAMessageIsOnItsWayIsSaid: the worker sends without a pause.
func TestDeliverBatch_AStreamThatIsRestoredWhileAMessageIsOnItsWayIsSaid(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]int{"refilled exactly": 3, "refilled with more": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			s := b.sink(t, nil)
			sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(1, 5)))
			copied := backup(t, b.admin.Conn())
			ds := sinktest.Under(3, sinktest.Deliveries(6, 8))
			b.link.OnData(func(fromServer bool, data []byte) {
				if !fromServer && bytes.Contains(data, ds[3].Payload) {
					copied.restore(t, b.admin)
					b.strangers(t, others)
				}
			})
			n, err := sinktest.Deliver(t, s, ds)
			require.Equal(t, 3, n)
			require.ErrorContains(t, err, "it acknowledged message 9, and has another one there")
			require.True(t, processor.IsRefused(err), "%v", err)
		})
	}
}

// TestDeliverBatch_WhatCouldNotBeReadIsReadLater: the stream was set back, and no answer comes when the worker looks.
func TestDeliverBatch_WhatCouldNotBeReadIsReadLater(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, func(c *nats.Config) { c.Window, c.Timeout = 4, 5*time.Second }) // a busy machine connects again in that
	sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(1, 5)))
	copied := backup(t, b.admin.Conn())
	sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(6, 6)))
	copied.restore(t, b.admin)
	b.strangers(t, 6)
	b.link.Hold(link.Client, func(data []byte) bool { return bytes.Contains(data, []byte("$JS.API.STREAM.MSG.GET.")) })
	sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(12, 2))) // of which the second one follows the first one alone
	b.link.Release()
	for range 2 {
		require.NoError(t, s.Close())
		requireLost(t, s, sinktest.Under(3, sinktest.Deliveries(14, 1)), "the stream was set back: it was deleted and made anew at")
	}
}

// TestDeliverBatch_AReadThatIsNotAnsweredEndsTheLink: it is not waited for again with each record, and the error names it.
func TestDeliverBatch_AReadThatIsNotAnsweredEndsTheLink(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, func(c *nats.Config) { c.Timeout = 5 * time.Second })
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	b.link.OnData(func(fromServer bool, _ []byte) {
		if fromServer { // a record is acknowledged so late that the sink looks at the stream with the next one
			time.Sleep(300 * time.Millisecond)
		}
	})
	sinktest.Delivered(t, s, sinktest.Deliveries(2, 1))
	b.link.OnData(nil)
	b.link.Hold(link.Client, func(data []byte) bool { return bytes.Contains(data, []byte("$JS.API.STREAM.MSG.GET.")) })
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(3, 3))
	require.Equal(t, 1, n, "the record whose acknowledgement made the sink look")
	require.ErrorContains(t, err, "read message")
	b.link.Release()
	require.NoError(t, s.Close())
	sinktest.Delivered(t, s, sinktest.Deliveries(4, 2))
	require.Equal(t, "1 2 3 4 5", b.log(t), "no record is there twice")
}

// strangers publish n messages.
func (b *bench) strangers(t *testing.T, n int) {
	t.Helper()
	for range n {
		_, err := b.admin.Publish(t.Context(), "bookings.stranger", nil)
		require.NoError(t, err)
	}
}
