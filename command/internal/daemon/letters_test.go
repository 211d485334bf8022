package daemon_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestStatus_CountsOpenDeadLetters(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	require.NoError(t, drain(t, config))
	_, text, document := status(t, config, "")
	require.NotContains(t, text, "dead letter")
	require.EqualValues(t, 0, document["dead_letters"])

	letters(t, pool, 3)
	exec(t, pool, `UPDATE od.dead_letter SET resolution = 'discarded', resolved_at = now() WHERE sequence = 3`)
	_, text, document = status(t, config, "")
	require.Contains(t, text, "a: 2 dead letters are open; next: `ordered-dispatcher dead-letter list a`")
	require.EqualValues(t, 2, document["dead_letters"])
}

// letters puts n records of process a aside.
func letters(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	exec(t, pool, fmt.Sprintf(`INSERT INTO od.dead_letter (process_name, position, sequence, table_name, record_id, attempts, first_failed_at, error, class)
		SELECT 'a', 'p' || i, i, 't', i, 1, now(), 'e', 'permanent' FROM generate_series(1, %d) i`, n))
}

func TestMetrics_ShowDeadLettersUntilTheyAreResolved(t *testing.T) {
	t.Parallel()
	pool := database(t)
	m := monitor(t, configure(t, pgtest.URL(t), stdoutProcess))
	m.until("dead_letters_open", is(0))
	letters(t, pool, 3)
	m.until("dead_letters_open", is(3))
	exec(t, pool, "UPDATE od.dead_letter SET resolution = 'discarded', resolved_at = now() WHERE sequence > 1")
	m.until("dead_letters_open", is(1))
	require.Zero(t, m.series()["dead_letters_total{permanent}"], "this worker put none aside")

	exec(t, pool, "ALTER TABLE od.dead_letter RENAME TO moved")
	require.Eventually(t, func() bool {
		_, there := m.series()["dead_letters_open"]
		return !there
	}, patience, 20*time.Millisecond, "an old number would be taken for true")
	require.Contains(t, m.log.String(), "the open dead letters cannot be counted")
	m.until("lag_records", is(0))
	exec(t, pool, "ALTER TABLE od.moved RENAME TO dead_letter")
	m.until("dead_letters_open", is(1))
}

// A process with more dead letters than are counted hides those of no other.
func TestCountDeadLetters_OfEachProcess(t *testing.T) {
	t.Parallel()
	pool := database(t)
	letters(t, pool, operator.MaxCountedLetters+1)
	exec(t, pool, "UPDATE od.dead_letter SET process_name = 'b' WHERE id % 1000 = 0")
	exec(t, pool, "INSERT INTO od.cursor (process_name, position) VALUES ('a', ''), ('b', '')")
	config := configure(t, pgtest.URL(t), stdoutProcess+strings.Replace(stdoutProcess, "a:", "b:", 1))
	_, text, _ := status(t, config, "")
	require.Contains(t, text, "a: 99901 dead letters are open")
	require.Contains(t, text, "b: 100 dead letters are open")
	letters(t, pool, 100)
	_, text, _ = status(t, config, "")
	require.Contains(t, text, "a: 100000 dead letters or more are open")
	require.Contains(t, text, "b: 100 dead letters are open")
}
