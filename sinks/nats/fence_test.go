package nats_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// over leads a sink's connection over a link of its own.
func (b *bench) over(t testing.TB) (*link.Link, func(*nats.Config)) {
	t.Helper()
	l := tcptest.Link(t, b.addr)
	return l, func(c *nats.Config) { c.URL = "nats://" + l.Addr() }
}

func TestFence_ASupersededWorkerIsRefusedByTheServer(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	old, successor := b.sink(t, nil), b.sink(t, nil)
	sinktest.Delivered(t, old, sinktest.Under(3, sinktest.Deliveries(1, 2)))
	sinktest.Delivered(t, successor, sinktest.Under(4, sinktest.Deliveries(3, 1)))

	n, err := sinktest.Deliver(t, old, sinktest.Under(3, sinktest.Deliveries(3, 1)))
	require.Zero(t, n)
	require.ErrorContains(t, err, "error 10071 of the server")
	require.False(t, processor.IsPermanent(err), "a superseded worker halts nothing")
	n, err = sinktest.Deliver(t, old, sinktest.Under(3, sinktest.Deliveries(3, 1)))
	require.Zero(t, n)
	require.ErrorContains(t, err, "another one has taken over")
	require.False(t, processor.IsPermanent(err))

	sinktest.Delivered(t, successor, sinktest.Under(4, sinktest.Deliveries(4, 1)))
	require.Equal(t, "1/3 2/3 3/4 4/4", b.log(t, "ordered-epoch"))
}

// An earlier version wrote UTF-8 as it is. Its claims and its records belong to the same process.
func TestFence_KnowsAProcessWhoseNameIsWrittenInUTF8(t *testing.T) {
	t.Parallel()
	const name = "Zählung"
	of := func(epoch cursor.Epoch, ds []processor.Delivery) []processor.Delivery {
		for i := range ds {
			ds[i].Process = name
		}
		return sinktest.Under(epoch, ds)
	}
	fenced := func(c *nats.Config) { c.Fence = fence }
	old, b := newBench(t, nil), newBench(t, nil)
	sinktest.Delivered(t, old.sink(t, fenced), of(3, sinktest.Deliveries(1, 2)))
	for sequence := range uint64(3) {
		m, err := old.stream.GetMsg(t.Context(), sequence+1)
		require.NoError(t, err)
		copied := client.Header{}
		for _, header := range []string{"Nats-Msg-Id", "ordered-origin", "ordered-sequence", "ordered-epoch"} {
			if value := m.Header.Get(header); value != "" {
				copied[header] = []string{value}
			}
		}
		copied["ordered-process"] = []string{name}
		_, err = b.admin.PublishMsg(t.Context(), &client.Msg{Subject: m.Subject, Header: copied, Data: m.Data})
		require.NoError(t, err)
	}
	sinktest.Delivered(t, b.sink(t, fenced), of(4, sinktest.Deliveries(1, 3)))
	require.Equal(t, "1/3 2/3 3/4", b.log(t, "ordered-epoch"))
}

// A worker that was stopped between reading the last claim and writing its own.
func TestFence_OfTwoClaimsAtOnceTheServerTakesOne(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	l, over := b.over(t)
	held := make(chan struct{})
	var once sync.Once
	l.OnData(func(fromServer bool, data []byte) {
		if !fromServer && bytes.Contains(data, []byte("HPUB "+fence)) {
			l.Stall()
			once.Do(func() { close(held) })
		}
	})
	old := b.sink(t, over)
	refused := make(chan error, 1)
	go func() {
		_, err := sinktest.Deliver(t, old, sinktest.Under(3, sinktest.Deliveries(1, 1)))
		refused <- err
	}()
	waittest.Receive(t, held, "the older claim is on its way")
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Under(4, sinktest.Deliveries(1, 1)))
	l.OnData(nil)
	l.Resume()
	require.ErrorContains(t, waittest.Receive(t, refused, "the older claim has its answer"), "claim the stream")
	_, err := sinktest.Deliver(t, old, sinktest.Under(3, sinktest.Deliveries(1, 1)))
	require.ErrorContains(t, err, "another one has taken over")
	require.Equal(t, "1/4", b.log(t, "ordered-epoch"))
}

// The subjects differ from record to record, and the fence is one.
func TestFence_HoldsForEverySubjectOfATemplate(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	bySequence := func(c *nats.Config) { c.Subject = "bookings.{{.ID}}" }
	old, successor := b.sink(t, bySequence), b.sink(t, bySequence)
	sinktest.Delivered(t, old, sinktest.Under(3, sinktest.Deliveries(1, 1)))
	sinktest.Delivered(t, successor, sinktest.Under(4, sinktest.Deliveries(2, 1)))
	_, err := sinktest.Deliver(t, old, sinktest.Under(3, sinktest.Deliveries(7, 1))) // a subject without messages
	require.ErrorContains(t, err, "error 10071 of the server")
	require.Equal(t, "1/3 2/4", b.log(t, "ordered-epoch"))
}

