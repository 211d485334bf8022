package nats_test

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// Hundreds of messages of others stand before the claim, and each word to the server
// takes its time.
func TestTakeOver_OverAWideLinkReadsABusyStream(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.StreamConfig) { c.Duplicates = 100 * time.Millisecond })
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Under(3, sinktest.Deliveries(1, 3)))
	for range 900 {
		_, err := b.admin.PublishAsync("bookings.stranger", nil)
		require.NoError(t, err)
	}
	waittest.Receive(t, b.admin.PublishAsyncComplete(), "the stream has all messages of the stranger")
	b.forget(t)
	l, over := b.over(t)
	var pieces atomic.Int32
	l.OnData(func(fromServer bool, _ []byte) {
		if !fromServer {
			pieces.Add(1)
			time.Sleep(10 * time.Millisecond)
		}
	})
	sinktest.Delivered(t, b.sink(t, over), sinktest.Under(4, sinktest.Deliveries(2, 3)))
	require.Less(t, pieces.Load(), int32(450), "each message was waited for by itself")
	require.Equal(t, "1/3 2/3 3/3 4/4", b.log(t, "ordered-epoch"))
}

// TestTakeOver_ReadsFromTheLeaderAlone: with allow_direct a replica answers, or a mirror, which may lack what was acknowledged.
func TestTakeOver_ReadsFromTheLeaderAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.StreamConfig) { c.AllowDirect, c.Duplicates = true, 100*time.Millisecond })
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Under(3, sinktest.Deliveries(1, 3)))
	b.forget(t)
	l, over := b.over(t)
	var leaders, direct atomic.Int32
	l.OnData(func(fromServer bool, data []byte) {
		if !fromServer {
			leaders.Add(int32(bytes.Count(data, []byte("$JS.API.STREAM.MSG.GET."))))
			direct.Add(int32(bytes.Count(data, []byte("$JS.API.DIRECT."))))
		}
	})
	sinktest.Delivered(t, b.sink(t, over), sinktest.Under(4, sinktest.Deliveries(2, 3)))
	require.NotZero(t, leaders.Load())
	require.Zero(t, direct.Load())
	require.Equal(t, "1/3 2/3 3/3 4/4", b.log(t, "ordered-epoch"))
}

// TestDeliverBatch_AStreamThatIsRestoredUnderAWorkerIsSaid: its claim stands there, and the worker stays connected.
func TestDeliverBatch_AStreamThatIsRestoredUnderAWorkerIsSaid(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(1, 2)))
	claim, err := b.stream.GetLastMsgForSubject(t.Context(), fence)
	require.NoError(t, err)
	config := b.stream.CachedInfo().Config
	sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(3, 4)))
	require.NoError(t, b.admin.DeleteStream(t.Context(), stream))
	require.Eventually(t, func() bool { // the server removes the files of the other one in the background, and may have no room for these meanwhile
		b.stream, err = b.admin.CreateStream(t.Context(), config) // as if its first message was all that the copy had
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	again := &client.Msg{Subject: fence, Header: claim.Header}
	again.Header.Del(jetstream.ExpectedLastSubjSeqHeader)
	_, err = b.admin.PublishMsg(t.Context(), again)
	require.NoError(t, err)
	n, err := sinktest.Deliver(t, s, sinktest.Under(3, sinktest.Deliveries(7, 1)))
	require.Zero(t, n)
	require.ErrorContains(t, err, "the stream was set back")
	require.True(t, processor.IsRefused(err))
	sinktest.Delivered(t, s, sinktest.Under(4, sinktest.Deliveries(7, 1)))
	require.Equal(t, "7/3", b.log(t, "ordered-epoch"), "it had landed")
}

// TestTakeOver_ATailOfLargeMessagesIsReadInTheEnd: the client drops what it cannot hold.
func TestTakeOver_ATailOfLargeMessagesIsReadInTheEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Under(3, sinktest.Deliveries(1, 1)))
	for _, strangers := range []struct{ count, size int }{{150, 900 << 10}, {520, 1}} {
		for range strangers.count {
			_, err := b.admin.Publish(t.Context(), "bookings.stranger", make([]byte, strangers.size))
			require.NoError(t, err)
		}
	}
	s := b.sink(t, nil)
	require.Eventually(t, func() bool {
		n, _ := s.DeliverBatch(t.Context(), sinktest.Under(4, sinktest.Deliveries(2, 1)))
		return n == 1
	}, 5*time.Minute, time.Millisecond)
}

