package operator_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

func TestRename_GoesOnUnderTheNewName(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "w1")
	lease := acquire(t, s)
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
	require.NoError(t, lease.PutAside(t.Context(), letter()))
	lease.Release()
	before := look(t, s)

	change, err := operator.New(s).Rename(t.Context(), "sms", "text", alice)
	require.NoError(t, err)
	require.Equal(t, "text", change.After.Process)
	after, err := s.Look(t.Context(), "text")
	require.NoError(t, err)
	require.Equal(t, before.Position, after.Position)
	require.Equal(t, before.Sequence, after.Sequence)
	require.Equal(t, before.Epoch+1, after.Epoch, "an old worker is fenced out")

	letters, err := operator.New(s).DeadLetters(t.Context(), "text", false, 10)
	require.NoError(t, err)
	require.Len(t, letters, 1, "dead letters follow")
	events, err := operator.New(s).History(t.Context(), "text", 10)
	require.NoError(t, err)
	require.Equal(t, []string{"rename", "dead_letter", "create"}, actionsOf(events), "history follows")
	require.Equal(t, "alice", events[0].Actor)
	var detail struct{ Old string }
	require.NoError(t, json.Unmarshal(events[0].Detail, &detail))
	require.Equal(t, "sms", detail.Old)

	_, err = s.Acquire(t.Context(), "sms")
	require.ErrorIs(t, err, cursor.ErrUnknown)
	_, err = s.Create(t.Context(), "sms", "")
	require.ErrorIs(t, err, cursor.ErrRenamed, "a worker of the old name starts nothing over")
	require.ErrorContains(t, err, `to "text"`)
}

func TestRename_WhileAWorkerDeliversEndsItsLease(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "w1")
	lease := acquire(t, s)
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
	done := make(chan error, 1)
	go func() {
		_, err := operator.New(s).Rename(t.Context(), "sms", "text", alice)
		done <- err
	}()
	var last cursor.Position
	for position := cursor.Position("p2"); lease.Context().Err() == nil; position += "x" {
		require.NoError(t, lease.Advance(t.Context(), position, 1), "it stands aside between two checkpoints")
		last = position
	}
	require.NoError(t, <-done)
	row, err := s.Look(t.Context(), "text")
	require.NoError(t, err)
	require.Equal(t, last, row.Position, "nothing that was delivered is lost")
	require.Error(t, lease.Advance(t.Context(), "p3", 1))
}

func TestRename_ThereAndBackKeepsOneHistory(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "w1")
	for range 2 {
		for _, names := range [][2]string{{"sms", "text"}, {"text", "sms"}} {
			_, err := operator.New(s).Rename(t.Context(), names[0], names[1], alice)
			require.NoError(t, err)
		}
	}
	row := look(t, s)
	require.EqualValues(t, 4, row.Epoch)
	events := history(t, s)
	require.Equal(t, "create", events[len(events)-1].Action)
	for i := range events[1:] {
		require.Greater(t, events[i].ID, events[i+1].ID, "each once, the newest first")
	}
}

func TestRename_IsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "w1")
	_, err := s.Create(t.Context(), "text", "")
	require.NoError(t, err)
	before := look(t, s)
	elsewhere := cursor.Position("p9")
	moved := alice
	moved.Expect = &elsewhere
	for _, c := range []struct {
		from, to string
		d        cursor.Decision
		want     error
	}{
		{"sms", "text", alice, cursor.ErrExists},
		{"mail", "post", alice, cursor.ErrUnknown},
		{"sms", "post", moved, cursor.ErrMoved},
	} {
		for _, dry := range []bool{true, false} {
			c.d.DryRun = dry
			_, err = operator.New(s).Rename(t.Context(), c.from, c.to, c.d)
			require.ErrorIs(t, err, c.want)
		}
	}
	_, err = operator.New(s).Rename(t.Context(), "sms", "", alice)
	require.ErrorContains(t, err, "must not be empty")
	_, err = operator.New(s).Rename(t.Context(), "sms", "sms", alice)
	require.ErrorContains(t, err, "must differ from the old one")
	rehearsed := alice
	rehearsed.DryRun = true
	change, err := operator.New(s).Rename(t.Context(), "sms", "post", rehearsed)
	require.NoError(t, err)
	require.Equal(t, "post", change.After.Process)
	require.Equal(t, before, look(t, s))
	require.Equal(t, []string{"create"}, actionsOf(history(t, s)))
}

