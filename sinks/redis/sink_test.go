package redis_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/redis"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestSink_KeepsThePromisesOfAllSinks(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 20} {
		t.Run(fmt.Sprintf("window %d", n), func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, func(t *testing.T) sinktest.Subject {
				b := newBench(t)
				return sinktest.Subject{
					Sink:     b.sink(t, window(n)),
					Received: b.received,
					Header:   b.headers,
					Deny: func(t testing.TB) (processor.BatchSink, func()) {
						return b.sink(t, func(c *redis.Config) { c.URL = strings.Replace(c.URL, password, "wrong-password", 1) }), func() {}
					},
					Away:     func(testing.TB) func() { return b.link.Away() },
					Silence:  func(testing.TB) { b.link.Stall() },
					Lose:     sinktest.Lose(b.link, sinktest.Payload),
					Another:  func(t testing.TB, _ string) processor.BatchSink { return b.sink(t, window(n)) },
					Empty:    func(t testing.TB) { b.ask(t, "XTRIM", stream, "MAXLEN", "0") },
					Notes:    true,
					TooLarge: maxBulk,
					Order:    true,
				}
			})
		})
	}
}

func TestDeliverBatch_AnEntryCarriesTheRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := sinktest.Deliveries(9007199254740993, 1)[0] // more than a double of Lua holds
	d.Headers = map[string]string{"traceparent": "00-1", "ordered-epoch": "99", "payload": "x", "content-type": "x", "": "empty"}
	b.ask(t, "HSET", state, "process", "sms", "epoch", "3", "worker", "", "sequence", "9007199254740992")
	sinktest.Delivered(t, b.sink(t, nil), []processor.Delivery{d})
	require.Equal(t, []map[string]string{{
		"ordered-version": "1", "ordered-process": "sms", "ordered-origin": "here", "ordered-sequence": "9007199254740993", "ordered-epoch": "3", "ordered-attempt": "1",
		"ordered-position": string(d.Position), "ordered-dedup-key": d.DedupKey(), "ordered-key": "customer", "ordered-type": "made",
		"ordered-created-at": d.CreatedAt.Format(time.RFC3339Nano), "content-type": "application/json", "traceparent": "00-1", "": "empty",
		"payload": string(d.Payload),
	}}, b.entries(t, stream))
	require.Equal(t, "9007199254740993", b.ask(t, "HGET", state, "sequence"))
}

// The answer to a window is lost. Whoever sends it again, it is there once.
func TestDeliverBatch_AWindowWhoseAnswerIsLostIsThereOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, window(10))
	sinktest.Delivered(t, s, under(3, "one", sinktest.Deliveries(1, 5)))
	b.link.Hold(link.Server, sinktest.Payload)
	lost := make(chan error, 1)
	go func() {
		_, err := s.DeliverBatch(t.Context(), under(3, "one", sinktest.Deliveries(6, 8)))
		lost <- err
	}()
	require.Eventually(t, func() bool { return len(b.entries(t, stream)) == 13 }, time.Minute, 10*time.Millisecond)
	b.link.Away()()
	b.link.Release()
	err := waittest.Receive(t, lost, "the window is given up")
	require.ErrorContains(t, err, "Redis may have the record")
	require.True(t, outcome.IsUnknown(err), err)
	another := under(4, "two", sinktest.Deliveries(4, 14)) // its cursor had not advanced past 3
	another[5].Payload = []byte(`"changed meanwhile"`)
	sinktest.Delivered(t, b.sink(t, window(10)), another)
	require.Equal(t, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", b.log(t, stream))
	require.NotContains(t, b.entries(t, stream)[8]["payload"], "changed", "the version that came first stays")
}

