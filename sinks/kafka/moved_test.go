package kafka_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// setBackUnder delivers a record, and puts an older copy of the broker's data back while a request of that kind is on its way. It never
// arrives: the client asks again over another connection, within the same call, once meanwhile has been called.
func (b *mover) setBackUnder(t testing.TB, s *kafka.Sink, kind kmsg.Key, copied string, sequence int, meanwhile func()) (int, error) {
	t.Helper()
	held := b.link.Hold(link.Client, func(data []byte) bool { return len(data) > 5 && data[4] == 0 && data[5] == byte(kind) })
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := s.DeliverBatch(context.WithoutCancel(t.Context()), sinktest.Deliveries(sequence, 1))
		done <- result{n, err}
	}()
	select {
	case <-held:
	case r := <-done:
		require.FailNow(t, "nothing was held", "%v", r.err)
	}
	b.dialing.Lock()
	b.link.Cut()
	b.link.Release()
	b.setBack(t, copied)
	meanwhile()
	b.dialing.Unlock()
	r := waittest.Receive(t, done, "the delivery ends")
	return r.n, r.err
}

// mover is a bench whose sink waits with its connections while the broker is away: the client gives up the end of a transaction for which
// it finds no broker.
type mover struct {
	*bench
	dialing sync.RWMutex
}

func (b *mover) sink(t testing.TB, change func(*kafka.Config)) *kafka.Sink {
	t.Helper()
	s := b.bench.sink(t, func(c *kafka.Config) { c.Timeout = 2 * time.Minute }, change)
	s.Dial(func(ctx context.Context, network, _ string) (net.Conn, error) {
		b.dialing.RLock()
		defer b.dialing.RUnlock()
		return new(net.Dialer).DialContext(context.WithoutCancel(ctx), network, b.link.Addr())
	})
	return s
}

// The copy knows nothing of the producer, so it takes whatever number comes.
func TestDeliverBatch_ALossIsSaidWhereTheClientGoesOnOverAnotherConnection(t *testing.T) {
	t.Parallel()
	b := &mover{bench: ownBench(t)}
	b.others(t, 1) // by a producer that the copy knows
	copied := b.copied(t)
	s := b.sink(t, nil)
	deliverAll(t, s, 1, 3)
	n, err := b.setBackUnder(t, s, kmsg.Produce, copied, 4, func() { b.others(t, 30) })
	require.Zero(t, n)
	require.ErrorContains(t, err, "has acknowledged offset 3, and another record is there: an older copy of the broker's data was put back")
	require.True(t, processor.IsRefused(err), err)
	requireLoss(t, s, 4, "has acknowledged offset 3")
}

// The coordinator of the copy has the commit before under the same epoch, and takes the one that is asked for again for that.
func TestDeliverBatch_ACommitThatAnOlderCopyAnswersDoesNotCount(t *testing.T) {
	t.Parallel()
	b := &mover{bench: ownBench(t)}
	b.others(t, 1)
	s := b.sink(t, transactional)
	s.Limit(kversion.V3_9_0()) // from then on each transaction has an epoch of its own
	deliverAll(t, s, 1, 3)
	copied := b.copied(t)
	n, err := b.setBackUnder(t, s, kmsg.EndTxn, copied, 4, func() { b.others(t, 30) })
	require.Zero(t, n)
	require.ErrorContains(t, err, "the record is not where the broker acknowledged it")
	require.Equal(t, "outage", sinktest.Class(err), err)
	deliverAll(t, s, 4, 2)
	require.Regexp(t, "^ *1 2 3 +4 5$", sequences(b.read(t)))
}

// The copy gives the producer's id to a stranger, and takes what is sent again for the stranger's record.
func TestDeliverBatch_ARecordThatIsTakenForAStrangersDoesNotCount(t *testing.T) {
	t.Parallel()
	b := &mover{bench: ownBench(t)}
	copied := b.copied(t)
	s := b.sink(t, nil)
	var ours int64
	s.OnAcknowledged(func(r *kgo.Record) { ours = r.ProducerID })
	var strangers int64
	n, err := b.setBackUnder(t, s, kmsg.Produce, copied, 1, func() {
		r, err := b.client.ProduceSync(t.Context(), &kgo.Record{Topic: b.topic, Value: []byte("a stranger's")}).First()
		require.NoError(t, err)
		strangers = r.ProducerID
	})
	require.Equal(t, strangers, ours, "the copy hands out its ids once more")
	require.Zero(t, n)
	require.ErrorContains(t, err, "the record is not where the broker acknowledged it")
	require.Equal(t, "outage", sinktest.Class(err), err)
	deliverAll(t, s, 1, 2)
	require.Regexp(t, "^ *1 2$", sequences(b.read(t)))
}