// TestTakeOver_ATailOfLargeMessagesIsReadOverASlowLink: 8 of them take longer than the timeout.
func TestTakeOver_ATailOfLargeMessagesIsReadOverASlowLink(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Under(3, sinktest.Deliveries(1, 1)))
	for range 40 {
		_, err := b.admin.Publish(t.Context(), "bookings.stranger", make([]byte, 300<<10))
		require.NoError(t, err)
	}
	l, over := b.over(t)
	l.OnData(func(fromServer bool, data []byte) {
		if fromServer {
			time.Sleep(time.Duration(len(data)) * time.Second / (2 << 20)) // 2 MiB a second
		}
	})
	s := b.sink(t, func(c *nats.Config) { over(c); c.Timeout = time.Second })
	require.Eventually(t, func() bool {
		n, _ := s.DeliverBatch(t.Context(), sinktest.Under(4, sinktest.Deliveries(2, 1)))
		return n == 1
	}, 5*time.Minute, time.Millisecond)
}

// TestTakeOver_FindsAWholeWindowBehindMessagesOfOthers: a worker died with all of it on its way, and the server has forgotten the ids.
func TestTakeOver_FindsAWholeWindowBehindMessagesOfOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.StreamConfig) { c.Duplicates = 100 * time.Millisecond })
	sinktest.Delivered(t, b.sink(t, window(500)), sinktest.Under(3, sinktest.Deliveries(1, 1300)))
	for range 1200 {
		_, err := b.admin.PublishAsync("bookings.stranger", nil)
		require.NoError(t, err)
	}
	waittest.Receive(t, b.admin.PublishAsyncComplete(), "the stream has all messages of the stranger")
	b.forget(t)
	sinktest.Delivered(t, b.sink(t, window(500)), sinktest.Under(4, sinktest.Deliveries(2, 1300)))
	require.Equal(t, 1301, strings.Count(b.log(t, "ordered-epoch"), "/"))
}

// deleted has a stream that a sink declared and wrote to, and that someone then deletes.
func deleted(t testing.TB, s *nats.Sink, admin jetstream.JetStream) {
	t.Helper()
	sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(1, 2)))
	require.NoError(t, admin.DeleteStream(t.Context(), stream))
}

func TestDeclare_AStreamThatIsGoneIsSaidBeforeItIsMadeAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	require.NoError(t, b.admin.DeleteStream(t.Context(), stream))
	declared := func(c *nats.Config) { c.User, c.Password = user, password }
	deleted(t, declaring(t, b.server, declared), b.admin)

	next := declaring(t, b.server, declared)
	n, err := sinktest.Deliver(t, next, sinktest.Under(4, sinktest.Deliveries(3, 2)))
	require.Zero(t, n)
	require.ErrorContains(t, err, `there is no stream "BOOKINGS", and record 3 is not the first one of process "sms"`)
	require.False(t, processor.IsPermanent(err))
	require.False(t, processor.IsRefused(err))
	sinktest.Delivered(t, next, sinktest.Under(4, sinktest.Deliveries(3, 2)))
	require.Equal(t, "3/4 4/4", b.log(t, "ordered-epoch"))
}

// Nothing listens on the subjects of a stream that was deleted.
func TestDeclare_AStreamThatIsDeletedUnderAWorkerIsMadeAnewWhenAnOperatorHasDecided(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	require.NoError(t, b.admin.DeleteStream(t.Context(), stream))
	s := declaring(t, b.server, func(c *nats.Config) { c.User, c.Password = user, password })
	deleted(t, s, b.admin)
	_, err := sinktest.Deliver(t, s, sinktest.Under(3, sinktest.Deliveries(3, 2)))
	require.ErrorContains(t, err, "no responders")
	for range 2 {
		requireLost(t, s, sinktest.Under(3, sinktest.Deliveries(3, 2)), "there is none any more")
	}
	sinktest.Delivered(t, s, sinktest.Under(4, sinktest.Deliveries(3, 2)))
	require.Equal(t, "3/4 4/4", b.log(t, "ordered-epoch"))
	sinktest.Delivered(t, s, sinktest.Under(5, sinktest.Deliveries(5, 1)))
}

// requireLost delivers to a stream in which acknowledged records are missing.
func requireLost(t *testing.T, s *nats.Sink, ds []processor.Delivery, want string) {
	t.Helper()
	n, err := sinktest.Deliver(t, s, ds)
	require.Zero(t, n)
	require.ErrorContains(t, err, want)
	require.True(t, processor.IsRefused(err), err)
}

// The process that comes first makes the stream anew; the numbers of the new stream are above those of the old one.
func TestDeliverBatch_AStreamThatAnotherProcessMadeAnewIsSaid(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	require.NoError(t, b.admin.DeleteStream(t.Context(), stream))
	shared := func(c *nats.Config) {
		c.User, c.Password, c.Declare.Subjects = user, password, []string{"bookings.>", "ordered-fence.>"}
	}
	second := declaring(t, b.server, shared)
	others := func(epoch cursor.Epoch, from, n int) []processor.Delivery {
		ds := sinktest.Under(epoch, sinktest.Deliveries(from, n))
		for i := range ds {
			ds[i].Process = "another"
		}
		return ds
	}
	sinktest.Delivered(t, second, others(3, 1, 2))
	deleted(t, declaring(t, b.server, shared), b.admin)
	first := declaring(t, b.server, shared)
	_, err := sinktest.Deliver(t, first, sinktest.Under(4, sinktest.Deliveries(3, 1)))
	require.ErrorContains(t, err, "there is no stream")
	sinktest.Delivered(t, first, sinktest.Under(4, sinktest.Deliveries(3, 1)))

	require.Eventually(t, func() bool { // its claim is not there any more
		_, err := sinktest.Deliver(t, second, others(3, 3, 1))
		return processor.IsRefused(err)
	}, 30*time.Second, 10*time.Millisecond)
	requireLost(t, second, others(3, 3, 1), "it was deleted and made anew at 2")
	sinktest.Delivered(t, second, others(4, 3, 2))
	require.NoError(t, second.Close())
	sinktest.Delivered(t, second, others(5, 5, 1))
}

