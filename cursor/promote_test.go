package cursor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestPromote_NoNumberAndNoHistoryIsThatOfBefore: a standby that is promoted may have lost the
// last commits. Nothing of what they used comes a second time, and it is noted once.
func TestPromote_NoNumberAndNoHistoryIsThatOfBefore(t *testing.T) {
	t.Parallel()
	s, before := standing(t)
	back(t, s, `timeline = timeline + 7`)
	_, err := s.Acquire(t.Context(), "sms")
	var promoted *cursor.PromotedError
	require.ErrorAs(t, err, &promoted)
	require.Equal(t, cursor.Position("p3"), promoted.Position)
	require.NotEmpty(t, promoted.Horizon)
	require.ErrorAs(t, s.Promoted(t.Context(), "sms"), &promoted)
	require.Equal(t, before.Epoch(), look(t, s).Epoch, "nothing is changed before the source has looked")

	require.ErrorIs(t, s.Promote(t.Context(), "sms", "another run", cursor.Seen{}, ""), cursor.ErrElsewhere)
	require.NoError(t, s.Promote(t.Context(), "sms", before.Server(), cursor.Seen{}, ""))
	require.NoError(t, s.Promoted(t.Context(), "sms"))
	require.Equal(t, "promoted", lastEvent(t, s.Pool()))
	require.NoError(t, s.Promote(t.Context(), "sms", before.Server(), cursor.Seen{}, ""), "there is nothing left to note")
	after := acquire(t, s)
	require.Greater(t, after.Epoch(), before.Epoch()+1_000_000)
	requireLeap(t, 3, after.Sequence())
	require.Equal(t, fmt.Sprintf(`{"to_sequence": %d, "from_sequence": 3}`, after.Sequence()),
		pgtest.Value[string](t, s.Pool(), "SELECT detail::text FROM dispatch.cursor_event WHERE action = 'promoted'"))
	require.Empty(t, after.History("p3"))
	require.Len(t, after.History("p4"), 8)
	require.NotEqual(t, after.Server(), "")
}

// TestPromote_EachHistoryHasAMarkOfItsOwn: a second promotion that lost the advances behind the
// first one begins another history there.
func TestPromote_EachHistoryHasAMarkOfItsOwn(t *testing.T) {
	t.Parallel()
	s, lease := standing(t)
	marks := map[string]bool{}
	for range 3 {
		back(t, s, `timeline = timeline + 7, position = 'p3'`)
		require.NoError(t, s.Promote(t.Context(), "sms", "", cursor.Seen{}, ""))
		lease = acquire(t, s)
		marks[lease.History("p4")] = true
		require.Empty(t, lease.History("p3"))
		require.NoError(t, lease.Advance(t.Context(), "p5", 2))
		lease.Release()
	}
	require.Len(t, marks, 3)
	back(t, s, `timeline = timeline + 7`)
	require.NoError(t, s.Promote(t.Context(), "sms", "", cursor.Seen{}, ""))
	after := acquire(t, s)
	require.Equal(t, lease.History("p4"), after.History("p4"), "what was delivered in a history keeps its mark")
	require.NotEqual(t, after.History("p4"), after.History("p6"))
}

// TestHorizon_IsAboveAllThatWasDelivered: and not above what begins after the advance.
func TestHorizon_IsAboveAllThatWasDelivered(t *testing.T) {
	t.Parallel()
	s := created(t, database(t), "a")
	delivered := pgtest.Value[uint64](t, s.Pool(), `SELECT pg_current_xact_id()`)
	lease := acquire(t, s)
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
	lease.Release()
	next := pgtest.Value[uint64](t, s.Pool(), `SELECT pg_current_xact_id()`)
	horizon := pgtest.Value[uint64](t, s.Pool(), `SELECT horizon FROM dispatch.cursor`)
	require.Greater(t, horizon, delivered)
	require.LessOrEqual(t, horizon, next)
}

