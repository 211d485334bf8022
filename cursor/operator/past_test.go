package operator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestPast_ACursorThatIsThereIsNotDeleted(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "w1")
	require.ErrorIs(t, s.Past(t.Context(), "sms"), cursor.ErrExists)
	exec(t, pool, "CREATE TABLE dispatch.kept AS TABLE dispatch.cursor; DELETE FROM dispatch.cursor")
	require.ErrorIs(t, s.Past(t.Context(), "sms"), cursor.ErrDeleted)
	exec(t, pool, "INSERT INTO dispatch.cursor TABLE dispatch.kept")
	require.ErrorIs(t, s.Past(t.Context(), "sms"), cursor.ErrExists, "it was put back")
	require.NoError(t, s.Past(t.Context(), "mail"))
}

// TestPrepare_BesideTheFirstRunSaysThatTheCursorIsThere: the worker's transaction makes it,
// and the statement of the operator waits for that.
func TestPrepare_BesideTheFirstRunSaysThatTheCursorIsThere(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := store(t, pool, "w1")
	tx := pgtest.Begin(t, pool, `
		INSERT INTO dispatch.cursor (process_name, position) VALUES ('sms', '');
		INSERT INTO dispatch.cursor_event (process_name, actor, action) VALUES ('sms', 'w2', 'create')`)
	prepared := make(chan error, 1)
	go func() {
		_, err := operator.New(s).Prepare(t.Context(), "sms", "", cursor.Paused, "pause", alice)
		prepared <- err
	}()
	require.Eventually(t, func() bool {
		var waits bool
		err := pool.QueryRow(t.Context(), `SELECT EXISTS (
			SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%cursor.prepare%')`).Scan(&waits)
		return err == nil && waits
	}, patience, 10*time.Millisecond)
	require.NoError(t, tx.Commit(t.Context()))
	require.ErrorIs(t, <-prepared, cursor.ErrExists)
}

// TestForget_OfACursorThatIsBackDoesNotCallItsNameFree: it was put back, or made by a worker,
// after the command had found no row.
func TestForget_OfACursorThatIsBackDoesNotCallItsNameFree(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "w1")
	change, err := operator.ForgetGone(t.Context(), operator.New(s), "sms", alice)
	require.ErrorIs(t, err, cursor.ErrExists)
	require.False(t, change.Changed)
	require.Equal(t, []string{"create"}, actionsOf(history(t, s)))
}
