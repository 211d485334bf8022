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

func TestJudge_ADuplicateOfAKillIsExcused(t *testing.T) {
	t.Parallel()
	v := judge(crashed())
	require.NoError(t, v.Err())
	require.Equal(t, []duplicate{{Booking: 3, Sequence: 3, Cause: "attempt in flight when worker A was killed"}}, v.Duplicates)
	require.Equal(t, []time.Duration{200 * time.Millisecond}, v.TakeOvers)
}

func TestJudge_SaysWhichPromiseIsBroken(t *testing.T) {
	t.Parallel()
	const disagree = "1 on which the producers' log and the table disagree"
	unexplained, excused := duplicate{Booking: 3, Sequence: 3}, duplicate{Booking: 3, Sequence: 3, Cause: "attempt in flight when worker A was killed"}
	for _, c := range []struct {
		name  string
		base  history
		alter func(*history)
		want  verdict // without its times
		text  string
	}{
		{
			"nothing was committed", history{}, func(*history) {},
			verdict{}, "nothing was committed, so nothing is proved",
		}, {
			"what never arrives is lost", faultless(5), func(h *history) {
				h.Deliveries = slices.Delete(h.Deliveries, 2, 3)
				h.Deliveries[2].Sequence, h.Deliveries[3].Sequence = 3, 4 // as a dispatcher counts that never saw booking 3
			},
			verdict{Committed: 5, Delivered: 4, Lost: []int64{3}}, "1 lost",
		}, {
			"a late arrival is out of order", faultless(5), func(h *history) {
				h.Deliveries[1], h.Deliveries[3] = h.Deliveries[3], h.Deliveries[1] // 1 4 3 2 5
				for i := range h.Deliveries {
					h.Deliveries[i].Sequence = int64(i + 1)
				}
			},
			verdict{Committed: 5, Delivered: 5, OutOfOrder: []int64{3, 2}}, "2 out of order",
		}, {
			// The position that a delivery carries is the dispatcher's own word; the table's order is not.
			"the table's order counts beside the positions", faultless(3), func(h *history) {
				h.Deliveries[1].Booking, h.Deliveries[2].Booking = 3, 2
				h.Deliveries[1].Digest, h.Deliveries[2].Digest = h.Deliveries[2].Digest, h.Deliveries[1].Digest
			},
			verdict{Committed: 3, Delivered: 3, OutOfOrder: []int64{2}}, "1 out of order",
		}, {
			"a duplicate, and no worker was killed", crashed(), func(h *history) { h.Kills = nil },
			verdict{Committed: 5, Delivered: 5, Duplicates: []duplicate{unexplained}}, "1 duplicated without a cause",
		}, {
			"a duplicate, and another booking was in flight", crashed(), func(h *history) { h.Kills[0].Held.Booking = 2 },
			verdict{Committed: 5, Delivered: 5, Duplicates: []duplicate{unexplained}}, "1 duplicated without a cause",
		}, {
			"a duplicate that carries another sequence", crashed(), func(h *history) { h.Kills[0].Held.Sequence = 2 },
			verdict{Committed: 5, Delivered: 5, Duplicates: []duplicate{unexplained}}, "1 duplicated without a cause",
		}, {
			"a duplicate that the killed worker sent", crashed(), func(h *history) { h.Kills[0].Held.Epoch = 2 },
			verdict{Committed: 5, Delivered: 5, Duplicates: []duplicate{unexplained}}, "1 duplicated without a cause",
		}, {
			"a kill excuses one duplicate only", crashed(), func(h *history) { h.Deliveries = slices.Insert(h.Deliveries, 4, h.Deliveries[3]) },
			verdict{Committed: 5, Delivered: 5, Duplicates: []duplicate{excused, unexplained}}, "1 duplicated without a cause",
		}, {
			"what was rolled back arrives", faultless(5), func(h *history) {
				h.Log[2].Committed = false
				h.Table = slices.Delete(h.Table, 2, 3)
			},
			verdict{Committed: 4, RolledBack: 1, Delivered: 4, Phantoms: []int64{3}}, "1 delivered but never committed",
		}, {
			"contents are not as inserted", faultless(5), func(h *history) {
				altered := h.Table[2]
				altered.Amount = "3.5" // 3.50 was inserted
				h.Deliveries[2].Digest = altered.digest()
			},
			verdict{Committed: 5, Delivered: 5, Altered: []int64{3}}, "1 delivered with altered contents",
		}, {
			"the sequence has a hole", faultless(5), func(h *history) {
				for i := 2; i < 5; i++ {
					h.Deliveries[i].Sequence++
				}
			},
			verdict{Committed: 5, Delivered: 5, Misnumbered: []int64{3}}, "1 with a wrong sequence",
		}, {
			"an epoch returns", crashed(), func(h *history) { h.Deliveries[5].Epoch = 1 },
			verdict{Committed: 5, Delivered: 5, Duplicates: []duplicate{excused}, Stale: []int64{5}}, "1 under an outdated epoch",
		}, {
			"a commit is not in the table", faultless(3), func(h *history) { h.Table = slices.Delete(h.Table, 1, 2) },
			verdict{Committed: 3, Delivered: 3, Disputed: []int64{2}}, disagree,
		}, {
			"a row is not in the log", faultless(3), func(h *history) { h.Log = slices.Delete(h.Log, 1, 2) },
			verdict{Committed: 3, Delivered: 3, Disputed: []int64{2}}, disagree,
		}, {
			"a row was rolled back by the log", faultless(3), func(h *history) { h.Log[1].Committed = false },
			verdict{Committed: 3, RolledBack: 1, Delivered: 3, Disputed: []int64{2}}, disagree,
		}, {
			"the contents of the log and the table differ", faultless(3), func(h *history) {
				h.Log[1].Booking.Status = "cancelled"
				h.Deliveries[1].Digest = h.Log[1].Booking.digest()
			},
			verdict{Committed: 3, Delivered: 3, Disputed: []int64{2}}, disagree,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.alter(&c.base)
			v := judge(c.base)
			require.EqualError(t, v.Err(), "the verdict is bad: "+c.text)
			v.TakeOvers, v.Latency, v.Own = nil, quantiles{}, quantiles{}
			require.Equal(t, c.want, v)
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
