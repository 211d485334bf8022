package cursor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// TestSeekAnew_BeginsAHistoryBehindTheFirstOfBothPositions: records from there on come under keys that no record had. The
// numbers move as after any seek.
func TestSeekAnew_BeginsAHistoryBehindTheFirstOfBothPositions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ to, first cursor.Position }{
		"back": {"p2", "p2"}, "forward": {"p7", "p4"}, "to the start": {"", ""}, "to where it stands": {"p4", "p4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			s := created(t, pool, "a")
			fail(t, s, true)
			was := look(t, s)
			before, err := s.Horizon(t.Context(), "sms")
			require.NoError(t, err)
			require.NotEmpty(t, before)

			d := alice
			d.DryRun = true
			_, err = s.SeekAnew(t.Context(), "sms", c.to, d)
			require.NoError(t, err)
			require.Equal(t, was.UpdatedAt, look(t, s).UpdatedAt, "a rehearsal changes nothing")
			change, err := s.SeekAnew(t.Context(), "sms", c.to, alice)
			require.NoError(t, err)
			after := look(t, s)
			require.JSONEq(t, string(after.Histories), string(change.After.Histories))
			require.Equal(t, cursor.Running, after.State)
			require.Equal(t, was.Sequence+cursor.SeekGap, after.Sequence)
			require.Equal(t, was.Epoch+1, after.Epoch)
			lease := acquire(t, s)
			require.Equal(t, c.to, lease.Position())
			require.Empty(t, lease.History(c.first))
			require.Len(t, lease.History(c.first+"~"), 8)
			lease.Release()

			_, err = s.Seek(t.Context(), "sms", "", alice)
			require.NoError(t, err)
			require.Equal(t, after.Histories, look(t, s).Histories, "a plain seek begins none")
			_, err = s.SeekAnew(t.Context(), "sms", "", alice)
			require.NoError(t, err)
			require.NotEqual(t, after.Histories, look(t, s).Histories)
		})
	}
}

// TestSeekAnew_LeavesAPromotionToBeNoted: its numbers are not past those that were lost.
func TestSeekAnew_LeavesAPromotionToBeNoted(t *testing.T) {
	t.Parallel()
	s, _ := standing(t)
	back(t, s, `timeline = timeline + 7`)
	_, err := s.SeekAnew(t.Context(), "sms", "", alice)
	require.NoError(t, err)
	require.ErrorAs(t, s.Promoted(t.Context(), "sms"), new(*cursor.PromotedError))
}

// TestHaltReset_WhatAnOperatorDecidesThenBeginsAHistory: a sequence that has come past the position since does not show any more that
// ids have started again, so an ordinary decision begins the history. The server is the same, so no range of numbers is left out.
func TestHaltReset_WhatAnOperatorDecidesThenBeginsAHistory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		decide func(*cursor.Store) (cursor.Change, error)
		after  cursor.Position
	}{
		"retry":    {func(s *cursor.Store) (cursor.Change, error) { return s.Retry(t.Context(), "sms", alice) }, "p3"},
		"seek":     {func(s *cursor.Store) (cursor.Change, error) { return s.Seek(t.Context(), "sms", "p1", alice) }, "p1"},
		"seekanew": {func(s *cursor.Store) (cursor.Change, error) { return s.SeekAnew(t.Context(), "sms", "p1", alice) }, "p1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := standing(t)
			was := look(t, s)
			require.NoError(t, s.HaltReset(t.Context(), "sms", "", "p2", "moved since"))
			require.ErrorIs(t, s.HaltReset(t.Context(), "sms", "another run", "p3", "another server"), cursor.ErrElsewhere)
			require.ErrorIs(t, s.HaltReset(t.Context(), "sms", "", "p3", "the sequence was reset"), cursor.ErrHalted)
			require.Equal(t, cursor.ClassReset, look(t, s).Failure.Class)
			change, err := c.decide(s)
			require.NoError(t, err)
			require.False(t, change.Looks)
			after := look(t, s)
			require.Equal(t, cursor.Running, after.State)
			require.Equal(t, was.Sequence+cursor.SeekGap, after.Sequence)
			require.Equal(t, was.Epoch+1, after.Epoch)
			lease := acquire(t, s)
			require.Empty(t, lease.History(c.after))
			require.Len(t, lease.History(c.after+"~"), 8)
			lease.Release()
		})
	}
}

// TestHorizon_OfAnotherDatabaseIsNotKnown: its transactions say nothing here.
func TestHorizon_OfAnotherDatabaseIsNotKnown(t *testing.T) {
	t.Parallel()
	for _, moved := range []string{`system_identifier = 7`, `database_oid = 7`, `horizon = '3'`, `horizon = '999999999'`} {
		t.Run(moved, func(t *testing.T) {
			t.Parallel()
			s, _ := standing(t)
			back(t, s, moved)
			horizon, err := s.Horizon(t.Context(), "sms")
			require.NoError(t, err)
			require.Empty(t, horizon)
			_, err = s.Horizon(t.Context(), "nobody's")
			require.ErrorIs(t, err, cursor.ErrUnknown)
		})
	}
}