// TestHaltClock_HaltsAtThatPositionAlone: a cursor that moved since is looked at again.
func TestHaltClock_HaltsAtThatPositionAlone(t *testing.T) {
	t.Parallel()
	s, lease := standing(t)
	require.NoError(t, s.HaltClock(t.Context(), "sms", behind(lease.Server(), "p2")))
	require.ErrorIs(t, s.HaltClock(t.Context(), "sms", behind("another run", "p3")), cursor.ErrElsewhere)
	require.Equal(t, cursor.Running, look(t, s).State)
	require.ErrorIs(t, s.HaltClock(t.Context(), "sms", behind(lease.Server(), "p3")), cursor.ErrHalted)
	row := look(t, s)
	require.Equal(t, cursor.Halted, row.State)
	require.Equal(t, cursor.ClassClock, row.Failure.Class)
	require.Equal(t, "the clock is behind", row.Failure.Error)

	_, err := operator.New(s).Skip(t.Context(), "sms", alice)
	require.ErrorIs(t, err, operator.ErrNotFailing, "no record is at fault")
	_, err = operator.New(s).Seek(t.Context(), "sms", "p1", alice)
	require.NoError(t, err)
	after := acquire(t, s)
	requireLeap(t, 3, after.Sequence())
	require.Len(t, after.History("p2"), 8, "the history begins where delivery goes on")
}

// TestHaltClock_OfAPausedProcessRefusesItsResume: what is stamped behind the cursor is to be decided on first.
func TestHaltClock_OfAPausedProcessRefusesItsResume(t *testing.T) {
	t.Parallel()
	s, _ := standing(t)
	_, err := operator.New(s).Pause(t.Context(), "sms", alice)
	require.NoError(t, err)
	require.ErrorIs(t, s.HaltClock(t.Context(), "sms", behind("", "p3")), cursor.ErrPaused)
	require.Equal(t, "halt", lastEvent(t, s.Pool()))
	require.Equal(t, cursor.Paused, look(t, s).State)
	_, err = operator.New(s).Resume(t.Context(), "sms", alice)
	require.ErrorIs(t, err, cursor.ErrHalted)
	require.ErrorContains(t, err, "the clock is behind")
	_, err = operator.New(s).Seek(t.Context(), "sms", "p1", alice)
	require.NoError(t, err)
	require.Equal(t, cursor.Paused, look(t, s).State)
	_, err = operator.New(s).Resume(t.Context(), "sms", alice)
	require.NoError(t, err)
	acquire(t, s)
}

// TestHaltClock_OfAHaltedProcess: a record is met again, a restore is another halt, and of two places the first one counts.
func TestHaltClock_OfAHaltedProcess(t *testing.T) {
	t.Parallel()
	s, _ := standing(t)
	require.NoError(t, acquire(t, s).Halt(t.Context(), cursor.Failure{Position: "p4", RecordID: "44", Attempts: 3, Error: "no such customer"}))
	halt := func(from cursor.Position) cursor.Failure {
		h := behind("", "p3")
		h.From = from
		require.ErrorIs(t, s.HaltClock(t.Context(), "sms", h), cursor.ErrHalted)
		return *look(t, s).Failure
	}
	f := halt("p2")
	require.Equal(t, cursor.ClassClock, f.Class)
	require.Equal(t, "the clock is behind. Before that, record 44 failed: no such customer", f.Error)
	require.Equal(t, cursor.Position("p2"), halt("p21").Position)
	require.Equal(t, cursor.Position("p1"), halt("p1").Position)

	exec(t, s.Pool(), `UPDATE dispatch.cursor SET failed_class = 'restored'`)
	require.Equal(t, cursor.ClassRestored, halt("p0").Class)
}

