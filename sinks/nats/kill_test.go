package nats_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// TestDeliverBatch_AStreamThatIsSetBackIsSaid: what was acknowledged since the copy was made is lost there.
func TestDeliverBatch_AStreamThatIsSetBackIsSaid(t *testing.T) {
	t.Parallel()
	server := brokertest.NewNATS(t, broker.NATSConfig{})
	s := sinktest.Made(t, nats.New, nats.Config{
		URL: server.URL(server.Addr()), Stream: stream, Subject: "bookings.{{.Type}}", Declare: &nats.Declare{Subjects: []string{"bookings.>"}},
	})
	sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(1, 20)))
	require.NoError(t, server.Kill(t.Context()))
	require.NoError(t, server.Snapshot(t.Context()))
	require.NoError(t, server.Start(t.Context()))
	next := func(first, n int, epoch cursor.Epoch) error {
		var err error
		require.Eventually(t, func() bool { // until it has noticed that the server is another one
			_, err = s.DeliverBatch(t.Context(), sinktest.Under(epoch, sinktest.Deliveries(first, n)))
			return err == nil || processor.IsRefused(err)
		}, 30*time.Second, 10*time.Millisecond)
		return err
	}
	require.NoError(t, next(21, 20, 3), "a server that was killed has it all")
	require.NoError(t, server.Kill(t.Context()))
	require.NoError(t, server.PutBack(t.Context()))
	require.NoError(t, server.Start(t.Context()))
	for range 2 {
		require.ErrorContains(t, next(41, 5, 3), "the stream was set back: it acknowledged message")
	}
	require.NoError(t, next(41, 5, 4), "an operator has decided")
}

// The server is a process of its own, killed three times with messages on their way.
func TestDeliverBatch_AServerThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	server := brokertest.NewNATS(t, broker.NATSConfig{})
	s := sinktest.Made(t, nats.New, nats.Config{
		URL: server.URL(server.Addr()), Stream: stream, Subject: "bookings.{{.Type}}",
		Declare: &nats.Declare{Subjects: []string{"bookings.>"}}, Window: 50,
	})

	const records, kills = 6000, 3
	killed, done := make(chan int, records), make(chan struct{})
	runs, gone := context.WithCancelCause(t.Context())
	defer gone(nil)
	go func() {
		defer close(done)
		for range kills {
			<-killed
			err := server.Kill(t.Context())
			if err == nil {
				err = server.Start(t.Context())
			}
			if err != nil {
				gone(err)
				return
			}
		}
	}()
	failures, until := 0, time.Now().Add(5*time.Minute)
	for acknowledged := 0; acknowledged < records; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		n, err := s.DeliverBatch(ctx, sinktest.Deliveries(acknowledged+1, min(100, records-acknowledged)))
		cancel()
		for next := acknowledged; next < acknowledged+n; next++ {
			if next%1500 == 1000 {
				killed <- next
			}
		}
		acknowledged += n
		if err != nil {
			require.False(t, processor.IsPermanent(err), err)
			require.NoError(t, context.Cause(runs), "the server was killed, and does not start again")
			require.True(t, time.Now().Before(until), err)
			failures++
			time.Sleep(10 * time.Millisecond) // as the processor's back-off
		}
	}
	waittest.Receive(t, done, "the last kill is over")
	require.NoError(t, context.Cause(runs))
	require.GreaterOrEqual(t, failures, kills, "no kill met a delivery")
	b := &bench{addr: server.Addr()}
	sequences := map[string]bool{}
	next := 1
	for _, m := range b.read(t) {
		require.Equal(t, fmt.Sprint(next), m.Headers["ordered-sequence"])
		require.False(t, sequences[m.Headers["ordered-dedup-key"]])
		sequences[m.Headers["ordered-dedup-key"]] = true
		next++
	}
	require.Equal(t, records+1, next)
}
