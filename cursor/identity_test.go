package cursor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

func TestDeliveredSince_CountsNoLeap(t *testing.T) {
	t.Parallel()
	before := cursor.Row{Sequence: 100, Epoch: 7}
	for row, want := range map[struct{ sequence, epoch int64 }]int64{
		{100, 7}: 0, {130, 7}: 30, {130, 8}: 30, {100 + cursor.SeekGap, 7}: cursor.SeekGap, {100 + cursor.SeekGap, 8}: -1,
		{101 + cursor.HistoryGap, 7}: -1, {99, 7}: -1, {99, 8}: -1,
	} {
		n, ok := cursor.Row{Sequence: row.sequence, Epoch: cursor.Epoch(row.epoch)}.DeliveredSince(before)
		require.Equal(t, want >= 0, ok, row)
		require.Equal(t, max(0, want), n, row)
	}
}

// A cursor restored into another cluster says nothing about what was delivered of
// the records that are there.
func TestAcquire_HaltsWhereTheDatabaseWasRestored(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	exec(t, pool, `UPDATE dispatch.cursor SET position = 'p1', system_identifier = system_identifier + 1`)
	_, err := s.Acquire(t.Context(), "sms")
	require.ErrorIs(t, err, cursor.ErrHalted)
	row, err := s.Look(t.Context(), "sms")
	require.NoError(t, err)
	require.Equal(t, cursor.Halted, row.State)
	require.Equal(t, cursor.ClassRestored, row.Failure.Class)
	require.Equal(t, cursor.Position("p1"), row.Position)
	require.Contains(t, row.Failure.Error, "it was restored or copied")
	require.Contains(t, row.Failure.Error, "After pg_upgrade, retry")
	require.Equal(t, "halt", lastEvent(t, pool))

	exec(t, pool, `UPDATE dispatch.cursor SET state = 'running', system_identifier = NULL`) // an operator has decided
	require.NoError(t, cause(acquire(t, s)))
	var adopted bool
	require.NoError(t, pool.QueryRow(t.Context(), `
		SELECT c.system_identifier = s.system_identifier FROM dispatch.cursor c, pg_control_system() s`).Scan(&adopted))
	require.True(t, adopted)
}

// TestAcquire_HaltsInACopyWithinTheSameCluster: a dump that was restored under another name
// has the system identifier of its origin's server, and the oid of another database.
func TestAcquire_HaltsInACopyWithinTheSameCluster(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	acquire(t, s).Release()
	var noted bool
	require.NoError(t, pool.QueryRow(t.Context(), `
		SELECT c.database_oid = d.oid FROM dispatch.cursor c, pg_database d WHERE d.datname = current_database()`).Scan(&noted))
	require.True(t, noted)
	exec(t, pool, `UPDATE dispatch.cursor SET position = 'p1', database_oid = (SELECT oid FROM pg_database WHERE datname = 'template1')`)
	_, err := s.Acquire(t.Context(), "sms")
	require.ErrorIs(t, err, cursor.ErrHalted)
	require.Regexp(t, `oid \d+, now \d+\): it was restored or copied`, look(t, s).Failure.Error)
	before := look(t, s)
	_, err = operator.New(s).Retry(t.Context(), "sms", alice)
	require.NoError(t, err)
	after := acquireLooked(t, s)
	require.Greater(t, after.Epoch(), before.Epoch+999_999)
	requireLeap(t, before.Sequence, after.Sequence())
}

// TestAcquire_HaltsWhereAnOperatorMarksARestoredSnapshot: a snapshot of the disk has the same
// identity of everything, so docs/operations.md has an operator mark it.
func TestAcquire_HaltsWhereAnOperatorMarksARestoredSnapshot(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	lease := acquire(t, s)
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
	lease.Release()
	exec(t, pool, `UPDATE dispatch.cursor SET system_identifier = 0`)
	_, err := s.Acquire(t.Context(), "sms")
	require.ErrorIs(t, err, cursor.ErrHalted)
	_, err = operator.New(s).Retry(t.Context(), "sms", alice)
	require.NoError(t, err)
	after := acquireLooked(t, s)
	require.Greater(t, after.Epoch(), lease.Epoch()+999_999, "no epoch is used twice")
	requireLeap(t, 1, after.Sequence())
	require.Empty(t, after.History("p1"), "of what was delivered before")
	require.Len(t, after.History("p2"), 8)
}

// TestRestored_TwiceFromOneBackupGivesNoNumberTwice: the epoch is ahead of the clock, as of a machine whose clock was. The clock does not
// tell the two apart then.
func TestRestored_TwiceFromOneBackupGivesNoNumberTwice(t *testing.T) {
	t.Parallel()
	s, _ := standing(t)
	const ahead = "epoch = 90000000000001, sequence = 900000000000007"
	used := map[cursor.Epoch]bool{}
	for range 5 {
		back(t, s, ahead+", histories = '[]'")
		change, err := operator.New(s).Restored(t.Context(), "sms", alice)
		require.NoError(t, err)
		require.Greater(t, change.After.Epoch, cursor.Epoch(90_000_000_000_001))
		require.Greater(t, change.After.Sequence, int64(900_000_000_000_007))
		used[change.After.Epoch] = true
	}
	require.Greater(t, len(used), 1) // by chance all are alike once in 2^75
}

// TestBegun_TwiceInASecondIsBelowALaterOne: `restored` and the worker's look move the numbers on twice. What a restore of the same backup
// begins some seconds later has to be above both, or receivers drop it.
func TestBegun_TwiceInASecondIsBelowALaterOne(t *testing.T) {
	t.Parallel()
	s, _ := standing(t)
	began := time.Now()
	_, err := operator.New(s).Restored(t.Context(), "sms", alice)
	require.NoError(t, err)
	second, err := operator.New(s).Restored(t.Context(), "sms", alice)
	require.NoError(t, err)
	ranges := int64(time.Since(began)/time.Second) + 3 // the clock's, and two ahead of it
	require.LessOrEqual(t, int64(second.After.Epoch-second.Before.Epoch), ranges*1_000_000)
	require.LessOrEqual(t, second.After.Sequence-second.Before.Sequence, ranges*cursor.HistoryGap)
}