// TestSeek_AfterAHaltOverTheClock: what was stamped before the position is still to be looked for, unless the seek answers the halt.
func TestSeek_AfterAHaltOverTheClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to cursor.Position
		looks    bool
	}{
		{from: "p1", to: "p1"},
		{from: "p1", to: "p0"},
		{from: "p1", to: "p2", looks: true},
		{from: "p1", to: "p3"},
		{from: "p1", to: "p5"},
		{from: "p3", to: "p2"}, // the operator has looked
		{from: "", to: "p0", looks: true},
		{from: "", to: "p3"}, // without a look
		{from: "", to: "p5", looks: true},
		{from: "", to: ""},
	} {
		for _, timeline := range []string{"timeline", "timeline + 7"} { // of this server, and of the one before it
			t.Run(fmt.Sprintf("%q to %q of %s", c.from, c.to, timeline), func(t *testing.T) {
				t.Parallel()
				s, _ := standing(t)
				exec(t, s.Pool(), `UPDATE dispatch.cursor SET timeline = `+timeline)
				h := behind("", "p3")
				h.From = c.from
				require.ErrorIs(t, s.HaltClock(t.Context(), "sms", h), cursor.ErrHalted)
				change, err := operator.New(s).Seek(t.Context(), "sms", c.to, alice)
				require.NoError(t, err)
				require.Equal(t, c.looks, change.Looks)
				require.Equal(t, cursor.Running, look(t, s).State)
				if !c.looks {
					acquire(t, s)
					return
				}
				_, err = s.Acquire(t.Context(), "sms")
				var promoted *cursor.PromotedError
				require.ErrorAs(t, err, &promoted)
				require.True(t, promoted.Retried())
				require.Equal(t, timeline != "timeline", promoted.Horizon != "", "transactions say which rows are new, but on the server that delivered")
				change, err = operator.New(s).Seek(t.Context(), "sms", "p21", alice)
				require.NoError(t, err)
				require.True(t, change.Looks, "the look is owed until it is made")
			})
		}
	}
}

// TestHaltRestored_HaltsWhereTheRowIsOlderThanWhatWasSeen: the snapshot of a disk has the
// identity of the server that it was taken of.
func TestHaltRestored_HaltsWhereTheRowIsOlderThanWhatWasSeen(t *testing.T) {
	t.Parallel()
	s, lease := standing(t)
	seen := cursor.Seen{}.See(look(t, s))
	require.NoError(t, s.HaltRestored(t.Context(), "sms", seen))
	back(t, s, `position = 'p1', sequence = 1`)
	require.True(t, seen.Before(look(t, s)))
	require.ErrorIs(t, s.HaltRestored(t.Context(), "sms", seen), cursor.ErrHalted)
	row := look(t, s)
	require.Equal(t, cursor.ClassRestored, row.Failure.Class)
	require.Contains(t, row.Failure.Error, "its sequence was 3 and is 1")

	_, err := operator.New(s).Retry(t.Context(), "sms", alice)
	require.NoError(t, err)
	require.False(t, seen.Before(look(t, s)), "it runs on past all that was seen")
	after := acquireLooked(t, s)
	requireLeap(t, 1, after.Sequence())
	require.Greater(t, after.Epoch(), lease.Epoch()+999_999)
	require.Len(t, after.History("p2"), 8)
}

// TestHaltRestored_APromotionIsNone: a standby that had not received everything is behind, too,
// but not by as much as a backup.
func TestHaltRestored_APromotionIsNone(t *testing.T) {
	t.Parallel()
	s, _ := standing(t)
	seen := cursor.Seen{}.See(look(t, s))
	back(t, s, `position = 'p1', sequence = 1, timeline = timeline + 7`)
	require.NoError(t, s.HaltRestored(t.Context(), "sms", seen))
	require.Equal(t, cursor.Running, look(t, s).State)
	seen.At = time.Now().Add(time.Hour)
	require.ErrorIs(t, s.HaltRestored(t.Context(), "sms", seen), cursor.ErrHalted, "recovered to an earlier time")
}

// TestRestored_IsForProcessesInAnyState: a restore that no worker saw is said by an operator.
func TestRestored_IsForProcessesInAnyState(t *testing.T) {
	t.Parallel()
	s, lease := standing(t)
	_, err := operator.New(s).Restored(t.Context(), "sms", cursor.Decision{Actor: "alice"})
	require.ErrorContains(t, err, "no reason")
	_, err = operator.New(s).Pause(t.Context(), "sms", alice)
	require.NoError(t, err)
	change, err := operator.New(s).Restored(t.Context(), "sms", alice)
	require.NoError(t, err)
	require.Equal(t, cursor.Paused, change.After.State)
	require.Equal(t, cursor.Position("p3"), change.After.Position)
	requireLeap(t, 3, change.After.Sequence)
	require.Equal(t, "restored", lastEvent(t, s.Pool()))
	_, err = operator.New(s).Resume(t.Context(), "sms", alice)
	require.NoError(t, err)
	after := acquireLooked(t, s)
	require.GreaterOrEqual(t, after.Epoch(), lease.Epoch()+1_000_000)
	require.Len(t, after.History("p4"), 8)
}