// A window looks only if a connection was lost under it, or before it. What nothing can be said of counts.
func TestDeliverBatch_AWindowLooksOnlyAfterALostConnection(t *testing.T) {
	t.Parallel()
	for name, change := range plainAndTransactional {
		for deny, code := range map[string]*kerr.Error{"": nil, " without the right to read": kerr.TopicAuthorizationFailed} {
			t.Run(name+deny, func(t *testing.T) {
				t.Parallel()
				cluster := fake(t)
				l := tcptest.Link(t, cluster.ListenAddrs()[0])
				s := sinkOf(t, cluster, change)
				s.Redirect(l.Addr())
				s.Limit(kversion.V3_9_0())
				ends, looks := hear(cluster, kmsg.ListOffsets), hear(cluster, kmsg.Fetch)
				if code != nil {
					answerLook(cluster, kmsg.Fetch, code, -1)
				}
				looked := func() int { return len(ends.all()) + len(looks.all()) }
				send := func(sequence int) (asked int) {
					before := looked()
					sinktest.Delivered(t, s, sinktest.Deliveries(sequence, 3))
					return looked() - before
				}
				require.Zero(t, send(1))
				require.Zero(t, send(4))
				l.Cut() // while nothing is sent
				require.Positive(t, send(7))
				require.Zero(t, send(10))
				kinds := []kmsg.Key{kmsg.Produce}
				if name != "plain" {
					kinds = append(kinds, kmsg.EndTxn)
				}
				for i, kind := range kinds {
					var hungUp atomic.Bool
					cluster.ControlKey(kind.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
						cluster.KeepControl()
						if hungUp.CompareAndSwap(false, true) {
							return nil, errors.New("it hangs up"), true
						}
						return nil, nil, false
					})
					require.Positive(t, send(13+6*i))
					require.Zero(t, send(16+6*i))
				}
			})
		}
	}
}

// Nothing is lost then: the client closes what was idle for long, and what it finds over the next connection may be an older copy. Others
// have written past the gap, and the copy does not know the producer.
func TestDeliverBatch_ALossIsSaidWhereTheClientHadClosedAnIdleConnection(t *testing.T) {
	t.Parallel()
	for name, change := range plainAndTransactional {
		for of, before := range map[string]func(*testing.T, *kafka.Sink){
			"of its link": func(*testing.T, *kafka.Sink) {},
			"of the link before": func(t *testing.T, s *kafka.Sink) {
				require.NoError(t, s.Close())
				sinktest.Delivered(t, s, typed(3, "a")) // the link looks at both, and writes to one
			},
		} {
			t.Run(name+" "+of, func(t *testing.T) {
				t.Parallel()
				cluster := old(t, "t.a", "t.b")
				s := sinkOf(t, cluster, func(c *kafka.Config) { change(c); c.Topic = "t.{{.Type}}" })
				connections := s.CloseIdle(500 * time.Millisecond)
				sinktest.Delivered(t, s, typed(1, "a", "b"))
				before(t, s)
				require.Eventually(t, func() bool { return connections() == 0 }, time.Minute, 10*time.Millisecond)
				makeAnew(t, cluster, "t.b")
				othersWrite(t, clientOf(t, cluster.ListenAddrs()...), "t.b", 5)
				n, err := sinktest.Deliver(t, s, typed(4, "b"))
				require.Zero(t, n)
				require.ErrorContains(t, err, `partition 0 of topic "t.b" has acknowledged offset 0, and another record is there`)
				require.True(t, processor.IsRefused(err), err)
				sinktest.Delivered(t, s, sinktest.Under(decided, typed(4, "b", "a")))
			})
		}
	}
}
