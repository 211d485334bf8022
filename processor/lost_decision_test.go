package processor_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// TestRun_ADecisionThatAPromotionLosesIsMissingInTheHistory: it is a commit like any other. What the
// checklist for a failover says to look for is there, and the decision can be made again.
func TestRun_ADecisionThatAPromotionLosesIsMissingInTheHistory(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(primary *pgxpool.Pool) {
		s := store(t, primary)
		_, err := s.Create(t.Context(), "sms", "")
		require.NoError(t, err)
		decide(t, primary, (*operator.Operator).Pause)
		decide(t, primary, (*operator.Operator).Resume)
		insert(t, primary, 1)
	})
	decide(t, p.primary, (*operator.Operator).Pause)
	sink := &receiver{}
	p.run(t, sink, table.Config{Table: "dispatch.bookings", Columns: table.Columns{ID: "id"}})
	p.promote(t)
	p.link.Retarget(p.promoted)
	p.link.Cut()
	eventually(t, "the process that was paused delivers", func() bool { return sink.calls() == 1 })

	promoted := store(t, p.standby)
	eventually(t, "its advance is noted", func() bool {
		row, err := promoted.Look(t.Context(), "sms")
		require.NoError(t, err)
		return row.Position != ""
	})
	require.Equal(t, []string{"promoted", "resume", "pause", "create"}, actions(t, promoted), "the newest first, without the second pause")
	decide(t, p.standby, (*operator.Operator).Pause)
	row, err := promoted.Look(t.Context(), "sms")
	require.NoError(t, err)
	require.Equal(t, cursor.Paused, row.State)
	require.Equal(t, 1, sink.calls())
}

func actions(t *testing.T, s *cursor.Store) (all []string) {
	t.Helper()
	events, err := operator.New(s).History(t.Context(), "sms", 10)
	require.NoError(t, err)
	for _, e := range events {
		all = append(all, e.Action)
	}
	return all
}