// TestBegun_ALaterHistoryOfOneRowHasLargerNumbers: a backup is restored twice, or a second standby
// is promoted that never received the note of the first promotion. Receivers drop smaller numbers.
func TestBegun_ALaterHistoryOfOneRowHasLargerNumbers(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, time.November, 23, 14, 0, 0, 0, time.UTC)
	for _, row := range []cursor.Row{
		{Epoch: 3, Sequence: 7},
		{Epoch: 3, Sequence: 900_000_007},
		{Epoch: 28_000_000_000_000, Sequence: 282_000_000_000_007}, // of an earlier history
	} {
		for _, apart := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 18*time.Hour + 12*time.Minute + 20*time.Second, 30 * 24 * time.Hour, 365 * 24 * time.Hour} {
			one, err := row.Begun(first)
			require.NoError(t, err)
			used := one // until then: a million records a second, and a thousand decisions
			used.Sequence += int64(apart/time.Second) * 1_000_000
			used.Epoch += cursor.Epoch(apart/time.Second) * 1_000
			two, err := row.Begun(first.Add(apart))
			require.NoError(t, err)
			require.Greater(t, two.Sequence, used.Sequence, "%s later", apart)
			require.Greater(t, two.Epoch, used.Epoch, "%s later", apart)
			for _, begun := range []cursor.Row{one, two} {
				requireLeap(t, row.Sequence, begun.Sequence)
				require.Less(t, begun.Sequence, int64(1)<<53)
				require.Less(t, begun.Epoch, cursor.Epoch(1)<<53)
			}
		}
	}
}

// TestBegun_AClockThatIsWrongTakesNoNumbersBack: the row's own are passed all the same.
func TestBegun_AClockThatIsWrongTakesNoNumbersBack(t *testing.T) {
	t.Parallel()
	row := cursor.Row{Epoch: 28_000_000_000_000, Sequence: 282_000_000_000_007}
	begun, err := row.Begun(time.Unix(0, 0))
	require.NoError(t, err)
	require.GreaterOrEqual(t, begun.Epoch, row.Epoch+1_000_000)
	requireLeap(t, row.Sequence, begun.Sequence)
}

// TestBegun_IsPastAllEpochsOfALostServer: also where the row's epoch is ahead of the clock and late in its range. The next range may
// begin just after it, and the lost server may have come that far.
func TestBegun_IsPastAllEpochsOfALostServer(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.November, 26, 12, 30, 0, 0, time.UTC)
	const ahead = cursor.Epoch(40_000_000_000_000)
	for _, into := range []cursor.Epoch{0, 1, 272_107, 500_000, 999_983, 999_999} {
		row := cursor.Row{Epoch: ahead + into, Sequence: 7}
		one, err := row.Begun(now)
		require.NoError(t, err)
		require.GreaterOrEqual(t, one.Epoch, row.Epoch+1_000_000, "%d into its range", into)
		require.Less(t, one.Epoch, row.Epoch+3_000_000)
		for caughtUp := now; caughtUp.Year() < 2028; caughtUp = caughtUp.AddDate(0, 1, 0) {
			later, err := row.Begun(caughtUp)
			require.NoError(t, err)
			require.True(t, later.Epoch/1_000_000 >= one.Epoch/1_000_000, "a later history of the row is not below an earlier one")
		}
	}
}

// TestBegun_TheSequenceIsThatOfTheEpoch: a decision has moved the epoch in the same second. Sinks know the first record of a
// process by it.
func TestBegun_TheSequenceIsThatOfTheEpoch(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.November, 23, 14, 0, 0, 0, time.UTC)
	decided, err := cursor.Row{Epoch: 3}.Begun(now)
	require.NoError(t, err)
	begun, err := cursor.Row{Epoch: decided.Epoch + 1}.Begun(now)
	require.NoError(t, err)
	require.True(t, cursor.IsFirst(begun.Sequence+1, begun.Epoch))
}

