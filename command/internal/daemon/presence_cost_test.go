package daemon_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// step is a node of a plan.
type step struct {
	Rows         float64 `json:"Actual Rows"`
	Loops        float64 `json:"Actual Loops"`
	Filtered     float64 `json:"Rows Removed by Filter"`
	FilteredPair float64 `json:"Rows Removed by Join Filter"`
	Plans        []step
}

// most returns the most rows that the node, or one below it, looked at.
func (s step) most() (rows int) {
	rows = int((s.Rows + s.Filtered + s.FilteredPair) * s.Loops)
	for _, below := range s.Plans {
		rows = max(rows, below.most())
	}
	return rows
}

// TestPresence_ComparesNoPairsOfAnnouncementsAndSessions: each step of the statement looks at each announcement, or at
// each session, a few times at most.
func TestPresence_ComparesNoPairsOfAnnouncementsAndSessions(t *testing.T) {
	t.Parallel()
	const announcements, sessions = 2000, 20
	pool, config := fixture(t, stdoutProcess)
	for range sessions {
		pgtest.Connect(t, pgtest.With(t, pgtest.URL(t), "application_name", config.Watching("x")))
	}
	exec(t, pool, fmt.Sprintf(`INSERT INTO od.cursor_event (process_name, actor, action, detail)
		SELECT 'p' || i, 'a', 'watch', '{"set": "0123456789ab"}' FROM generate_series(1, %d) i`, announcements))
	for _, analyzed := range []string{"SELECT", "ANALYZE od.cursor_event"} {
		exec(t, pool, analyzed)
		plan := pgtest.Value[string](t, pool, "EXPLAIN (ANALYZE, FORMAT JSON) "+config.WatchedSQL(), len("run/0123456789ab"))
		var plans []struct{ Plan step }
		require.NoError(t, json.Unmarshal([]byte(plan), &plans))
		require.Less(t, plans[0].Plan.most(), 3*announcements, "%s", plan)
	}
}
