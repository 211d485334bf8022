package processor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// TestRestored_AnAttemptThatWasLostIsNotMadeOfAnotherRow: the snapshot lacks a row that was sent and not acknowledged, so no number of
// the cursor goes back. The row that gets its id went out under its number.
func TestRestored_AnAttemptThatWasLostIsNotMadeOfAnotherRow(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	pool := databaseOn(t, server.URL())
	insert(t, pool, 1)
	sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
		if d.ID == "2" {
			return errors.New("504")
		}
		return nil
	}}
	start(t, process(t, pool, processor.Each(sink), quick))
	eventually(t, "one is delivered", func() bool { return row(t, pool).Sequence == 1 })
	require.NoError(t, server.Snapshot(t.Context()))
	insert(t, pgtest.Pool(t, server.URL(), pgtest.PoolConfig{}), 1)
	eventually(t, "the next one is sent", func() bool { return len(sink.attemptsOf("2")) > 1 })
	require.NoError(t, server.PutBack(t.Context()))
	after := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	require.Contains(t, halts(t, after, cursor.ClassRestored).Error, "the database went back: when the server started, its write-ahead log lacked what its disk had had")
}

// TestRestored_APausedProcessIsToldOf: nothing was said of it until the process was resumed, and an operator who moved the cursor
// before that hid it.
func TestRestored_APausedProcessIsToldOf(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	pool := databaseOn(t, server.URL())
	insert(t, pool, 1)
	sink := &receiver{}
	start(t, process(t, pool, processor.Each(sink), quick))
	eventually(t, "one is delivered", func() bool { return row(t, pool).Sequence == 1 })
	decide(t, pool, (*operator.Operator).Pause)
	require.NoError(t, server.Snapshot(t.Context()))
	since := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	decide(t, since, (*operator.Operator).Resume)
	insert(t, since, 1)
	eventually(t, "the next one is delivered", func() bool { return row(t, since).Sequence == 2 })
	require.NoError(t, server.PutBack(t.Context()))
	after := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	eventually(t, "it is told of", func() bool { return row(t, after).Failure != nil })
	require.Equal(t, cursor.ClassRestored, row(t, after).Failure.Class)
	require.Equal(t, cursor.Paused, row(t, after).State)
	_, err := operator.New(store(t, after)).Resume(t.Context(), "sms", cursor.Decision{Actor: "me"})
	require.ErrorIs(t, err, cursor.ErrHalted)

	decide(t, after, (*operator.Operator).Restored)
	decide(t, after, (*operator.Operator).Resume)
	insert(t, after, 1)
	eventually(t, "it goes on", func() bool { return len(sink.attemptsOf("2")) == 2 })
	sink.mu.Lock()
	defer sink.mu.Unlock()
	require.NotEqual(t, sink.got[1].Sequence, sink.got[2].Sequence)
}

// TestRestored_AWorkerThatSawLessLetsTheOthersLookFirst: the one that was in the call when the server was restored knows of it. Another
// one had not looked since the snapshot, waited for 20 ms of its second, and made the lost attempt of another row.
func TestRestored_AWorkerThatSawLessLetsTheOthersLookFirst(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	pool := databaseOn(t, server.URL())
	insert(t, pool, 1)
	delivered := make(chan time.Time, 10)
	start(t, process(t, pool, processor.Each(processor.SinkFunc(func(context.Context, processor.Delivery) error {
		delivered <- time.Now()
		return nil
	})), quick))
	eventually(t, "one is delivered", func() bool { return row(t, pool).Sequence == 1 })
	<-delivered

	require.NoError(t, server.Kill(t.Context()))
	anew := time.Now()
	require.NoError(t, server.Restart(t.Context()))
	insert(t, pgtest.Pool(t, server.URL(), pgtest.PoolConfig{}), 1)
	require.Greater(t, (<-delivered).Sub(anew), processor.NewRunDelay)
}

