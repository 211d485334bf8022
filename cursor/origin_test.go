package cursor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

// originOf reads the origin of a process with a lease.
func originOf(t *testing.T, s *cursor.Store, process string) string {
	t.Helper()
	lease, err := s.Acquire(t.Context(), process)
	require.NoError(t, err)
	defer lease.Release()
	require.Len(t, lease.Origin(), 36)
	return lease.Origin()
}

func TestOrigin_IsOfOneCursorForAllItsLife(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	first := originOf(t, s, "sms")
	require.Equal(t, first, originOf(t, store(t, pool, "b"), "sms"), "in another epoch")
	_, err := s.Create(t.Context(), "mails", "")
	require.NoError(t, err)
	require.NotEqual(t, first, originOf(t, s, "mails"), "of another cursor")

	exec(t, pool, `DELETE FROM dispatch.cursor`)
	_, err = s.Recreate(t.Context(), "sms", "")
	require.NoError(t, err)
	require.Equal(t, first, originOf(t, s, "sms"), "of a row that was put back")
	exec(t, pool, `TRUNCATE dispatch.cursor`)
	_, err = s.Recreate(t.Context(), "sms", "")
	require.NoError(t, err)
	require.Equal(t, first, originOf(t, s, "sms"), "of a table that was emptied")

	_, err = operator.New(s).Rename(t.Context(), "sms", "texts", cursor.Decision{Actor: "me", Reason: "a test"})
	require.NoError(t, err)
	require.Equal(t, first, originOf(t, s, "texts"), "under another name")
	_, err = s.Recreate(t.Context(), "sms", "")
	require.NoError(t, err)
	another := originOf(t, s, "sms")
	require.NotEqual(t, first, another, "of another cursor under the earlier name")

	_, err = operator.New(s).Forget(t.Context(), "sms", cursor.Decision{Actor: "me", Reason: "a test"})
	require.NoError(t, err)
	_, err = operator.New(s).Rename(t.Context(), "texts", "sms", cursor.Decision{Actor: "me", Reason: "a test"})
	require.NoError(t, err)
	require.Equal(t, first, originOf(t, s, "sms"), "under the name of a cursor that was forgotten")
}