func TestForget_FreesTheNameForANewCursor(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "w1")
	lease := acquire(t, s)
	require.NoError(t, lease.Advance(t.Context(), "p4", 4))
	lease.Release()
	_, err := operator.New(s).Forget(t.Context(), "sms", cursor.Decision{Actor: "alice"})
	require.ErrorContains(t, err, "no reason")

	change, err := operator.New(s).Forget(t.Context(), "sms", alice)
	require.NoError(t, err)
	require.Equal(t, cursor.Position("p4"), change.Before.Position)
	_, err = s.Look(t.Context(), "sms")
	require.ErrorIs(t, err, cursor.ErrUnknown)
	require.NoError(t, s.Past(t.Context(), "sms"))
	made, err := s.Create(t.Context(), "sms", "p2")
	require.NoError(t, err)
	require.True(t, made)
	require.Equal(t, []string{"create", "forget", "create"}, actionsOf(history(t, s)))
}

func TestForget_OfARowThatIsGoneFreesItsName(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "w1")
	exec(t, pool, "DELETE FROM dispatch.cursor")
	_, err := s.Create(t.Context(), "sms", "")
	require.ErrorIs(t, err, cursor.ErrDeleted)
	require.ErrorContains(t, err, "ordered-dispatcher process forget sms")
	_, err = operator.New(s).Forget(t.Context(), "sms", alice)
	require.NoError(t, err)
	_, err = s.Create(t.Context(), "sms", "")
	require.NoError(t, err)

	_, err = operator.New(s).Rename(t.Context(), "sms", "text", alice)
	require.NoError(t, err)
	require.ErrorIs(t, s.Past(t.Context(), "sms"), cursor.ErrRenamed)
	_, err = operator.New(s).Forget(t.Context(), "sms", alice)
	require.NoError(t, err)
	require.NoError(t, s.Past(t.Context(), "sms"))

	_, err = operator.New(s).Forget(t.Context(), "mail", alice)
	require.ErrorIs(t, err, cursor.ErrUnknown, "a name that never was is a typing error")
}

func TestPrepare_MakesOneCursorBeforeItsFirstRun(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := store(t, pool, "w1")
	change, err := operator.New(s).Prepare(t.Context(), "sms", cursor.Unplaced, cursor.Paused, "pause", alice)
	require.NoError(t, err)
	require.Equal(t, cursor.Paused, change.After.State)
	_, err = s.Acquire(t.Context(), "sms")
	require.ErrorIs(t, err, cursor.ErrPaused)
	_, err = operator.New(s).Prepare(t.Context(), "sms", "p1", cursor.Running, "seek", alice)
	require.ErrorIs(t, err, cursor.ErrExists)
	made, err := s.Create(t.Context(), "sms", "p1")
	require.NoError(t, err)
	require.False(t, made, "a worker leaves it as it is")

	placed, err := s.Place(t.Context(), "sms", "p1")
	require.NoError(t, err)
	require.True(t, placed)
	placed, err = s.Place(t.Context(), "sms", "p2")
	require.NoError(t, err)
	require.False(t, placed, "only once")
	row := look(t, s)
	require.Equal(t, cursor.Position("p1"), row.Position)
	require.Equal(t, cursor.Paused, row.State)
	require.Equal(t, []string{"place", "create"}, actionsOf(history(t, s)))

	exec(t, pool, "DELETE FROM dispatch.cursor")
	_, err = operator.New(s).Prepare(t.Context(), "sms", "", cursor.Paused, "pause", alice)
	require.ErrorIs(t, err, cursor.ErrDeleted)
}

// TestRename_ToANameThatWasUsedSaysWhatTheRowHas: a trigger moves the numbers past those
// of the cursor that had the name.
func TestRename_ToANameThatWasUsedSaysWhatTheRowHas(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "w1")
	lease := acquire(t, s)
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
	lease.Release()
	_, err := operator.New(s).Rename(t.Context(), "sms", "text", alice)
	require.NoError(t, err)
	change, err := operator.New(s).Rename(t.Context(), "text", "sms", alice)
	require.NoError(t, err)
	row := look(t, s)
	require.EqualValues(t, 1+cursor.SeekGap, row.Sequence)
	require.Equal(t, row.Sequence, change.After.Sequence)
	require.Equal(t, row.Epoch, change.After.Epoch)
	var sequence, epoch int64
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT (detail->>'sequence')::bigint, (detail->>'epoch')::bigint
		FROM dispatch.cursor_event WHERE action = 'rename' AND process_name = 'sms'`).Scan(&sequence, &epoch))
	require.EqualValues(t, row.Sequence, sequence, "the audit says so, too")
	require.EqualValues(t, row.Epoch, epoch)
}