// TestRestored_ASnapshotFromBeforeTheFirstLookHaltsTheProcess: an operator had said that the database was restored, and no worker had
// looked by then. Put back, it was taken for a promotion: the process went on by itself, and so did one whose pause was lost.
func TestRestored_ASnapshotFromBeforeTheFirstLookHaltsTheProcess(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	pool := databaseOn(t, server.URL())
	insert(t, pool, 1)
	sink := &receiver{}
	stop := start(t, process(t, pool, processor.Each(sink), quick))
	eventually(t, "one is delivered", func() bool { return row(t, pool).Sequence == 1 })
	require.NoError(t, stop())
	decide(t, pool, (*operator.Operator).Restored)
	require.NoError(t, server.Snapshot(t.Context()))

	since := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	start(t, process(t, since, processor.Each(sink), quick))
	insert(t, since, 1)
	eventually(t, "the next one is delivered", func() bool { return len(sink.attemptsOf("2")) == 1 })
	began := time.Now()
	require.NoError(t, server.PutBack(t.Context()))
	after := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	halts(t, after, cursor.ClassRestored)

	eventually(t, "the clock is past the seconds of which both histories were made", func() bool { return time.Since(began) > 2*time.Second })
	decide(t, after, (*operator.Operator).Retry)
	insert(t, after, 1)
	eventually(t, "it goes on", func() bool { return len(sink.attemptsOf("2")) == 2 })
	sink.mu.Lock()
	defer sink.mu.Unlock()
	require.NotEqual(t, sink.got[1].Sequence, sink.got[2].Sequence)
}

// TestRun_ACursorThatIsMadeAnewAfterASnapshotWasPutBackHaltsTheProcess: the cursor is younger than the snapshot, and the advice was to make
// it anew. The same worker delivered under the numbers and keys that it had used.
func TestRun_ACursorThatIsMadeAnewAfterASnapshotWasPutBackHaltsTheProcess(t *testing.T) {
	t.Parallel()
	for _, made := range []cursor.State{cursor.Running, cursor.Paused} {
		t.Run(string(made), func(t *testing.T) {
			t.Parallel()
			pool, sink, log := database(t), &receiver{}, &logbook{}
			insert(t, pool, 2)
			start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Logger = log.logger() }))
			eventually(t, "two are delivered", func() bool { return row(t, pool).Sequence == 2 })
			exec(t, pool, `DO $$ BEGIN
				SET LOCAL session_replication_role = replica;
				DELETE FROM dispatch.cursor;
				DELETE FROM dispatch.cursor_event;
				DELETE FROM dispatch.cursor_past;
			END $$`)
			_, err := operator.New(store(t, pool)).Prepare(t.Context(), "sms", "", made, "seek", alice)
			require.NoError(t, err)
			if made == cursor.Paused {
				eventually(t, "the worker has seen it", func() bool { return log.has("paused by an operator") })
				decide(t, pool, (*operator.Operator).Resume)
			}
			eventually(t, "the process halts, or delivers", func() bool { return row(t, pool).State == cursor.Halted || sink.calls() > 2 })
			require.Equal(t, cursor.Halted, row(t, pool).State)
			require.Equal(t, cursor.ClassRestored, row(t, pool).Failure.Class)

			decide(t, pool, (*operator.Operator).Retry)
			eventually(t, "it goes on", func() bool { return sink.calls() == 4 })
			require.Greater(t, sink.all()[2].Sequence, int64(cursor.HistoryGap))
		})
	}
}

// TestRun_BesideAProcessThatHaltedAsRestoredANewWorkerHaltsItsOwn: it has seen nothing of the time before, and the row of another one shows
// what has happened. Once somebody has decided on this one, it goes on.
func TestRun_BesideAProcessThatHaltedAsRestoredANewWorkerHaltsItsOwn(t *testing.T) {
	t.Parallel()
	pool, sink := database(t), &receiver{}
	stop := start(t, process(t, pool, processor.Each(sink), nil))
	insert(t, pool, 1)
	eventually(t, "one is delivered", func() bool { return row(t, pool).Sequence == 1 })
	require.NoError(t, stop())
	s := store(t, pool)
	_, err := s.Create(t.Context(), "other", "")
	require.NoError(t, err)
	other, err := s.Look(t.Context(), "other")
	require.NoError(t, err)
	other.Epoch += 7
	require.ErrorIs(t, s.HaltRestored(t.Context(), "other", cursor.Seen{}.See(other)), cursor.ErrHalted)

	_, err = operator.New(s).Retry(t.Context(), "other", cursor.Decision{Actor: "me"})
	require.NoError(t, err, "of that one alone")

	insert(t, pool, 1)
	stop = start(t, process(t, pool, processor.Each(sink), nil))
	eventually(t, "the process halts, or delivers", func() bool { return row(t, pool).State == cursor.Halted || sink.calls() > 1 })
	require.Equal(t, cursor.Halted, row(t, pool).State)
	require.Contains(t, row(t, pool).Failure.Error, "process other has halted as restored")
	require.Contains(t, row(t, pool).Failure.Error, "restored --all")
	require.NoError(t, stop())
	decide(t, pool, (*operator.Operator).Retry)
	start(t, process(t, pool, processor.Each(sink), nil))
	eventually(t, "it goes on", func() bool { return sink.calls() == 2 })
}
