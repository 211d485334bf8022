package cursor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

// TestRecreate_GoesOnPastTheNumbersOfTheCursorThatIsGone: a receiver that compares
// epochs would refuse the new worker, or take the old one's records.
func TestRecreate_GoesOnPastTheNumbersOfTheCursorThatIsGone(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]string{
		"deleted":                        `DELETE FROM dispatch.cursor`,
		"truncated":                      `TRUNCATE dispatch.cursor`,
		"renamed":                        `UPDATE dispatch.cursor SET process_name = 'other'`,
		"deleted, and the audit emptied": `DELETE FROM dispatch.cursor; DELETE FROM dispatch.cursor_event`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			s := created(t, pool, "a")
			for range 2 {
				lease := acquire(t, s)
				require.NoError(t, lease.Advance(t.Context(), "p5", 7))
				lease.Release()
				exec(t, pool, gone)
				_, err := s.Create(t.Context(), "sms", "")
				require.ErrorIs(t, err, cursor.ErrDeleted)
				_, err = s.Recreate(t.Context(), "sms", "")
				require.NoError(t, err)
				next := acquire(t, s)
				require.Greater(t, next.Epoch(), lease.Epoch())
				require.GreaterOrEqual(t, next.Sequence(), lease.Sequence()+cursor.SeekGap)
				next.Release()
				exec(t, pool, `DELETE FROM dispatch.cursor WHERE process_name = 'other'`)
			}
		})
	}
}

// TestHistory_RetentionKeepsWhatBecameOfAName: the audit may be emptied, and a
// cursor that was deleted is not made again all the same.
func TestHistory_RetentionKeepsWhatBecameOfAName(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	_, err := operator.New(s).Pause(t.Context(), "sms", cursor.Decision{Actor: "me"})
	require.NoError(t, err)
	exec(t, pool, `DELETE FROM dispatch.cursor_event WHERE at < $1`, time.Now().Add(time.Hour))
	events, err := operator.New(s).History(t.Context(), "sms", 10)
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Equal(t, "create", events[0].Action)
	exec(t, pool, `DELETE FROM dispatch.cursor`)
	_, err = s.Create(t.Context(), "sms", "")
	require.ErrorIs(t, err, cursor.ErrDeleted)
	_, err = pool.Exec(t.Context(), `TRUNCATE dispatch.cursor_event`)
	require.ErrorContains(t, err, "DELETE the old rows instead")
}

// TestHistory_ShowsWhoWasLoggedIn beside the actor that an operator claims to be.
func TestHistory_ShowsWhoWasLoggedIn(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	_, err := operator.New(s).Pause(t.Context(), "sms", cursor.Decision{Actor: "the chief"})
	require.NoError(t, err)
	events, err := operator.New(s).History(t.Context(), "sms", 1)
	require.NoError(t, err)
	require.Equal(t, "the chief", events[0].Actor)
	require.Equal(t, pool.Config().ConnConfig.User, events[0].User)
}
