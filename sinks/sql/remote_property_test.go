package sql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// Cursors of several databases have processes of one name and one target. Their workers
// change, repeat what the cursor did not hear of, and lose their connections. The target
// has each record of the first cursor once, in order, and none of another.
func TestRemote_OfAnyCursorsUnderOneNameTheFirstHasTheTarget(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	checks := 0
	rapid.Check(t, func(rt *rapid.T) {
		checks++
		process, first := fmt.Sprintf("p%d", checks), ""
		heard := map[string]int{} // by its cursor, of each origin
		applied := 0              // of the first one
		epoch := cursor.Epoch(1)
		for range rapid.IntRange(1, 8).Draw(rt, "calls") {
			origin := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "origin")
			if first == "" {
				first = origin
			}
			if rapid.IntRange(0, 9).Draw(rt, "hang up") == 0 {
				r.hangUp(t)
			}
			if rapid.Bool().Draw(rt, "another worker") {
				epoch++
			}
			ds := of(process, from(origin, sinktest.Under(epoch, sinktest.Deliveries(heard[origin]+1, rapid.IntRange(1, 4).Draw(rt, "records")))))
			for i := range ds {
				ds[i].Type = process
			}
			n, err := sinktest.Deliver(t, s, ds)
			if origin != first {
				require.ErrorIs(rt, err, sql.ErrOrigin)
				require.True(rt, processor.IsUnreached(err))
				heard[origin] += rapid.IntRange(0, 2).Draw(rt, "skipped") // by its operator
				continue
			}
			require.NoError(rt, err)
			applied = max(applied, heard[origin]+n)
			heard[origin] += rapid.IntRange(0, n).Draw(rt, "heard")
		}
		var want []string
		for id := 1; id <= applied; id++ {
			want = append(want, fmt.Sprint(id))
		}
		got := r.text(t, "SELECT coalesce(string_agg(id, ' ' ORDER BY n), '') FROM public.received WHERE type = '"+process+"'")
		require.Equal(rt, strings.Join(want, " "), got)
	})
}
