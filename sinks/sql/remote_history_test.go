package sql_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// inHistory are the deliveries of records first to first+n-1 after a promotion that left the cursor
// behind record first-1.
func inHistory(first, n int) []processor.Delivery {
	all := sinktest.Under(1_000_004, sinktest.Deliveries(first, n))
	for i := range all {
		all[i].Sequence += cursor.HistoryGap
		all[i].History = "1f0c77a2"
		all[i].CreatedAt = time.Time{}
	}
	return all
}

// later puts the last of some records at another position.
func later(all []processor.Delivery, at cursor.Position) []processor.Delivery {
	all[len(all)-1].Position = at
	return all
}

// stamped gives records a time of creation.
func stamped(all []processor.Delivery) []processor.Delivery {
	for i := range all {
		all[i].CreatedAt = time.UnixMicro(int64(1_700_000_000_000_000 + i)).UTC()
	}
	return all
}

// TestRemote_GoesOnAfterAPromotionThatLostNothing: also where the target has applied a record whose
// advance was lost.
func TestRemote_GoesOnAfterAPromotionThatLostNothing(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]int{"in step": 0, "one ahead": 1, "three ahead": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			s := r.sink(t, nil)
			before, after := stamped(sinktest.Deliveries(1, 5)), inHistory(6-ahead, 2+ahead)
			for i := range after {
				after[i].CreatedAt = time.UnixMicro(int64(1_700_000_000_000_000 + 5 - ahead + i)).UTC()
			}
			sinktest.Delivered(t, s, before)
			sinktest.Delivered(t, s, after[:1]) // as one that has failed before
			sinktest.Delivered(t, s, after[1:])
			require.Equal(t, "1 2 3 4 5 6 7", r.ids(t), "each once")
		})
	}
}

// TestRemote_GoesOnAfterAPromotionBehindWhatWasPassedOver: it has not applied the last records before
// the promotion, and knows why: it refused them, or an operator had sought further.
func TestRemote_GoesOnAfterAPromotionBehindWhatWasPassedOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refused int
		next    []processor.Delivery
		want    string
	}{
		"put aside":                {1, inHistory(7, 2), "1 2 3 4 5 7 8"},
		"two put aside":            {2, inHistory(8, 1), "1 2 3 4 5 8"},
		"sought":                   {0, sought(inHistory(9, 1), 3), "1 2 3 4 5 9"},
		"sought behind a letter":   {1, sought(inHistory(9, 1), 2), "1 2 3 4 5 9"},
		"more than was refused":    {1, inHistory(8, 1), ""},
		"sought from further back": {1, sought(inHistory(9, 1), 4), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			s := r.sink(t, nil)
			sinktest.Delivered(t, s, stamped(sinktest.Deliveries(1, 5)))
			restore := r.refuse(t, "refused")
			for _, d := range sinktest.Deliveries(6, test.refused) {
				d.Type = "refused"
				_, err := sinktest.Deliver(t, s, []processor.Delivery{d})
				require.True(t, processor.IsPermanent(err), err)
			}
			restore()
			if test.want == "" {
				_, err := sinktest.Deliver(t, s, test.next)
				require.ErrorIs(t, err, sql.ErrMissing)
				return
			}
			sinktest.Delivered(t, s, test.next)
			require.Equal(t, test.want, r.ids(t))
		})
	}
}

// sought has an operator seek over some records, before the promotion.
func sought(all []processor.Delivery, over int64) []processor.Delivery {
	for i := range all {
		all[i].Sequence += cursor.SeekGap - over
	}
	return all
}

