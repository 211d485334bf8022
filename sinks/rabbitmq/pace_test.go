package rabbitmq_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

const (
	connectionCloseOK = 10<<16 | 51
	confirmSelectOK   = 85<<16 | 11
	basicPublish      = 60<<16 | 40
	basicAck          = 60<<16 | 80
	basicNack         = 60<<16 | 120
)

// distant is a broker at the end of a long way.
type distant struct {
	away   time.Duration // there and back
	cutAt  atomic.Int64  // the publishing at which the connection is lost, once, before any confirm; 0: none
	nackAt atomic.Int64  // the publishing that is refused; 0: none
	poison []byte        // the connection ends with each publishing that has it; nil: none

	published, connections atomic.Int64
}

// serve confirms what is published.
func (b *distant) serve(conn net.Conn) {
	b.connections.Add(1)
	type answer struct {
		due  time.Time
		send func()
	}
	answers := make(chan answer, 10_000)
	var writer sync.WaitGroup
	writer.Go(func() {
		for a := range answers {
			time.Sleep(time.Until(a.due))
			a.send()
		}
	})
	defer writer.Wait()
	defer close(answers)
	later := func(channel uint16, method uint32, arguments ...[]byte) {
		answers <- answer{time.Now().Add(b.away), func() { send(conn, channel, method, arguments...) }}
	}
	_, _ = io.ReadFull(conn, make([]byte, len("AMQP0091")))
	long := func(text string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
	}
	later(0, connectionStart, []byte{0, 9}, long(""), long("PLAIN"), long("en_US"))
	for tag := uint64(0); ; {
		var frame bytes.Buffer
		channel, method, err := receive(io.TeeReader(conn, &frame))
		switch {
		case err != nil:
			return
		case method == connectionStartOK:
			later(0, connectionTune, []byte{0, 10, 0, 2, 0, 0, 0, 0})
		case method == connectionOpen:
			later(0, connectionOpenOK, []byte{0})
		case method == channelOpen:
			later(channel, channelOpenOK, make([]byte, 4))
		case method == confirmSelect:
			later(channel, confirmSelectOK)
		case method == connectionClose:
			later(0, connectionCloseOK)
		case method == basicPublish:
			n, word := b.published.Add(1), uint32(basicAck)
			if b.cutAt.CompareAndSwap(n, 0) || b.poison != nil && bytes.Contains(frame.Bytes(), b.poison) {
				_ = conn.Close()
				return
			}
			if b.cutAt.Load() > 0 {
				continue
			}
			if b.nackAt.CompareAndSwap(n, 0) {
				word = basicNack
			}
			tag++
			later(channel, word, binary.BigEndian.AppendUint64(nil, tag), []byte{0})
		}
	}
}

// sink publishes to the broker by the records' types.
func (b *distant) sink(t *testing.T, window int) *rabbitmq.Sink {
	t.Helper()
	address := tcptest.Serve(t, b.serve)
	return sinktest.Made(t, rabbitmq.New, rabbitmq.Config{URL: "amqp://u:p@" + address + "/", RoutingKey: "{{.Type}}", Window: window})
}

// deliver is one call within a time.
func deliver(t *testing.T, s *rabbitmq.Sink, within time.Duration, ds []processor.Delivery) (int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return s.DeliverBatch(ctx, ds)
}

// One at a time, the records of the window would take 5 s.
func TestDeliverBatch_ALostConnectionBringsTheWindowBack(t *testing.T) {
	t.Parallel()
	const window = 100
	b := &distant{away: 50 * time.Millisecond}
	s := b.sink(t, window)
	b.cutAt.Store(window)
	n, err := deliver(t, s, time.Minute, sinktest.Deliveries(1, window))
	require.True(t, outcome.IsUnknown(err), err)
	require.Zero(t, n)
	n, err = deliver(t, s, 3*time.Second, sinktest.Deliveries(1, window))
	require.NoError(t, err)
	require.Equal(t, window, n)
}

// One at a time, the records of the window take longer than a call has.
func TestDeliverBatch_ACallEndsBeforeItsTimeDoes(t *testing.T) {
	t.Parallel()
	const window = 10
	b := &distant{away: 200 * time.Millisecond}
	s := b.sink(t, window)
	b.nackAt.Store(1)
	ds := sinktest.Deliveries(1, window)
	_, err := deliver(t, s, time.Minute, ds)
	require.True(t, outcome.IsAboutRecord(err), err)
	n, err := deliver(t, s, 1500*time.Millisecond, ds)
	require.True(t, outcome.IsNoTime(err), err)
	require.False(t, outcome.IsUnknown(err) || processor.IsUnreached(err), err)
	require.Positive(t, n)
	require.Less(t, n, window)
	require.EqualValues(t, window+n, b.published.Load(), "nothing is on its way")
	m, err := deliver(t, s, time.Minute, ds[n:])
	require.NoError(t, err)
	require.Equal(t, window, n+m)
	require.EqualValues(t, 2*window, b.published.Load(), "none came again")
	require.EqualValues(t, 1, b.connections.Load())
}

// Others use up one attempt at most.
func TestDeliverBatch_ARecordThatEndsEachConnectionIsFound(t *testing.T) {
	t.Parallel()
	b := &distant{poison: []byte("poison")}
	s := b.sink(t, 60)
	ds := sinktest.Deliveries(1, 60)
	const poison = 40
	ds[poison].Type = "poison"
	attempts := map[int]int{}
	for at := 0; attempts[poison] < 3; {
		n, err := deliver(t, s, time.Minute, ds[at:])
		require.True(t, outcome.IsUnknown(err), err)
		at += n
		attempts[at]++
		require.True(t, at == poison || attempts[at] == 1, "record %d has attempts as another one", at)
	}
}
