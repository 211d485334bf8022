package kafka_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// soon is well above the time-outs of these tests, and below the ten seconds that the
// client waits by itself.
const soon = 8 * time.Second

// silent is an address that answers nothing.
func silent(t *testing.T) (address string, heard <-chan bool) {
	connected := make(chan bool, 100)
	return tcptest.Serve(t, func(conn net.Conn) {
		connected <- true
		_, _ = io.Copy(io.Discard, conn)
	}), connected
}

func TestConnect_ASilentBrokerIsNotWaitedForLongerThanTimeout(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{"plain": "", "transactional": "x"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, _ := silent(t)
			s, err := kafka.New(kafka.Config{Brokers: []string{address}, Topic: "t", Timeout: 200 * time.Millisecond, TransactionalID: id})
			require.NoError(t, err)
			began := time.Now()
			_, err = s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
			require.ErrorContains(t, err, "nothing was sent: no answer within 200ms")
			require.ErrorContains(t, err, "or raise timeout")
			require.Equal(t, "unreached", sinktest.Class(err), err)
			require.NoError(t, s.Close())
			require.Less(t, time.Since(began), soon)
		})
	}
}

func TestConnect_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	address, connected := silent(t)
	s, err := kafka.New(kafka.Config{Brokers: []string{address}, Topic: "t", Timeout: time.Hour})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-connected
		cancel()
	}()
	began := time.Now()
	_, err = s.DeliverBatch(ctx, sinktest.Deliveries(1, 1))
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(began), soon)
}

// Whatever the broker no longer answers: records, or the commit.
func TestDeliverBatch_ASilentBrokerIsNotWaitedForLongerThanTimeout(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafka.Config){"plain": nil, "transactional": transactional} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, 1, nil)
			// A busy machine delivers the first record in that, and soon is as far from it.
			s := b.sink(t, func(c *kafka.Config) { c.Timeout = 4 * time.Second }, change)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
			b.link.Stall()
			for range 2 { // over the link, and over one that it tries to make
				began := time.Now()
				_, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 1))
				require.ErrorContains(t, err, "no answer within 4s")
				require.Less(t, time.Since(began), soon)
			}
			began := time.Now()
			require.NoError(t, s.Close())
			require.Less(t, time.Since(began), soon)
		})
	}
}

// The coordinator takes the commit and hangs up. Asked again, it says no: another
// producer has come since.
func TestDeliverBatch_ANoToACommitThatWasAskedForTwiceLeavesItOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost    int // answers, before the no
		unknown bool
	}{"asked once": {0, false}, "asked twice": {1, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			asked := 0
			cluster.ControlKey(kmsg.EndTxn.Int16(), func(request kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				if asked++; asked <= c.lost {
					return nil, io.EOF, true
				}
				response := request.ResponseKind().(*kmsg.EndTxnResponse)
				response.ErrorCode = kerr.ProducerFenced.Code
				return response, nil, true
			})
			n, err := sinktest.Deliver(t, sinkOf(t, cluster, transactional), sinktest.Deliveries(1, 2))
			require.Zero(t, n)
			require.ErrorIs(t, err, kerr.ProducerFenced)
			require.Equal(t, c.unknown, outcome.IsUnknown(err), err)
			require.True(t, processor.IsUnreached(err), "whoever did it, it was not the record: %v", err)
			require.Greater(t, processor.RetryAfterDelay(err), 5*time.Second)
		})
	}
}

// TestDeliverBatch_ACallThatHasEndedEndsAsSuchWhateverTheClientSays: the end of a call goes to the client
// and to the window at once, and on a busy machine the client said first that it was closed.
func TestDeliverBatch_ACallThatHasEndedEndsAsSuchWhateverTheClientSays(t *testing.T) {
	t.Parallel()
	address, _ := silent(t)
	call, end := context.WithTimeoutCause(t.Context(), 0, fmt.Errorf("no answer within 0s: %w", context.DeadlineExceeded))
	defer end()
	require.EqualError(t, kafka.EndBefore(call, t.Context(), address), "no answer within 0s: context deadline exceeded")
	require.ErrorIs(t, kafka.EndBefore(t.Context(), t.Context(), address), kgo.ErrClientClosed, "for another reason")
	window, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrShortWrite)
	require.Equal(t, io.ErrShortWrite, kafka.EndBefore(call, window, address), "the window ended before its call, and had a reason")
}