// A worker that had the lease before the others met the loss does not know that an operator has decided. It says it once more,
// rather than being silent after any two decisions.
func TestDeliverBatch_ALossIsSaidByEachWorkerThatRemembers(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	require.NoError(t, b.admin.DeleteStream(t.Context(), stream))
	declared := func(c *nats.Config) { c.User, c.Password = user, password }
	early, late := declaring(t, b.server, declared), declaring(t, b.server, declared)
	sinktest.Delivered(t, early, sinktest.Under(3, sinktest.Deliveries(1, 2)))
	sinktest.Delivered(t, late, sinktest.Under(4, sinktest.Deliveries(3, 2)))
	require.NoError(t, b.admin.DeleteStream(t.Context(), stream))
	requireRefused := func(s *nats.Sink, ds []processor.Delivery) {
		require.Eventually(t, func() bool { // its connection was to the old stream
			_, err := sinktest.Deliver(t, s, ds)
			return processor.IsRefused(err)
		}, 30*time.Second, 10*time.Millisecond)
	}
	requireRefused(late, sinktest.Under(4, sinktest.Deliveries(5, 1)))
	sinktest.Delivered(t, late, sinktest.Under(5, sinktest.Deliveries(5, 1)))
	requireRefused(early, sinktest.Under(8, sinktest.Deliveries(6, 1)))
	sinktest.Delivered(t, early, sinktest.Under(9, sinktest.Deliveries(6, 1)))
}

func TestDeliverBatch_AStreamThatIsMadeAnewByHandIsSaid(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(1, 2)))
	old, err := b.admin.Stream(t.Context(), stream)
	require.NoError(t, err)
	require.NoError(t, b.admin.DeleteStream(t.Context(), stream))
	config := old.CachedInfo().Config
	config.FirstSeq = 9_000_000_000_000_000
	_, err = b.admin.CreateStream(t.Context(), config)
	require.NoError(t, err)

	require.Eventually(t, func() bool {
		_, err := sinktest.Deliver(t, s, sinktest.Under(3, sinktest.Deliveries(3, 1)))
		return processor.IsRefused(err)
	}, 30*time.Second, 10*time.Millisecond)
	requireLost(t, s, sinktest.Under(3, sinktest.Deliveries(3, 1)), "it was deleted and made anew at 2")
	sinktest.Delivered(t, s, sinktest.Under(4, sinktest.Deliveries(3, 2)))
}

// The claim of a superseded worker has a sequence that the new stream comes to, too.
func TestFence_HoldsForAWorkerOfAStreamThatWasDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	require.NoError(t, b.admin.DeleteStream(t.Context(), stream))
	declared := func(c *nats.Config) { c.User, c.Password = user, password }
	old := declaring(t, b.server, declared)
	deleted(t, old, b.admin)
	sinktest.Delivered(t, declaring(t, b.server, declared), sinktest.Under(4, sinktest.Deliveries(1, 2)))

	n, err := sinktest.Deliver(t, old, sinktest.Under(3, sinktest.Deliveries(3, 1)))
	require.Zero(t, n)
	require.ErrorContains(t, err, "error 10071 of the server")
	require.Equal(t, "1/4 2/4", b.log(t, "ordered-epoch"))
}

// No acknowledgement comes before the whole window is on its way.
func TestWindow_IsAsLargeAsItIsSet(t *testing.T) {
	t.Parallel()
	const maxWindow = 10_000
	b := newBench(t, nil)
	l, over := b.over(t)
	s := b.sink(t, func(c *nats.Config) { over(c); c.Window = maxWindow; c.Unhurried() })
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	word := []byte("HPUB bookings.made ")
	l.Hold(link.Server, func(data []byte) bool { return bytes.Contains(data, word) })
	var before []byte // the end of the piece before
	sent := 0
	l.OnData(func(fromServer bool, data []byte) {
		if fromServer {
			return
		}
		data = append(before, data...)
		sent += bytes.Count(data, word)
		before = bytes.Clone(data[max(0, len(data)-len(word)+1):])
		if sent == maxWindow {
			l.Release()
		}
	})
	sinktest.Delivered(t, s, sinktest.Deliveries(2, maxWindow))
}
