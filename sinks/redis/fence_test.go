package redis_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/redis"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestDeliverBatch_ASupersededWorkerIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	old, young := b.sink(t, nil), b.sink(t, nil)
	sinktest.Delivered(t, old, under(3, "one", sinktest.Deliveries(1, 2)))
	sinktest.Delivered(t, young, under(4, "two", sinktest.Deliveries(2, 1))) // it is there: that claims the epoch, too
	n, err := sinktest.Deliver(t, old, under(3, "one", sinktest.Deliveries(3, 1)))
	require.Zero(t, n)
	require.ErrorContains(t, err, `it has records of epoch 4 of process "sms", and this worker has epoch 3: another one has taken over`)
	require.Equal(t, "unreached", sinktest.Class(err), err)
	sinktest.Delivered(t, young, under(4, "two", sinktest.Deliveries(3, 1)))
	require.Equal(t, "1 2 3", b.log(t, stream))
}

// What a worker sent before it was superseded waits in the network. It arrives after the next worker has passed over that
// record.
func TestDeliverBatch_WhatComesLateIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	old := b.sink(t, window(4))
	sinktest.Delivered(t, old, under(3, "one", sinktest.Deliveries(1, 2)))
	held := b.link.Hold(link.Client, sinktest.Payload)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := old.DeliverBatch(ctx, under(3, "one", sinktest.Deliveries(3, 4)))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.True(t, outcome.IsUnknown(err), err)
	waittest.Receive(t, held, "the older worker's records are on their way")
	sinktest.Delivered(t, b.sink(t, nil), under(4, "two", sinktest.Deliveries(6, 1)))
	b.link.Release()
	require.Eventually(t, func() bool { // each sink begins with EVAL
		return strings.Contains(b.ask(t, "INFO", "commandstats").(string), "cmdstat_evalsha:calls=5,")
	}, time.Minute, 10*time.Millisecond)
	sinktest.Delivered(t, b.sink(t, nil), under(4, "two", sinktest.Deliveries(7, 1)))
	require.Equal(t, "1 2 6 7", b.log(t, stream))
}

func TestDeliverBatch_AnEpochOfTwoWorkersIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	sinktest.Delivered(t, b.sink(t, nil), under(3, "one", sinktest.Deliveries(1, 2)))
	_, err := sinktest.Deliver(t, b.sink(t, nil), under(3, "two", sinktest.Deliveries(3, 1)))
	require.ErrorContains(t, err, "epoch 3 of process \"sms\" was claimed by another worker")
	require.ErrorContains(t, err, "`ordered-dispatcher restored sms --reason …`")
	require.Equal(t, "1 2", b.log(t, stream))
}

// A database that was put back gives out numbers again. The record is another one, so it does not count as delivered.
func TestDeliverBatch_ANumberOfAnotherRecordIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	sinktest.Delivered(t, b.sink(t, nil), under(3, "one", sinktest.Deliveries(1, 5)))
	again := under(7, "two", sinktest.Deliveries(4, 1))
	again[0].Position, again[0].ID = "int:00000000000000000009", "9"
	n, err := sinktest.Deliver(t, b.sink(t, nil), again)
	require.Zero(t, n)
	require.ErrorContains(t, err, "it has records up to 5 of process \"sms\", and none of the last ones is record 4")
	require.True(t, processor.IsRefused(err) && outcome.IsReportedOnce(err), err)
	require.Equal(t, "1 2 3 4 5", b.log(t, stream))
}

// A dead letter is replayed with its own number, which is below the last one. The next record goes on behind that.
func TestDeliverBatch_AReplayComesOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, window(5))
	ds := under(3, "one", sinktest.Deliveries(1, 6))
	sinktest.Delivered(t, s, append(ds[:2:2], ds[3:]...)) // 3 was put aside
	replayed := ds[2]
	replayed.Epoch, replayed.Worker, replayed.After = 4, "cli", replayed.Position
	for range 2 {
		sinktest.Delivered(t, b.sink(t, nil), []processor.Delivery{replayed})
	}
	_, err := sinktest.Deliver(t, s, under(3, "one", sinktest.Deliveries(7, 1)))
	require.ErrorContains(t, err, "another one has taken over")
	replayed.Epoch, replayed.Worker = 5, "one"
	sinktest.Delivered(t, s, append([]processor.Delivery{replayed}, under(5, "one", sinktest.Deliveries(7, 2))...)) // it is in no chain
	require.Equal(t, "1 2 4 5 6 3 7 8", b.log(t, stream))
}

// requireLost delivers twice, and each time the process would halt.
func requireLost(t *testing.T, s *redis.Sink, ds []processor.Delivery, why string) {
	t.Helper()
	for range 2 {
		n, err := sinktest.Deliver(t, s, ds)
		require.Zero(t, n)
		require.ErrorContains(t, err, why)
		require.True(t, processor.IsRefused(err) && outcome.IsReportedOnce(err), err)
	}
}

