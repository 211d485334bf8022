package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// at is a moment of a history made by hand.
func at(milliseconds int) time.Time { return start.Add(time.Duration(milliseconds) * time.Millisecond) }

func someBooking(id int) booking {
	return booking{ID: int64(id), CreatedAt: at(10 * id), Customer: 7, Phone: "+1 555 0000000",
		Status: "confirmed", Amount: json.Number(fmt.Sprintf("%d.50", id))}
}

func deliveryOf(b booking, sequence int64) delivery {
	return delivery{At: b.CreatedAt.Add(9 * time.Millisecond), Booking: b.ID, Digest: b.digest(),
		Position: fmt.Sprintf("at.int:%020d", b.ID), Sequence: sequence, Epoch: 1}
}

// faultless is a history of n bookings, each committed 4 ms and delivered 9 ms after it was inserted.
func faultless(n int) history {
	var h history
	for id := 1; id <= n; id++ {
		b := someBooking(id)
		h.Table = append(h.Table, b)
		h.Log = append(h.Log, entry{Booking: b, Committed: true, EndedAt: b.CreatedAt.Add(4 * time.Millisecond)})
		h.Deliveries = append(h.Deliveries, deliveryOf(b, int64(id)))
	}
	return h
}

// crashed is a history in which worker A was killed while booking 3 of 5 was at the receiver; worker B delivered it
// again, 200 ms later.
func crashed() history {
	h := faultless(5)
	held := h.Deliveries[2]
	h.Kills = []kill{{At: held.At.Add(time.Millisecond), Worker: "A", Held: held}}
	again := slices.Concat(h.Deliveries[2:3], h.Deliveries[3:])
	for i := range again {
		again[i].Epoch = 2
		again[i].At = again[i].At.Add(201 * time.Millisecond)
	}
	h.Deliveries = slices.Concat(h.Deliveries[:3], again)
	return h
}

func TestJudge_AFaultlessHistoryIsGood(t *testing.T) {
	t.Parallel()
	v := judge(faultless(100))
	require.NoError(t, v.Err())
	require.Equal(t, verdict{
		Committed: 100, Delivered: 100,
		Latency: quantiles{5 * time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond},
		Own:     quantiles{5 * time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond},
	}, v)
}

func TestJudge_NothingCommittedProvesNothing(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, judge(history{}).Err(), "nothing was committed")
}

func TestJudge_WhatNeverArrivesIsLost(t *testing.T) {
	t.Parallel()
	h := faultless(5)
	h.Deliveries = slices.Delete(h.Deliveries, 2, 3)
	h.Deliveries[2].Sequence, h.Deliveries[3].Sequence = 3, 4 // as a dispatcher counts that never saw booking 3
	v := judge(h)
	require.Equal(t, []int64{3}, v.Lost)
	require.Equal(t, 5, v.Committed)
	require.Equal(t, 4, v.Delivered)
	require.EqualError(t, v.Err(), "the verdict is bad: 1 lost")
}

func TestJudge_ALateArrivalIsOutOfOrder(t *testing.T) {
	t.Parallel()
	h := faultless(5)
	h.Deliveries[1], h.Deliveries[3] = h.Deliveries[3], h.Deliveries[1] // 1 4 3 2 5
	for i := range h.Deliveries {
		h.Deliveries[i].Sequence = int64(i + 1)
	}
	v := judge(h)
	require.Equal(t, []int64{3, 2}, v.OutOfOrder)
	require.EqualError(t, v.Err(), "the verdict is bad: 2 out of order")
}

// The position that a delivery carries is the dispatcher's own word; the table's order is not.
func TestJudge_TheTablesOrderCountsBesideThePositions(t *testing.T) {
	t.Parallel()
	h := faultless(3)
	h.Deliveries[1].Booking, h.Deliveries[2].Booking = 3, 2
	h.Deliveries[1].Digest, h.Deliveries[2].Digest = h.Deliveries[2].Digest, h.Deliveries[1].Digest
	require.Equal(t, []int64{2}, judge(h).OutOfOrder)
}

func TestJudge_ADuplicateOfAKillIsExcused(t *testing.T) {
	t.Parallel()
	v := judge(crashed())
	require.NoError(t, v.Err())
	require.Equal(t, []duplicate{{Booking: 3, Sequence: 3, Cause: "attempt in flight when worker A was killed"}}, v.Duplicates)
	require.Equal(t, []time.Duration{200 * time.Millisecond}, v.TakeOvers)
}