// What comes after a record that Redis refuses is in the same pipeline, which Redis runs to its end.
func TestDeliverBatch_NothingIsAppendedAfterARefusal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ask(t, "SET", "bookings:refused", "x")
	s := b.sink(t, func(c *redis.Config) { c.Window, c.Stream = 10, "bookings:{{.Type}}" })
	ds := sinktest.Deliveries(1, 8)
	ds[2].Type = "refused"
	n, err := sinktest.Deliver(t, s, ds)
	require.Equal(t, 2, n)
	require.ErrorContains(t, err, "is not a stream")
	require.True(t, processor.IsPermanent(err), err)
	require.False(t, outcome.IsUnknown(err), err)
	require.Equal(t, "1 2", b.log(t, "bookings:made"))
	b.ask(t, "DEL", "bookings:refused")
	sinktest.Delivered(t, s, under(4, "", ds[2:]))
	require.Equal(t, "3", b.log(t, "bookings:refused"))
	require.Equal(t, "1 2 4 5 6 7 8", b.log(t, "bookings:made"))
}

// A script that is gone is sent again, with all that was to be sent.
func TestDeliverBatch_AScriptThatIsGoneIsSentAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, window(4))
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 4))
	b.ask(t, "SCRIPT", "FLUSH")
	sinktest.Delivered(t, s, sinktest.Deliveries(5, 6))
	require.Equal(t, "1 2 3 4 5 6 7 8 9 10", b.log(t, stream))
}

func TestDeliverBatch_AServerThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, durable...)
	s := b.sink(t, window(7))
	const records = 600
	ds := sinktest.Deliveries(1, records)
	killed := make(chan error, 3)
	kills, until := 0, time.Now().Add(5*time.Minute)
	for len(ds) > 0 {
		if len(ds) < records*(3-kills)/4 && kills < cap(killed) {
			kills++
			process := b.process
			go func() { killed <- process.Stop(context.Background(), syscall.SIGKILL) }()
		}
		n, err := sinktest.Deliver(t, s, ds[:min(20, len(ds))])
		ds = ds[n:]
		if err == nil {
			continue
		}
		require.False(t, processor.IsPermanent(err) || processor.IsRefused(err), err)
		require.True(t, time.Now().Before(until), err)
		select {
		case <-b.process.Done():
			b.start(t)
		case <-time.After(10 * time.Millisecond):
		}
	}
	for range kills {
		require.NoError(t, waittest.Receive(t, killed, "the server is killed"))
	}
	if _, err := b.try("PING"); err != nil {
		b.start(t)
	}
	got := b.received(t)
	require.Len(t, got, records)
	for i, m := range got {
		require.Equal(t, sinktest.Deliveries(i+1, 1)[0].DedupKey(), m.DedupKey)
	}
}

func TestDeliverBatch_MaxLenBoundsTheStream(t *testing.T) {
	t.Parallel()
	b := newBench(t, "--stream-node-max-entries", "10")
	sinktest.Delivered(t, b.sink(t, func(c *redis.Config) { c.MaxLen, c.Window = 20, 50 }), sinktest.Deliveries(1, 200))
	require.Less(t, len(b.entries(t, stream)), 40)
	require.Equal(t, "200", b.ask(t, "HGET", state, "sequence"))
}

// A connection that Redis closes while it is idle is none that was lost under a record.
func TestDeliverBatch_AnIdleConnectionThatIsGoneIsMadeAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	b.link.Cut()
	time.Sleep(1100 * time.Millisecond) // it is tried once it was idle for a second
	sinktest.Delivered(t, s, sinktest.Deliveries(2, 1))
}

func TestDeliverBatch_SaysWhereNobodyListens(t *testing.T) {
	t.Parallel()
	address := tcptest.Closed(t)
	s, err := redis.New(redis.Config{URL: "redis://u:CANARY@" + address, Stream: stream})
	require.NoError(t, err)
	_, err = sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "nothing was sent")
	require.ErrorContains(t, err, "connection refused; start Redis there, or correct host and port in url")
	require.NotContains(t, err.Error(), "CANARY")
	require.True(t, processor.IsUnreached(err), err)
}