// TestRemote_RefusesWhereThePromotedSourceMayHaveLostWhatItHas: rows of the new primary are neither
// taken for those that were applied, nor are those applied twice.
func TestRemote_RefusesWhereThePromotedSourceMayHaveLostWhatItHas(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	sinktest.Delivered(t, s, stamped(sinktest.Deliveries(1, 5)))
	for name, ds := range map[string][]processor.Delivery{
		"ids without a time prove nothing": inHistory(5, 2),
		"fewer than were applied":          inHistory(3, 1),
		"another record stands there":      stamped(inHistory(5, 2)), // at its position, and of another time
		"one that is new, too early":       later(stamped(inHistory(4, 2)), "int:00000000000000000009"),
	} {
		n, err := sinktest.Deliver(t, s, ds)
		require.ErrorIs(t, err, sql.ErrHistory, name)
		require.False(t, processor.IsPermanent(err), name)
		require.ErrorContains(t, err, "seek sms --to-position 'int:00000000000000000005'")
		require.Zero(t, n, name)
	}
	require.Equal(t, "1 2 3 4 5", r.ids(t))

	sinktest.Delivered(t, s, sinktest.Under(1_000_005, sought(inHistory(6, 2), 0))) // as the error says, where both agree
	require.Equal(t, "1 2 3 4 5 6 7", r.ids(t))
}

// at gives records times of creation, a second apart.
func at(second int64, all []processor.Delivery) []processor.Delivery {
	for i := range all {
		all[i].CreatedAt = time.Unix(1_700_000_000+second+int64(i), 0).UTC()
	}
	return all
}

// TestRemote_RefusesRowsThatAClockHasStampedBeforeWhatItHas: each record that comes again has to be the
// very one that was applied, and not only the last of them: the clock of the new primary is behind, or
// a transaction that was slow is lost, and a later one is not.
func TestRemote_RefusesRowsThatAClockHasStampedBeforeWhatItHas(t *testing.T) {
	t.Parallel()
	last := at(54, inHistory(5, 1))
	for name, again := range map[string][]processor.Delivery{
		"rows of the same ids, stamped before": at(1, inHistory(4, 2)),
		"another one, and the last one":        append(at(1, inHistory(4, 1)), last...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			s := r.sink(t, nil)
			sinktest.Delivered(t, s, at(50, sinktest.Deliveries(1, 5)))
			for _, window := range []int{1, len(again)} {
				n, err := sinktest.Deliver(t, s, again[:window])
				require.ErrorIs(t, err, sql.ErrHistory)
				require.Zero(t, n)
				require.Equal(t, "1 2 3 4 5", r.ids(t))
			}
		})
	}
}

// TestRemote_KnowsTheLast256RecordsThatComeAgain: of more nothing is known.
func TestRemote_KnowsTheLast256RecordsThatComeAgain(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	before := at(0, sinktest.Deliveries(1, 300))
	sinktest.Delivered(t, s, before[:10])
	sinktest.Delivered(t, s, before[10:])
	_, err := sinktest.Deliver(t, s, at(43, inHistory(44, 1)))
	require.ErrorIs(t, err, sql.ErrHistory, "257 back")
	sinktest.Delivered(t, s, at(44, inHistory(45, 100)))
	sinktest.Delivered(t, s, at(144, inHistory(145, 157)))
	require.Len(t, strings.Fields(r.ids(t)), 301)
}

// TestRemote_KnowsTheLastRecordByNotesOfAnEarlierVersion: and no more.
func TestRemote_KnowsTheLastRecordByNotesOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	sinktest.Delivered(t, s, at(0, sinktest.Deliveries(1, 5)))
	r.exec(t, "UPDATE public.ordered_dispatcher_applied SET recent = NULL")
	_, err := sinktest.Deliver(t, s, at(3, inHistory(4, 3)))
	require.ErrorIs(t, err, sql.ErrHistory)
	sinktest.Delivered(t, s, at(4, inHistory(5, 2)))
	require.Equal(t, "1 2 3 4 5 6", r.ids(t))
}