func TestJudge_ADuplicateWithoutAFaultIsBad(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]func(*history){
		"nobody was killed":                 func(h *history) { h.Kills = nil },
		"another booking was in flight":     func(h *history) { h.Kills[0].Held.Booking = 2 },
		"it carries another sequence":       func(h *history) { h.Kills[0].Held.Sequence = 2 },
		"the killed worker sent it again":   func(h *history) { h.Kills[0].Held.Epoch = 2 },
		"a kill excuses one duplicate only": func(h *history) { h.Deliveries = slices.Insert(h.Deliveries, 4, h.Deliveries[3]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := crashed()
			alter(&h)
			v := judge(h)
			require.Equal(t, []int64{3}, v.unexplained())
			require.EqualError(t, v.Err(), "the verdict is bad: 1 duplicated without a cause")
		})
	}
}

func TestJudge_WhatWasRolledBackMustNotArrive(t *testing.T) {
	t.Parallel()
	h := faultless(5)
	h.Log[2].Committed = false
	h.Table = slices.Delete(h.Table, 2, 3)
	v := judge(h)
	require.Equal(t, []int64{3}, v.Phantoms)
	require.Equal(t, 1, v.RolledBack)
	require.Equal(t, 4, v.Delivered)
	require.EqualError(t, v.Err(), "the verdict is bad: 1 delivered but never committed")
}

func TestJudge_ContentsMustArriveAsInserted(t *testing.T) {
	t.Parallel()
	h := faultless(5)
	altered := h.Table[2]
	altered.Amount = "3.5" // 3.50 was inserted
	h.Deliveries[2].Digest = altered.digest()
	require.EqualError(t, judge(h).Err(), "the verdict is bad: 1 delivered with altered contents")
}

func TestJudge_TheSequenceHasNoHoles(t *testing.T) {
	t.Parallel()
	h := faultless(5)
	for i := 2; i < 5; i++ {
		h.Deliveries[i].Sequence++
	}
	v := judge(h)
	require.Equal(t, []int64{3}, v.Misnumbered)
	require.EqualError(t, v.Err(), "the verdict is bad: 1 with a wrong sequence")
}

func TestJudge_AnEpochNeverReturns(t *testing.T) {
	t.Parallel()
	h := crashed()
	h.Deliveries[5].Epoch = 1
	v := judge(h)
	require.Equal(t, []int64{5}, v.Stale)
	require.EqualError(t, v.Err(), "the verdict is bad: 1 under an outdated epoch")
}

func TestJudge_TheLogAndTheTableMustAgree(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]func(*history){
		"a commit is not in the table":     func(h *history) { h.Table = slices.Delete(h.Table, 1, 2) },
		"a row is not in the log":          func(h *history) { h.Log = slices.Delete(h.Log, 1, 2) },
		"a row was rolled back by the log": func(h *history) { h.Log[1].Committed = false },
		"the contents differ": func(h *history) {
			h.Log[1].Booking.Status = "cancelled"
			h.Deliveries[1].Digest = h.Log[1].Booking.digest()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := faultless(3)
			alter(&h)
			v := judge(h)
			require.Equal(t, []int64{2}, v.Disputed)
			require.Equal(t, 3, v.Committed)
			require.EqualError(t, v.Err(), "the verdict is bad: 1 on which the producers' log and the table disagree")
		})
	}
}

// Booking 2 waits for booking 1, whose transaction stays open for 100 ms: that is the order's doing.
func TestJudge_TheWaitForOlderTransactionsIsToldApart(t *testing.T) {
	t.Parallel()
	h := faultless(2)
	h.Log[0].EndedAt = at(110)
	h.Deliveries[0].At, h.Deliveries[1].At = at(117), at(119)
	v := judge(h)
	require.Equal(t, quantiles{7 * time.Millisecond, 95 * time.Millisecond, 95 * time.Millisecond}, v.Latency)
	require.Equal(t, quantiles{7 * time.Millisecond, 9 * time.Millisecond, 9 * time.Millisecond}, v.Own)
}

func TestQuantilesOf_AreNearestRanks(t *testing.T) {
	t.Parallel()
	var durations []time.Duration
	for i := range 200 {
		durations = append(durations, time.Duration(200-i))
	}
	require.Equal(t, quantiles{100, 198, 200}, quantilesOf(durations))
	require.Equal(t, quantiles{3, 3, 3}, quantilesOf([]time.Duration{3}))
	require.Zero(t, quantilesOf(nil))
}
