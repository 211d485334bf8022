package nats_test

import (
	"encoding/json"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

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
// what others publish comes past what the backup lacks.
func TestDeliverBatch_AStreamThatIsRestoredUnderAConnectionIsSaid(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"one by one": 1, "a window": 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			s := b.sink(t, func(c *nats.Config) { c.Window = size })
			requireDelivered(t, s, of(3, sinktest.Deliveries(1, 5)))
			copied := backup(t, b.admin.Conn())
			requireDelivered(t, s, of(3, sinktest.Deliveries(6, 6)))
			copied.restore(t, b.admin)
			for range 9 {
				_, err := b.admin.Publish(t.Context(), "bookings.stranger", nil)
				require.NoError(t, err)
			}
			for range 2 {
				requireLost(t, s, of(3, sinktest.Deliveries(12, 4)), "it acknowledged message 12, and has another one there")
			}
			requireDelivered(t, s, of(4, sinktest.Deliveries(6, 10)))
		})
	}
}
