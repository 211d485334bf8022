package kafka_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// The first connection takes more than half of the time. Records that were sent then would be there without an answer in time, at each
// attempt once more; and a connection that was made anew for each would never send.
func TestDeliverBatch_ALinkThatTookMostOfTheTimeSendsInTheNextCall(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafka.Config){"plain": func(*kafka.Config) {}, "with transactions": transactional} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			opened, produced := hear(cluster, kmsg.InitProducerID), hear(cluster, kmsg.Produce)
			s := sinkOf(t, cluster, func(c *kafka.Config) { change(c); c.Timeout = 4 * time.Second })
			var made atomic.Bool
			s.Dial(func(ctx context.Context, network, address string) (net.Conn, error) {
				if !made.Swap(true) {
					time.Sleep(2500 * time.Millisecond)
				}
				return new(net.Dialer).DialContext(ctx, network, address)
			})
			n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 2))
			require.Zero(t, n)
			require.ErrorContains(t, err, "nothing was sent: the connection took 2.")
			require.ErrorContains(t, err, "of 4s; the connection is kept, and the next call sends. Raise timeout")
			require.Equal(t, "unreached", sinktest.Class(err), err)
			require.Empty(t, produced.all())
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
			require.Len(t, opened.all(), 1, "the link was kept")
		})
	}
}

// aWay takes so long in each direction.
func aWay(target string, half time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		time.Sleep(2 * half)
		far, err := new(net.Dialer).DialContext(ctx, network, target)
		if err != nil {
			return nil, err
		}
		near, inner := net.Pipe()
		go carry(inner, far, half)
		go carry(far, inner, half)
		return near, nil
	}
}

// carry takes what comes from one connection to another one, each piece late.
func carry(from, to net.Conn, late time.Duration) {
	type piece struct {
		due  time.Time
		data []byte
	}
	pieces := make(chan piece, 1000)
	go func() {
		defer func() { _ = to.Close() }()
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			_, _ = to.Write(p.data) // the reader sees the end of what is closed
		}
	}()
	defer close(pieces)
	for {
		data := make([]byte, 32<<10)
		n, err := from.Read(data)
		pieces <- piece{time.Now().Add(late), data[:n]}
		if err != nil {
			return
		}
	}
}

// The link and its first record need 5.2 s together, and each needs less than timeout.
func TestDeliverBatch_ALongWayWithAShortTimeoutMakesNoCopies(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, nil)
	s := b.sink(t, func(c *kafka.Config) { c.Timeout = 5100 * time.Millisecond })
	s.Dial(aWay(b.broker.Addr(), 200*time.Millisecond))
	ds := sinktest.Deliveries(1, 100)
	for range 8 {
		n, err := sinktest.Deliver(t, s, ds)
		require.False(t, outcome.IsUnknown(err), err)
		if ds = ds[n:]; len(ds) == 0 {
			break
		}
	}
	require.Equal(t, upTo(100), sequences(b.read(t)))
}

// The ids of topics are asked for over a link that was just made.
func TestDeliverBatch_ATimeThatEndsBeforeAnythingIsSentSaysToRaiseIt(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	var opened atomic.Bool
	cluster.ControlKey(kmsg.InitProducerID.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		opened.Store(true)
		return nil, nil, false
	})
	cluster.ControlKey(kmsg.Metadata.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return nil, nil, opened.Load() // silent from then on
	})
	s := sinkOf(t, cluster, func(c *kafka.Config) { c.Timeout = 2 * time.Second })
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "nothing was sent: no answer within 2s")
	require.ErrorContains(t, err, "or raise timeout: it may be too short")
	require.True(t, opened.Load())
	require.Equal(t, "unreached", sinktest.Class(err), err)
}