// What a worker had on its way when it was superseded arrives behind what its
// successor has sent: all of it, some of it, or none of it.
func TestFence_AWindowOnItsWayLandsNowhereBehindANewerClaim(t *testing.T) {
	t.Parallel()
	for successorHas := range 6 {
		for foreign := range 3 {
			t.Run(fmt.Sprintf("the successor has sent %d and a stranger %d", successorHas, foreign), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, nil)
				l, over := b.over(t)
				old := b.sink(t, func(c *nats.Config) { over(c); c.Window = 4 })
				sinktest.Delivered(t, old, sinktest.Under(3, sinktest.Deliveries(1, 1)))
				l.Stall()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				l.OnData(func(fromServer bool, _ []byte) {
					if !fromServer { // it is on its way
						time.AfterFunc(200*time.Millisecond, cancel)
					}
				})
				n, err := old.DeliverBatch(ctx, sinktest.Under(3, sinktest.Deliveries(2, 4)))
				require.Zero(t, n)
				require.ErrorIs(t, err, context.Canceled)

				successor := b.sink(t, window(2))
				sinktest.Delivered(t, successor, sinktest.Under(4, sinktest.Deliveries(2, successorHas)))
				for range foreign {
					_, err := b.admin.Publish(t.Context(), "bookings.stranger", nil)
					require.NoError(t, err)
				}
				l.Resume()
				clients := 1 // the administrator
				if successorHas > 0 {
					clients++
				}
				require.Eventually(t, func() bool { return b.server.NumClients() == clients }, time.Minute, time.Millisecond)
				sinktest.Delivered(t, successor, sinktest.Under(4, sinktest.Deliveries(2+successorHas, 5-successorHas)))

				want := "1/3 2/4 3/4 4/4 5/4 6/4"
				switch {
				case successorHas == 0 && foreign == 0: // nothing was claimed yet, so the window is in order
					want = "1/3 2/3 3/3 4/3 5/3 6/4"
				case successorHas == 0: // the first one expects the claim, and the others nothing between
					want = "1/3 2/3 3/4 4/4 5/4 6/4"
				}
				require.Equal(t, want, b.log(t, "ordered-epoch"))
			})
		}
	}
}

// The worker died with five records in the stream of which the cursor knows two, and
// the server has forgotten their ids.
func TestTakeOver_WhatHasLandedIsNotSentAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.StreamConfig) { c.Duplicates = 100 * time.Millisecond })
	sinktest.Delivered(t, b.sink(t, window(5)), sinktest.Under(3, sinktest.Deliveries(1, 5)))
	b.forget(t)
	sinktest.Delivered(t, b.sink(t, window(5)), sinktest.Under(4, sinktest.Deliveries(3, 5)))
	require.Equal(t, "1/3 2/3 3/3 4/3 5/3 6/4 7/4", b.log(t, "ordered-epoch"))
}

// forget waits until the server knows the ids of the stream no more: messages of
// another publisher take no part in the fence.
func (b *bench) forget(t testing.TB) {
	t.Helper()
	probe := func() bool {
		ack, err := b.admin.PublishMsg(t.Context(), &client.Msg{Subject: "bookings.stranger"}, jetstream.WithMsgID("probe"))
		require.NoError(t, err)
		return !ack.Duplicate
	}
	require.True(t, probe())
	require.Eventually(t, probe, time.Minute, 50*time.Millisecond)
}

// After a failover that lost commits, sequences come again for other records.
func TestTakeOver_AnotherRecordOfTheSameSequenceIsSent(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Under(3, sinktest.Deliveries(1, 3)))
	other := sinktest.Under(4, sinktest.Deliveries(11, 1))
	other[0].Sequence = 3
	sinktest.Delivered(t, b.sink(t, nil), other)
	require.Equal(t, "1 2 3 3", b.log(t))
}

// An operator's seek gives records sequences that they did not have.
func TestTakeOver_WhatAnOperatorWantsAgainIsSent(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, window(3))
	sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(1, 3)))
	again := sinktest.Under(4, sinktest.Deliveries(1, 3))
	for i := range again {
		again[i].Sequence += 1000
	}
	sinktest.Delivered(t, s, again)
	require.Equal(t, "1 2 3 1001 1002 1003", b.log(t))
}

