package table

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sampled is a sample of the server "a".
func sampled(mark int64, writers ...writer) sample {
	return sample{server: "a", mark: mark, writers: writers}
}

func tx(id string) writer         { return writer{id: id} }
func asPrepared(id string) writer { return writer{id: id, prepared: true} }

func TestFence_Next(t *testing.T) {
	t.Parallel()
	type step struct {
		sample sample
		bound  int64
	}
	for name, steps := range map[string][]step{
		"without writers it is the mark": {{sampled(10), 10}, {sampled(20), 20}},
		"a writer of the first sample has no bound": {
			{sampled(10, tx("1/1")), unbounded}, {sampled(20, tx("1/1")), unbounded}, {sampled(30), 30},
		},
		"a new writer is bounded by the mark before it": {
			{sampled(10), 10}, {sampled(20, tx("1/1")), 10},
		},
		"it keeps its bound while it is there": {
			{sampled(10), 10}, {sampled(20, tx("1/1")), 10}, {sampled(30, tx("1/1")), 10}, {sampled(40), 40},
		},
		"the lowest bound counts": {
			{sampled(10), 10}, {sampled(20, tx("1/1")), 10}, {sampled(30, tx("2/1"), tx("1/1")), 10}, {sampled(40, tx("2/1")), 20},
		},
		"after a break it is new": {
			{sampled(10), 10}, {sampled(20, tx("1/1")), 10}, {sampled(30), 30}, {sampled(40, tx("1/1")), 30},
		},
		"one that was prepared has the lowest bound of those that were there": {
			{sampled(10), 10}, {sampled(20, tx("1/1")), 10}, {sampled(30, tx("1/1"), tx("2/1")), 10},
			{sampled(40, tx("2/1"), asPrepared("-1/7")), 10}, {sampled(50, asPrepared("-1/7")), 10}, {sampled(60), 60},
		},
		"one that was prepared in between has the mark before it": {
			{sampled(10), 10}, {sampled(20), 20}, {sampled(30, asPrepared("-1/7")), 20},
		},
		"one that was prepared under its own name keeps its bound": {
			{sampled(10), 10}, {sampled(20, tx("1/1")), 10}, {sampled(30, tx("1/1")), 10}, {sampled(40, asPrepared("1/1")), 10},
		},
		"one that was prepared while the sample was taken is there under both names": {
			{sampled(10), 10}, {sampled(20, tx("1/1")), 10}, {sampled(30, tx("1/1"), asPrepared("-1/7")), 10}, {sampled(40, asPrepared("-1/7")), 10},
		},
		"one that was prepared before the first sample has no bound": {
			{sampled(10, asPrepared("-1/7")), unbounded}, {sampled(20, asPrepared("-1/7")), unbounded},
		},
		"one that was prepared from one without a bound has none": {
			{sampled(10, tx("1/1")), unbounded}, {sampled(20, asPrepared("-1/7")), unbounded}, {sampled(30), 30},
		},
		"behind a mark that steps back no writer has a bound: its stamp may be older": {
			{sampled(10), 10}, {sampled(20, tx("1/1")), 10}, {sampled(15, tx("1/1"), tx("2/1")), unbounded},
			{sampled(30, tx("1/1"), tx("2/1")), unbounded}, {sampled(40, tx("3/1")), 30},
		},
		"another server knows none of the writers": {
			{sampled(10), 10}, {sample{server: "b", mark: 20, writers: []writer{tx("1/1")}}, unbounded}, {sample{server: "b", mark: 30}, 30},
			{sampled(40, tx("2/1")), unbounded},
		},
		"a dated writer is bounded by its date": {
			{sampled(10, writer{id: "1/1", since: 4, dated: true}), 4},
			{sampled(20, writer{id: "1/1", since: 4, dated: true}, writer{id: "2/1", since: 15, dated: true}), 4},
			{sampled(30, writer{id: "2/1", since: 15, dated: true}), 15},
			{sampled(40, asPrepared("9")), 15},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f fence
			for i, step := range steps {
				require.Equal(t, step.bound, f.next(step.sample), "sample %d", i)
			}
		})
	}
}

// A model of the server: transactions lock, stamp and end in any order, and some
// are prepared under another name. No sample may bound a transaction above the
// stamp it makes.
func TestFence_NeverPassesAnOpenTransaction(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var f fence
		type open struct {
			writer
			stamp int64
		}
		var writers []open
		now := int64(0)
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			now++
			switch action := rapid.IntRange(0, 4).Draw(t, "action"); {
			case action == 0:
				writers = append(writers, open{tx(string(rune('a' + i))), now})
			case action == 1 && len(writers) > 0:
				n := rapid.IntRange(0, len(writers)-1).Draw(t, "ends")
				writers = append(writers[:n:n], writers[n+1:]...)
			case action == 2 && len(writers) > 0:
				n := rapid.IntRange(0, len(writers)-1).Draw(t, "is prepared")
				if !writers[n].prepared {
					writers[n].writer = asPrepared(writers[n].id + " prepared")
				}
			default:
				s := sampled(now)
				lowest := int64(math.MaxInt64)
				for i, w := range writers {
					lowest = min(lowest, w.stamp)
					if !w.prepared && rapid.Bool().Draw(t, "is prepared meanwhile") {
						s.writers = append(s.writers, w.writer)
						writers[i].writer = asPrepared(w.id + " prepared")
					}
					s.writers = append(s.writers, writers[i].writer)
				}
				require.LessOrEqual(t, f.next(s), lowest)
			}
		}
	})
}
