package operator_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

const (
	foreignEvents = 100_000
	ownEvents     = 1_000
)

// foreign are layouts of the events of the process "noisy" and of the process "quiet", which was "old" once. The
// planner takes another way if the events of one process are not side by side.
var foreign = map[string]string{
	"after its own": fmt.Sprintf(`
		INSERT INTO dispatch.cursor_event (process_name, actor, action)
		SELECT CASE WHEN i > %d THEN 'noisy' ELSE 'quiet' END, 'a', CASE WHEN i %% 2 = 0 THEN 'halt' ELSE 'retry' END
		FROM generate_series(1, %d) i`, ownEvents, ownEvents+foreignEvents),
	"between its own": fmt.Sprintf(`
		INSERT INTO dispatch.cursor_event (process_name, actor, action)
		SELECT CASE WHEN i %% %d = 0 THEN 'quiet' ELSE 'noisy' END, 'a', CASE WHEN i / 7 %% 2 = 0 THEN 'halt' ELSE 'retry' END
		FROM generate_series(1, %d) i`, foreignEvents/ownEvents, foreignEvents),
	"after those of many": fmt.Sprintf(`
		INSERT INTO dispatch.cursor_event (process_name, actor, action)
		SELECT coalesce('p' || nullif(i %% 50, 0), 'quiet'), 'a', CASE WHEN i / 50 %% 2 = 0 THEN 'halt' ELSE 'retry' END
		FROM generate_series(1, 50 * %d) i;
		INSERT INTO dispatch.cursor_event (process_name, actor, action)
		SELECT 'noisy', 'a', 'halt' FROM generate_series(1, %d) i`, ownEvents, foreignEvents),
}

// TestHistory_CostsWhatIsReturnedWhateverOtherProcessesNoted counts the rows and the blocks of cursor_event that a
// history reads.
func TestHistory_CostsWhatIsReturnedWhateverOtherProcessesNoted(t *testing.T) {
	t.Parallel()
	for name, fill := range foreign {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			exec(t, pool, `INSERT INTO dispatch.cursor_event (process_name, actor, action) SELECT 'old', 'a', 'halt' FROM generate_series(1, 100)`)
			exec(t, pool, `INSERT INTO dispatch.cursor_event (process_name, actor, action, detail) VALUES ('quiet', 'a', 'rename', '{"old": "old"}')`)
			exec(t, pool, fill)
			exec(t, pool, "VACUUM ANALYZE dispatch.cursor_event")
			requireCheapHistory(t, pool)
		})
	}
	t.Run("upgraded", func(t *testing.T) {
		t.Parallel()
		pool, config := database(t), migrations.Config{ConnString: pgtest.URL(t), Schema: "dispatch"}
		undone, err := migrations.Down(t.Context(), config)
		require.NoError(t, err)
		require.Equal(t, "00007_event_action.sql", undone.Name)
		exec(t, pool, `INSERT INTO dispatch.cursor_event (process_name, actor, action, detail) VALUES ('quiet', 'a', 'rename', '{"old": "old"}')`)
		exec(t, pool, foreign["between its own"])
		_, err = migrations.Up(t.Context(), config)
		require.NoError(t, err)
		exec(t, pool, "VACUUM ANALYZE dispatch.cursor_event")
		requireCheapHistory(t, pool)
	})
}

func requireCheapHistory(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, process := range []string{"quiet", "noisy"} {
		for _, c := range []struct {
			actions string
			limit   int
			most    int // rows
		}{
			{"NULL", 1, 4},
			{"NULL", 100, 202},
			{"'halt'", 1, 4},
			{"'halt'", 100, 202},
			{"'pause,resume'", 100, 2},
			{"'pause,halt'", 100, 202},
		} {
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				rows, blocks, plan := historyCost(t, pool, mode, process, c.actions, c.limit)
				require.LessOrEqual(t, rows, c.most, "%s of %s, %d, %s:\n%s", c.actions, process, c.limit, mode, plan)
				require.LessOrEqual(t, blocks, c.most+30, "%s of %s, %d, %s:\n%s", c.actions, process, c.limit, mode, plan)
			}
		}
	}
	for _, actions := range []string{"NULL", "'halt,retry,pause'"} {
		rows, blocks, plan := historyCost(t, pool, "auto", "quiet", actions, operator.MaxHistory)
		require.LessOrEqual(t, rows, 2*ownEvents, "%s:\n%s", actions, plan)
		require.LessOrEqual(t, blocks, 2*ownEvents, "%s:\n%s", actions, plan)
	}
}

// scan is a node of a plan.
type scan struct {
	Table   string  `json:"Relation Name"`
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	Hit     int     `json:"Shared Hit Blocks"`
	Read    int     `json:"Shared Read Blocks"`
	Plans   []scan
}

// read counts the rows that the node, and those below it, read of the audit.
func (s scan) read() (rows int) {
	if s.Table == "cursor_event" {
		rows = int((s.Rows + s.Removed) * s.Loops)
	}
	for _, below := range s.Plans {
		rows += below.read()
	}
	return rows
}

func historyCost(t *testing.T, pool *pgxpool.Pool, mode, process, actions string, limit int) (rows, blocks int, plan string) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	exec(t, conn, "SET plan_cache_mode = "+mode)
	exec(t, conn, "PREPARE history AS "+operator.HistorySQL(operator.New(store(t, pool, "a"))))
	plan = pgtest.Value[string](t, conn, fmt.Sprintf("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE history('%s', '%d', %s)", process, limit, actions))
	exec(t, conn, "DEALLOCATE history")
	var plans []struct{ Plan scan }
	require.NoError(t, json.Unmarshal([]byte(plan), &plans))
	return plans[0].Plan.read(), plans[0].Plan.Hit + plans[0].Plan.Read, plan
}