// A worker landed the first two records and the fourth to sixth, of which the cursor knows
// the first of these. A dead letter is replayed before the next worker comes.
func TestTakeOver_AReplayHidesNothingThatHasLanded(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.StreamConfig) { c.Duplicates = 100 * time.Millisecond })
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Under(3, sinktest.Deliveries(1, 2)))
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Under(3, sinktest.Deliveries(4, 3)))
	b.forget(t)
	replay := sinktest.Under(4, sinktest.Deliveries(3, 1))
	replay[0].After = replay[0].Position
	for range 2 {
		sinktest.Delivered(t, b.sink(t, nil), replay)
	}
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Under(5, sinktest.Deliveries(5, 3)))
	require.Equal(t, "1/3 2/3 4/3 5/3 6/3 3/4 7/5", b.log(t, "ordered-epoch"))
}

func TestFence_AnOlderEpochThanTheStreamsIsExplained(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Under(9, sinktest.Deliveries(1, 1)))
	restored := b.sink(t, nil)
	n, err := sinktest.Deliver(t, restored, sinktest.Under(3, sinktest.Deliveries(1, 2)))
	require.Zero(t, n)
	require.ErrorContains(t, err, `is of epoch 9 of process "sms", and this worker has epoch 3`)
	require.ErrorContains(t, err, "`ordered-dispatcher restored sms --reason …`")
	again := sinktest.Under(1_000_009, sinktest.Deliveries(1, 2)) // as after that
	for i := range again {
		again[i].Sequence += cursor.HistoryGap
	}
	sinktest.Delivered(t, b.sink(t, nil), again)
}

// TestFence_AnEpochThatAnotherWorkerHasClaimedIsRefused: the database was restored, and its next worker comes to the epoch
// that one had before. A sink that the same worker makes anew goes on.
func TestFence_AnEpochThatAnotherWorkerHasClaimedIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	by := func(worker string, epoch cursor.Epoch, ds []processor.Delivery) []processor.Delivery {
		for i := range ds {
			ds[i].Worker, ds[i].Epoch = worker, epoch
		}
		return ds
	}
	sinktest.Delivered(t, b.sink(t, nil), by("one", 3, sinktest.Deliveries(1, 2)))
	sinktest.Delivered(t, b.sink(t, nil), by("one", 3, sinktest.Deliveries(3, 2)))
	restored := b.sink(t, nil)
	for range 2 {
		n, err := sinktest.Deliver(t, restored, by("two", 3, sinktest.Deliveries(3, 4)))
		require.Zero(t, n)
		require.ErrorContains(t, err, `epoch 3 of process "sms" was claimed by another worker`)
		require.ErrorContains(t, err, "`ordered-dispatcher restored sms --reason …`")
		require.False(t, processor.IsPermanent(err))
	}
	require.Equal(t, "1/3 2/3 3/3 4/3", b.log(t, "ordered-epoch"))

	again := by("two", 1_000_003, sinktest.Deliveries(3, 2)) // as after that
	for i := range again {
		again[i].Sequence += cursor.HistoryGap
	}
	sinktest.Delivered(t, restored, again)
	sinktest.Delivered(t, b.sink(t, nil), by("three", 1_000_004, sinktest.Deliveries(9, 1)))
}

// TestFence_AClaimThatNamesNoWorkerIsNoOthers: it is of an earlier version, or of a program that names none.
func TestFence_AClaimThatNamesNoWorkerIsNoOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Deliveries(1, 1))
	named := sinktest.Deliveries(2, 1)
	named[0].Worker = "one"
	sinktest.Delivered(t, b.sink(t, nil), named)
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Deliveries(3, 1))
}

// TestTakeOver_AWindowThatWasOnItsWayInAPromotionIsFound: its records come again under larger numbers.
func TestTakeOver_AWindowThatWasOnItsWayInAPromotionIsFound(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.StreamConfig) { c.Duplicates = 100 * time.Millisecond })
	sinktest.Delivered(t, b.sink(t, window(5)), sinktest.Under(3, sinktest.Deliveries(1, 7)))
	b.forget(t)
	again := sinktest.Under(1_000_003, sinktest.Deliveries(3, 7))
	for i := range again {
		again[i].Sequence += 28 * cursor.HistoryGap
	}
	sinktest.Delivered(t, b.sink(t, window(5)), again)
	require.Equal(t, "1/3 2/3 3/3 4/3 5/3 6/3 7/3 280000008/1000003 280000009/1000003", b.log(t, "ordered-epoch"))
}

func TestFence_AClaimThatIsRemovedIsMadeAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
	require.NoError(t, b.stream.Purge(t.Context(), jetstream.WithPurgeSubject(fence)))
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(3, 2))
	require.Zero(t, n)
	require.ErrorContains(t, err, "the next attempt finds out")
	sinktest.Delivered(t, s, sinktest.Deliveries(3, 2))
	require.Equal(t, "1 2 3 4", b.log(t))
}

