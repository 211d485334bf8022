package operator_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

// rangeOfEpochs is more epochs than the lost server has given out since.
const rangeOfEpochs = 1_000_000

// TestDecision_BeforeTheServerIsNotedGivesOutNoEpochOfTheLostOne: whatever an operator decides before a worker has noted
// the promotion or the restore, its epoch is of a range that no server has used. The look of the worker stays owed.
func TestDecision_BeforeTheServerIsNotedGivesOutNoEpochOfTheLostOne(t *testing.T) {
	t.Parallel()
	type decision struct {
		stands func(*testing.T, *cursor.Store)
		decide func(context.Context, *cursor.Store) (operator.Change, error)
	}
	running := func(*testing.T, *cursor.Store) {}
	halted := func(t *testing.T, s *cursor.Store) {
		t.Helper()
		require.NoError(t, acquire(t, s).Halt(t.Context(), cursor.Failure{Position: "p4", RecordID: "4", Attempts: 1, Error: "422"}))
	}
	paused := func(t *testing.T, s *cursor.Store) {
		t.Helper()
		_, err := operator.New(s).Pause(t.Context(), "sms", alice)
		require.NoError(t, err)
	}
	for name, c := range map[string]decision{
		"retry": {halted, func(ctx context.Context, s *cursor.Store) (operator.Change, error) {
			return operator.New(s).Retry(ctx, "sms", alice)
		}},
		"skip": {halted, func(ctx context.Context, s *cursor.Store) (operator.Change, error) {
			return operator.New(s).Skip(ctx, "sms", alice)
		}},
		"resume": {paused, func(ctx context.Context, s *cursor.Store) (operator.Change, error) {
			return operator.New(s).Resume(ctx, "sms", alice)
		}},
		"seek": {running, func(ctx context.Context, s *cursor.Store) (operator.Change, error) {
			return operator.New(s).Seek(ctx, "sms", "p2", alice)
		}},
		"seek where ids have started again": {running, func(ctx context.Context, s *cursor.Store) (operator.Change, error) {
			return operator.New(s).SeekAnew(ctx, "sms", "p2", alice)
		}},
		"rename": {running, func(ctx context.Context, s *cursor.Store) (operator.Change, error) {
			return operator.New(s).Rename(ctx, "sms", "text", alice)
		}},
	} {
		for _, place := range []string{"timeline = timeline + 7", "system_identifier = system_identifier + 1", "database_oid = 1"} {
			t.Run(name+" where "+place, func(t *testing.T) {
				t.Parallel()
				s, _ := standing(t)
				c.stands(t, s)
				back(t, s, place)
				before := look(t, s)
				change, err := c.decide(t.Context(), s)
				require.NoError(t, err)
				after, err := s.Look(t.Context(), change.After.Process)
				require.NoError(t, err)
				require.Equal(t, after.Epoch, change.After.Epoch)
				require.GreaterOrEqual(t, after.Epoch, before.Epoch+rangeOfEpochs)
				require.Less(t, after.Sequence, int64(cursor.HistoryGap), "the sequence leaps once the server is noted")

				_, err = s.Acquire(t.Context(), change.After.Process)
				if place == "timeline = timeline + 7" {
					var promoted *cursor.PromotedError
					require.ErrorAs(t, err, &promoted)
				} else {
					require.ErrorIs(t, err, cursor.ErrHalted)
				}
			})
		}
	}
}

// TestDecision_OnceTheServerIsNotedCountsOn: a range of epochs is no matter of every decision.
func TestDecision_OnceTheServerIsNotedCountsOn(t *testing.T) {
	t.Parallel()
	s, _ := standing(t)
	back(t, s, `timeline = timeline + 7`)
	require.NoError(t, s.Promote(t.Context(), "sms", "", cursor.Seen{}, ""))
	before := look(t, s)
	_, err := operator.New(s).Seek(t.Context(), "sms", "p2", alice)
	require.NoError(t, err)
	require.Equal(t, before.Epoch+1, look(t, s).Epoch)
}

// TestPromote_IsNotedOnceAfterADecision: after a halt over the clock and a retry the worker notes the server as ever. All
// numbers are above those that the lost server gave out, and the sequence is the one of the epoch.
func TestPromote_IsNotedOnceAfterADecision(t *testing.T) {
	t.Parallel()
	for name, delivered := range map[string]bool{"three were delivered": true, "none was delivered": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := created(t, database(t), "a")
			lease := acquire(t, s)
			if delivered {
				require.NoError(t, lease.Advance(t.Context(), "p3", 3))
			}
			lease.Release()
			before := look(t, s)
			lost := cursor.Row{Epoch: before.Epoch + rangeOfEpochs - 1, Sequence: before.Sequence + cursor.HistoryGap - 1}
			back(t, s, `timeline = timeline + 7`)
			require.ErrorIs(t, s.HaltClock(t.Context(), "sms", behind("", before.Position)), cursor.ErrHalted)
			change, err := operator.New(s).Retry(t.Context(), "sms", alice)
			require.NoError(t, err)
			require.Greater(t, change.After.Epoch, lost.Epoch)

			_, err = s.Acquire(t.Context(), "sms")
			var promoted *cursor.PromotedError
			require.ErrorAs(t, err, &promoted)
			require.True(t, promoted.Retried())
			for range 2 {
				require.NoError(t, s.Promote(t.Context(), "sms", "", cursor.Seen{}, ""))
			}
			after := acquire(t, s)
			require.Greater(t, after.Epoch(), change.After.Epoch)
			require.Greater(t, after.Sequence(), lost.Sequence)
			require.Equal(t, !delivered, cursor.IsFirst(after.Sequence()+1, after.Epoch()))
			require.Len(t, after.History("p4"), 8)
			events, err := operator.New(s).History(t.Context(), "sms", 10)
			require.NoError(t, err)
			require.Equal(t, []string{"settled", "retry", "halt", "create"}, actionsOf(events))
		})
	}
}