// TestSeek_BeforeAPromotionIsNotedKeepsTheHorizon: what the new primary has stamped before the
// cursor is still to be looked for.
func TestSeek_BeforeAPromotionIsNotedKeepsTheHorizon(t *testing.T) {
	t.Parallel()
	s, _ := standing(t)
	horizon := func() string { return pgtest.Value[string](t, s.Pool(), `SELECT horizon::text FROM dispatch.cursor`) }
	before := horizon()
	back(t, s, `timeline = timeline + 7`)
	_, err := operator.New(s).Seek(t.Context(), "sms", "p5", alice)
	require.NoError(t, err)
	require.Equal(t, before, horizon())
	require.NoError(t, s.Promote(t.Context(), "sms", "", cursor.Seen{}, ""))
	_, err = operator.New(s).Seek(t.Context(), "sms", "p6", alice)
	require.NoError(t, err)
	require.NotEqual(t, before, horizon(), "once it is noted, what was passed over is meant")
}

// TestSeek_ForwardBeginsTheHistoryWhereTheServerWentBack: the records between may be others.
func TestSeek_ForwardBeginsTheHistoryWhereTheServerWentBack(t *testing.T) {
	t.Parallel()
	s, _ := standing(t)
	seen := cursor.Seen{}.See(look(t, s))
	back(t, s, `position = 'p1', sequence = 1`)
	require.ErrorIs(t, s.HaltRestored(t.Context(), "sms", seen), cursor.ErrHalted)
	_, err := operator.New(s).Seek(t.Context(), "sms", "p7", alice)
	require.NoError(t, err)
	after := acquire(t, s)
	require.Equal(t, cursor.Position("p7"), after.Position())
	require.Empty(t, after.History("p1"))
	require.Len(t, after.History("p2"), 8)
	require.Equal(t, after.History("p2"), after.History("p8"))
}

// TestPromote_NothingThatAWorkerHasSeenComesAgain: the note of an earlier promotion was lost.
func TestPromote_NothingThatAWorkerHasSeenComesAgain(t *testing.T) {
	t.Parallel()
	s, _ := standing(t)
	row := look(t, s)
	seen := cursor.Seen{Epoch: row.Epoch + 90_000_000, Sequence: row.Sequence + 100_000*cursor.HistoryGap}
	back(t, s, `timeline = timeline + 7`)
	require.NoError(t, s.Promote(t.Context(), "sms", "", seen, ""))
	after := look(t, s)
	require.Greater(t, after.Epoch, seen.Epoch)
	require.Greater(t, after.Sequence, seen.Sequence)
	requireLeap(t, 3, after.Sequence)
}

// TestHaltRestored_WaitsForAWorkerThatDelivers: one that cannot know of the restore.
func TestHaltRestored_WaitsForAWorkerThatDelivers(t *testing.T) {
	t.Parallel()
	s, _ := standing(t)
	seen := cursor.Seen{}.See(look(t, s))
	back(t, s, `position = 'p1', sequence = 1`)
	busy := acquire(t, s)
	halted := make(chan error, 1)
	go func() { halted <- store(t, s.Pool(), "b").HaltRestored(t.Context(), "sms", seen) }()
	require.Eventually(t, func() bool {
		var n int
		require.NoError(t, s.Pool().QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype IN ('transactionid', 'tuple')
			AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())`).Scan(&n))
		return n > 0
	}, time.Minute, time.Millisecond, "it waits for the row")
	busy.Release()
	require.ErrorIs(t, <-halted, cursor.ErrHalted)
}

// TestForget_KeepsTheHistories: the same name made anew has the keys of before.
func TestForget_KeepsTheHistories(t *testing.T) {
	t.Parallel()
	s, _ := standing(t)
	_, err := operator.New(s).Restored(t.Context(), "sms", alice)
	require.NoError(t, err)
	lease := acquireLooked(t, s)
	mark := lease.History("p4")
	lease.Release()
	_, err = operator.New(s).Forget(t.Context(), "sms", alice)
	require.NoError(t, err)
	_, err = s.Recreate(t.Context(), "sms", "")
	require.NoError(t, err)
	require.Equal(t, mark, acquire(t, s).History("p4"))
}