// TestRemote_AppliesAgainWhatWasTakenOutOfTheTarget: the other way out of the refusal.
func TestRemote_AppliesAgainWhatWasTakenOutOfTheTarget(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 5))
	again := inHistory(4, 3)
	_, err := sinktest.Deliver(t, s, again)
	require.ErrorIs(t, err, sql.ErrHistory)
	r.exec(t, `DELETE FROM public.received WHERE id::int > 3`)
	statement := regexp.MustCompile(`UPDATE .* WHERE process_name = '[^']*' AND position = '[^']*'`).FindString(err.Error())
	require.NotEmpty(t, statement)
	r.exec(t, statement)
	sinktest.Delivered(t, s, again)
	require.Equal(t, "1 2 3 4 5 6", r.ids(t))
}

// TestRemote_BeginsWithTheFirstRecordOfACursor: also where its numbers begin past those of one that
// may be lost, and behind what was there at its start.
func TestRemote_BeginsWithTheFirstRecordOfACursor(t *testing.T) {
	t.Parallel()
	for name, ds := range map[string][]processor.Delivery{
		"the first one":           sinktest.Deliveries(1, 3),
		"in a history of its own": sinktest.Under(28_000_001, numbered(28*cursor.HistoryGap+1, sinktest.Deliveries(1, 3))),
		"from the end":            sinktest.Under(28_000_001, numbered(28*cursor.HistoryGap+1, sinktest.Deliveries(5, 3))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			s := r.sink(t, nil)
			for range 2 {
				sinktest.Delivered(t, s, ds)
			}
			require.Len(t, strings.Fields(r.ids(t)), 3)
		})
	}
	r := newRemote(t)
	_, err := sinktest.Deliver(t, r.sink(t, nil), sinktest.Under(28_000_001, numbered(27*cursor.HistoryGap+1, sinktest.Deliveries(1, 1))))
	require.ErrorIs(t, err, sql.ErrMissing, "a process that has delivered elsewhere before")
}

// TestRemote_SaysWhatATargetLacksAfterAPromotion: the target has lost more than the source, so
// nothing that it has can be gone there. Each way out is what the error says.
func TestRemote_SaysWhatATargetLacksAfterAPromotion(t *testing.T) {
	t.Parallel()
	for name, goOn := range map[string]func(*testing.T, *remote, error) []processor.Delivery{
		"they come": func(t *testing.T, _ *remote, err error) []processor.Delivery {
			require.ErrorContains(t, err, "seek sms --to-position 'int:00000000000000000003'")
			ds := sinktest.Under(1_000_005, inHistory(4, 5))
			for i := range ds {
				ds[i].Sequence = cursor.HistoryGap + 6 + cursor.SeekGap + 1 + int64(i)
			}
			return ds
		},
		"they need not come": func(t *testing.T, r *remote, err error) []processor.Delivery {
			r.obey(t, err, "INSERT ")
			require.Equal(t, "4 5 6", r.text(t, "SELECT string_agg(sequence::text, ' ' ORDER BY sequence) FROM public.ordered_dispatcher_refused"))
			return inHistory(7, 2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			s := r.sink(t, nil)
			sinktest.Delivered(t, s, stamped(sinktest.Deliveries(1, 3)))
			for _, ds := range [][]processor.Delivery{inHistory(7, 2), inHistory(7, 1)} {
				n, err := sinktest.Deliver(t, s, ds)
				require.ErrorIs(t, err, sql.ErrMissing)
				require.NotErrorIs(t, err, sql.ErrHistory)
				require.True(t, processor.IsUnreached(err), err)
				require.ErrorContains(t, err, "up to number 3, and 3 numbers lie between")
				require.NotContains(t, err.Error(), "UPDATE", "it would pass over what is missing")
				require.Zero(t, n)
			}
			_, err := sinktest.Deliver(t, s, inHistory(7, 2))
			sinktest.Delivered(t, s, goOn(t, r, err))
			want := map[string]string{"they come": "1 2 3 4 5 6 7 8", "they need not come": "1 2 3 7 8"}
			require.Equal(t, want[name], r.ids(t))
		})
	}
}