// TestFence_AClaimThatAgesOutIsMadeAnew: the server may leave a marker in its place.
func TestFence_AClaimThatAgesOutIsMadeAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.StreamConfig) {
		c.MaxAge, c.AllowMsgTTL, c.SubjectDeleteMarkerTTL, c.AllowRollup = time.Second, true, time.Minute, true
	})
	deliverAll := func(ds []processor.Delivery) {
		until := time.Now().Add(time.Minute)
		for s := b.sink(t, nil); len(ds) > 0; {
			n, err := sinktest.Deliver(t, s, ds)
			if err != nil { // a new claim may age out, too, before the record comes
				require.True(t, processor.IsUnreached(err), err)
				require.NotContains(t, err.Error(), "is not a claim", "the server's marker is not a stranger's message")
				require.True(t, time.Now().Before(until), err)
			}
			ds = ds[n:]
		}
	}
	deliverAll(sinktest.Deliveries(1, 2))
	require.Eventually(t, func() bool {
		m, err := b.stream.GetLastMsgForSubject(t.Context(), fence)
		return err == nil && m.Header.Get(jetstream.MarkerReasonHeader) == "MaxAge"
	}, 30*time.Second, 10*time.Millisecond)
	deliverAll(sinktest.Deliveries(3, 2))
}

func TestFence_BelongsToOneProcess(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"bookings.>", "fences.>"} })
	shared := func(c *nats.Config) { c.Fence = "fences.all" }
	sinktest.Delivered(t, b.sink(t, shared), sinktest.Deliveries(1, 1))
	other := sinktest.Deliveries(1, 1)
	other[0].Process = "mail"
	_, err := sinktest.Deliver(t, b.sink(t, shared), other)
	require.ErrorContains(t, err, `belongs to process sms: give each process one of its own`)

	_, err = b.admin.PublishMsg(t.Context(), &client.Msg{Subject: "fences.record", Header: client.Header{"ordered-process": {"mail"}, "ordered-epoch": {"1"}, "Nats-Msg-Id": {"1"}}})
	require.NoError(t, err)
	_, err = sinktest.Deliver(t, b.sink(t, func(c *nats.Config) { c.Fence = "fences.record" }), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, `is a record of process mail: keep the subjects of records apart from the fences`)

	_, err = b.admin.Publish(t.Context(), "fences.none", nil)
	require.NoError(t, err)
	_, err = sinktest.Deliver(t, b.sink(t, func(c *nats.Config) { c.Fence = "fences.none" }), other)
	require.ErrorContains(t, err, "is not a claim")
}

// Other processes and publishers write to the same stream, and even to the same subject. Each of their messages breaks a
// chain at most once, and they are as many as they are: so nothing hangs on who is faster. A look at the stream that a busy
// machine answers too late ends the link, and the records after it come again, as from a worker.
func TestWindow_OrderHoldsAmongOtherPublishers(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	var others sync.WaitGroup
	others.Go(func() {
		for range 1000 {
			_, err := b.admin.Publish(t.Context(), "bookings.made", nil)
			assert.NoError(t, err)
		}
	})
	defer others.Wait()
	s := b.sink(t, window(20))
	late := 0
	for first := 1; first < 500; first += 100 {
		for ds := sinktest.Deliveries(first, 100); len(ds) > 0; {
			n, err := sinktest.Deliver(t, s, ds)
			if err != nil {
				require.True(t, processor.IsUnreached(err) || processor.IsUnknown(err), err)
				late++
				require.Less(t, late, 10, err)
			}
			ds = ds[n:]
		}
	}
	others.Wait()
	next := 1
	for _, m := range b.read(t) {
		if sequence, ok := m.Headers["ordered-sequence"]; ok {
			require.Equal(t, fmt.Sprint(next), sequence)
			next++
		}
	}
	require.Equal(t, 501, next)
}

// TestFence_AnotherOneDoesNotHoldAWorkerOfTheOldOne: the page says so, and to stop all workers before the fence is changed.
func TestFence_AnotherOneDoesNotHoldAWorkerOfTheOldOne(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "ordered-fence.another") })
	old := b.sink(t, nil)
	sinktest.Delivered(t, old, sinktest.Under(3, sinktest.Deliveries(1, 2)))
	sinktest.Delivered(t, b.sink(t, func(c *nats.Config) { c.Fence = "ordered-fence.another" }), sinktest.Under(4, sinktest.Deliveries(3, 1)))
	sinktest.Delivered(t, old, sinktest.Under(3, sinktest.Deliveries(4, 1)))
	require.Equal(t, "1/3 2/3 3/4 4/3", b.log(t, "ordered-epoch"))
}
