package daemon_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestStatus_CountsOpenDeadLetters(t *testing.T) {
	t.Parallel()
	pool := database(t)
	config := configure(t, pgtest.URL(t), stdoutProcess)
	require.NoError(t, drain(t, config))
	_, text, document := status(t, config, "")
	require.NotContains(t, text, "dead letter")
	require.EqualValues(t, 0, document["dead_letters"])

	exec(t, pool, `INSERT INTO od.dead_letter (process_name, position, sequence, table_name, record_id, attempts, first_failed_at, error, class)
		SELECT 'a', 'p', i, 't', i, 1, now(), 'e', 'permanent' FROM generate_series(1, 3) i;
		UPDATE od.dead_letter SET resolution = 'discarded', resolved_at = now() WHERE sequence = 3`)
	_, text, document = status(t, config, "")
	require.Contains(t, text, "a: 2 dead letters are open; next: `ordered-dispatcher dead-letter list a`")
	require.EqualValues(t, 2, document["dead_letters"])
}
