package operator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

// TestSeekAnew_BeginsAHistoryBeforeAllRecords: they come under keys that no record had, also after a later seek back. The
// numbers move as after any seek.
func TestSeekAnew_BeginsAHistoryBeforeAllRecords(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]cursor.Position{"back": "p2", "forward": "p7", "to the start": "", "to where it stands": "p4"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			s := created(t, pool, "a")
			fail(t, s, true)
			was := look(t, s)
			before, err := operator.New(s).Horizon(t.Context(), "sms")
			require.NoError(t, err)
			require.NotEmpty(t, before)

			d := alice
			d.DryRun = true
			_, err = operator.New(s).SeekAnew(t.Context(), "sms", to, d)
			require.NoError(t, err)
			require.Equal(t, was.UpdatedAt, look(t, s).UpdatedAt, "a rehearsal changes nothing")
			change, err := operator.New(s).SeekAnew(t.Context(), "sms", to, alice)
			require.NoError(t, err)
			after := look(t, s)
			require.JSONEq(t, string(after.Histories), string(change.After.Histories))
			require.Equal(t, cursor.Running, after.State)
			require.Equal(t, was.Sequence+cursor.SeekGap, after.Sequence)
			require.Equal(t, was.Epoch+1, after.Epoch)
			lease := acquire(t, s)
			require.Equal(t, to, lease.Position())
			require.Empty(t, lease.History(""))
			require.Len(t, lease.History("p0"), 8)
			lease.Release()

			_, err = operator.New(s).Seek(t.Context(), "sms", "", alice)
			require.NoError(t, err)
			require.Equal(t, after.Histories, look(t, s).Histories, "a plain seek begins none")
			_, err = operator.New(s).SeekAnew(t.Context(), "sms", "", alice)
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
	_, err := operator.New(s).SeekAnew(t.Context(), "sms", "", alice)
	require.NoError(t, err)
	require.ErrorAs(t, s.Promoted(t.Context(), "sms"), new(*cursor.PromotedError))
}

// TestHaltReset_WhatAnOperatorDecidesThenBeginsAHistory: a sequence that has come past the position since does not show any more that
// ids have started again, so an ordinary decision begins the history. The server is the same, so no range of numbers is left out.
func TestHaltReset_WhatAnOperatorDecidesThenBeginsAHistory(t *testing.T) {
	t.Parallel()
	for name, decide := range map[string]func(*cursor.Store) (operator.Change, error){
		"retry": func(s *cursor.Store) (operator.Change, error) {
			return operator.New(s).Retry(t.Context(), "sms", alice)
		},
		"seek": func(s *cursor.Store) (operator.Change, error) {
			return operator.New(s).Seek(t.Context(), "sms", "p1", alice)
		},
		"seek anew": func(s *cursor.Store) (operator.Change, error) {
			return operator.New(s).SeekAnew(t.Context(), "sms", "p1", alice)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := standing(t)
			was := look(t, s)
			require.ErrorIs(t, s.HaltReset(t.Context(), "sms", cursor.ResetHalt{At: "p3", Reason: "it was reset"}), cursor.ErrHalted)
			require.Equal(t, cursor.ClassReset, look(t, s).Failure.Class)
			_, err := operator.New(s).Forget(t.Context(), "sms", alice)
			require.ErrorIs(t, err, cursor.ErrHalted, "nobody would know any more")

			change, err := decide(s)
			require.NoError(t, err)
			require.False(t, change.Looks)
			after := look(t, s)
			require.Equal(t, cursor.Running, after.State)
			require.Equal(t, was.Sequence+cursor.SeekGap, after.Sequence)
			require.Equal(t, was.Epoch+1, after.Epoch)
			lease := acquire(t, s)
			require.Len(t, lease.History("p0"), 8)
			lease.Release()
			_, err = operator.New(s).Forget(t.Context(), "sms", alice)
			require.NoError(t, err)
		})
	}
}

// TestHaltReset_HoldsUnlessAnOperatorMovedTheCursorBack: that the ids were before a position is as true of what is behind it.
func TestHaltReset_HoldsUnlessAnOperatorMovedTheCursorBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*cursor.ResetHalt)
		want   error
	}{
		"as it was":                  {func(*cursor.ResetHalt) {}, cursor.ErrHalted},
		"another worker moved it on": {func(h *cursor.ResetHalt) { h.At = "p2" }, cursor.ErrHalted},
		"an operator moved it back":  {func(h *cursor.ResetHalt) { h.At = "p4" }, nil},
		"it was read on another one": {func(h *cursor.ResetHalt) { h.Server = "another run" }, cursor.ErrElsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := standing(t)
			h := cursor.ResetHalt{At: "p3", Reason: "it was reset"}
			c.change(&h)
			require.ErrorIs(t, s.HaltReset(t.Context(), "sms", h), c.want)
			require.Equal(t, c.want == cursor.ErrHalted, look(t, s).State == cursor.Halted)
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
			horizon, err := operator.New(s).Horizon(t.Context(), "sms")
			require.NoError(t, err)
			require.Empty(t, horizon)
			_, err = operator.New(s).Horizon(t.Context(), "nobody's")
			require.ErrorIs(t, err, cursor.ErrUnknown)
		})
	}
}