func TestDeliverBatch_WhatWasRemovedIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command []string
		why     string
	}{
		"all":        {[]string{"FLUSHALL"}, "it knows nothing of this process"},
		"the state":  {[]string{"DEL", state, state + ":marks"}, "it knows nothing of this process"},
		"the stream": {[]string{"DEL", stream}, "records that Redis had acknowledged are lost: the stream of the last entry was deleted"},
	} {
		for _, n := range []int{1, 10} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				s := b.sink(t, window(n))
				sinktest.Delivered(t, s, under(3, "one", sinktest.Deliveries(1, 5)))
				b.ask(t, c.command...)
				requireLost(t, s, under(3, "one", sinktest.Deliveries(6, 4)), c.why)
				requireLost(t, b.sink(t, window(n)), under(3, "one", sinktest.Deliveries(6, 4)), c.why)
				sinktest.Delivered(t, b.sink(t, window(n)), under(4, "two", sinktest.Deliveries(6, 4))) // an operator has decided
				b.ask(t, "FLUSHALL")
				requireLost(t, s, under(4, "two", sinktest.Deliveries(10, 2)), "it knows nothing of this process")
			})
		}
	}
}

// A replay would have Redis know of the process, and make the stream anew. The next record would not find the loss.
func TestDeliverBatch_AReplayHidesNoLoss(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command []string
		why     string
	}{
		"all":        {[]string{"FLUSHALL"}, "it knows nothing of this process"},
		"the stream": {[]string{"DEL", stream}, "the stream of the last entry was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ds := under(3, "one", sinktest.Deliveries(1, 4))
			sinktest.Delivered(t, b.sink(t, nil), append(ds[:1:1], ds[2:]...))
			b.ask(t, c.command...)
			held := b.ask(t, "KEYS", "*")
			replayed := under(4, "cli", ds[1:2])
			replayed[0].After = replayed[0].Position
			requireLost(t, b.sink(t, nil), replayed, c.why)
			require.ElementsMatch(t, held, b.ask(t, "KEYS", "*"))
			requireLost(t, b.sink(t, nil), under(5, "one", sinktest.Deliveries(5, 2)), c.why)
			sinktest.Delivered(t, b.sink(t, nil), under(6, "one", sinktest.Deliveries(5, 2))) // an operator has decided
			replayed[0].Epoch = 7
			sinktest.Delivered(t, b.sink(t, nil), replayed)
			require.Equal(t, "5 6 2", b.log(t, stream))
		})
	}
}

// The record after the last entry goes to another stream than that.
func TestDeliverBatch_TheStreamOfTheLastEntryIsMissed(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 10} {
		b := newBench(t)
		s := b.sink(t, func(c *redis.Config) { c.Window, c.Stream = n, "bookings:{{.Type}}" })
		ds := sinktest.Deliveries(1, 4)
		ds[1].Type = "last"
		sinktest.Delivered(t, s, ds[:2])
		b.ask(t, "DEL", "bookings:last")
		requireLost(t, s, ds[2:], "the stream of the last entry was deleted")
		require.Equal(t, "1", b.log(t, "bookings:made"))
	}
}

// A replica that lacked the last records became the master. Its state is as old as its stream.
func TestDeliverBatch_AFailoverThatLostRecordsIsSaid(t *testing.T) {
	t.Parallel()
	b, replica := newBench(t), newBench(t, "--masterauth", password)
	s := b.sink(t, window(3))
	replica.ask(t, "REPLICAOF", "127.0.0.1", b.addr[len("127.0.0.1:"):])
	sinktest.Delivered(t, s, under(3, "one", sinktest.Deliveries(1, 4)))
	require.Eventually(t, func() bool { return replica.log(t, stream) == "1 2 3 4" }, time.Minute, 10*time.Millisecond)
	replica.ask(t, "REPLICAOF", "NO", "ONE")
	sinktest.Delivered(t, s, under(3, "one", sinktest.Deliveries(5, 4)))
	b.link.Retarget(replica.addr)
	b.link.Cut()
	var err error
	for i := 0; i == 0 || outcome.IsUnknown(err) || processor.IsUnreached(err); i++ { // the connection was the master's
		_, err = sinktest.Deliver(t, s, under(3, "one", sinktest.Deliveries(9, 3)))
	}
	require.ErrorContains(t, err, "records that Redis had acknowledged are lost: an older copy of its data was put back, or a replica that lacked records became the master")
	requireLost(t, s, under(3, "one", sinktest.Deliveries(9, 3)), "an older copy")
	requireLost(t, b.sink(t, nil), under(3, "one", sinktest.Deliveries(9, 3)), "an older copy") // one that was made anew
	sinktest.Delivered(t, s, under(4, "one", sinktest.Deliveries(9, 3)))
	require.Equal(t, "1 2 3 4 9 10 11", replica.log(t, stream))
}

// The first record of a process does not go out. The second one finds nothing there, and nothing was lost.
func TestDeliverBatch_AFirstRecordThatIsRefusedIsNoLoss(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, nil)
	ds := under(cursor.Epoch(3), "one", sinktest.Deliveries(1, 3))
	ds[0].Payload = make([]byte, maxBulk+1)
	n, err := sinktest.Deliver(t, s, ds)
	require.Zero(t, n)
	require.True(t, processor.IsPermanent(err), err)
	require.ErrorContains(t, err, "a value of it has 1048577 bytes, and Redis takes 1048576: raise proto-max-bulk-len")
	sinktest.Delivered(t, s, ds[1:])
	require.Equal(t, "2 3", b.log(t, stream))
}
