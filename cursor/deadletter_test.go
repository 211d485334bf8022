package cursor_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestPutAside_KeepsTheRecordAndGoesOnBehindIt(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	lease := acquire(t, s)
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
	require.NoError(t, lease.Note(t.Context(), cursor.Failure{Position: "p2", RecordID: "2", Attempts: 1, Error: "503"}))
	want := letter()
	require.NoError(t, lease.PutAside(t.Context(), want))
	require.NoError(t, cause(lease))
	require.NoError(t, lease.Advance(t.Context(), "p3", 1))

	row, err := s.Look(t.Context(), "sms")
	require.NoError(t, err)
	require.Equal(t, cursor.Position("p3"), row.Position)
	require.EqualValues(t, 3, row.Sequence, "the dead letter has taken one")
	require.Nil(t, row.Failure)

	listed, err := operator.New(s).DeadLetters(t.Context(), "sms", false, 10)
	require.NoError(t, err)
	require.Len(t, listed, 1)
	require.Nil(t, listed[0].Payload, "lists are short")
	got, err := operator.New(s).DeadLetter(t.Context(), listed[0].ID)
	require.NoError(t, err)
	require.Equal(t, want.Headers, got.Headers)
	require.Equal(t, want.Payload, got.Payload)
	require.Equal(t, want.RecordID, got.RecordID)
	require.Equal(t, want.CreatedAt, got.CreatedAt.UTC())
	require.EqualValues(t, 2, got.Sequence)
	require.Equal(t, "422", got.Failure.Error)
	require.Equal(t, cursor.ClassPermanent, got.Failure.Class)
	require.WithinDuration(t, time.Now().Add(-time.Minute), got.Failure.First, 10*time.Second)
	require.Equal(t, "dead_letter", lastEvent(t, pool))
}

func TestPutAside_OfASupersededWorkerKeepsNothing(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	lease := acquire(t, s)
	require.NoError(t, lease.Advance(t.Context(), "p5", 1))
	require.ErrorIs(t, lease.PutAside(t.Context(), letter()), cursor.ErrLeaseLost, "p2 lies behind")
	listed, err := operator.New(s).DeadLetters(t.Context(), "", true, 10)
	require.NoError(t, err)
	require.Empty(t, listed)
}

func TestDiscard_ResolvesOnce(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	require.NoError(t, acquire(t, s).PutAside(t.Context(), letter()))
	open, err := operator.New(s).DeadLetters(t.Context(), "sms", false, 10)
	require.NoError(t, err)
	id := open[0].ID
	position, elsewhere := open[0].Position, cursor.Position("p9")
	decision := cursor.Decision{Actor: "me", Reason: "a test booking", Expect: &position}
	discard := func(id int64, change func(*cursor.Decision)) error {
		d := decision
		change(&d)
		_, err := operator.New(s).Discard(t.Context(), id, d)
		return err
	}
	asItIs := func(*cursor.Decision) {}
	require.ErrorIs(t, discard(id+1, asItIs), cursor.ErrNoDeadLetter)
	require.ErrorIs(t, discard(id, func(d *cursor.Decision) { d.Expect = &elsewhere }), cursor.ErrMoved)
	require.ErrorContains(t, discard(id, func(d *cursor.Decision) { d.Actor = " " }), "has no actor")
	require.ErrorContains(t, discard(id, func(d *cursor.Decision) { d.Reason = "" }), "has no reason")
	require.NoError(t, discard(id, func(d *cursor.Decision) { d.DryRun = true }))
	require.NotEqual(t, "dead_letter_discarded", lastEvent(t, pool), "nothing was changed by now")
	require.NoError(t, discard(id, asItIs))
	require.ErrorIs(t, discard(id, asItIs), cursor.ErrNoDeadLetter)
	require.ErrorContains(t, discard(id, asItIs), "it was discarded by me at 2")
	open, err = operator.New(s).DeadLetters(t.Context(), "sms", false, 10)
	require.NoError(t, err)
	require.Empty(t, open)
	got, err := operator.New(s).DeadLetter(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, []any{cursor.Discarded, "me", "a test booking"}, []any{got.Resolution, got.ResolvedBy, got.Reason})
	require.Equal(t, "dead_letter_discarded", lastEvent(t, pool))
}

func TestReplayed_CommitsItsEffectsOnceAndMovesNothing(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "CREATE TABLE dispatch.effect (id text)")
	s := created(t, pool, "a")
	lease := acquire(t, s)
	require.NoError(t, lease.PutAside(t.Context(), letter()))
	lease.Release()
	open, err := operator.New(s).DeadLetters(t.Context(), "sms", false, 10)
	require.NoError(t, err)
	before, err := s.Look(t.Context(), "sms")
	require.NoError(t, err)
	replay := func() error {
		lease, err := s.AcquireTx(t.Context(), "sms", 0)
		require.NoError(t, err)
		require.NoError(t, lease.WithTx(t.Context(), func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "INSERT INTO dispatch.effect VALUES ('x')")
			return err
		}))
		return lease.Replayed(t.Context(), open[0].ID, cursor.Decision{Actor: "me", Reason: "mended"})
	}
	require.NoError(t, replay())
	require.ErrorIs(t, replay(), cursor.ErrNoDeadLetter)
	require.Equal(t, 1, pgtest.Value[int](t, pool, "SELECT count(*) FROM dispatch.effect"))
	after, err := s.Look(t.Context(), "sms")
	require.NoError(t, err)
	require.Equal(t, before.Position, after.Position)
	require.Equal(t, before.Sequence, after.Sequence)
}

// TestPutAside_KeepsTheTimeOfTheRecordToTheMicrosecond: it is part of the dedup key.
func TestPutAside_KeepsTheTimeOfTheRecordToTheMicrosecond(t *testing.T) {
	t.Parallel()
	s := created(t, database(t), "a")
	lease := acquire(t, s)
	times := []int64{math.MaxInt64, math.MaxInt64 - 3_600_000_001, -210_866_803_199_999_999} // the last that it holds, 4713 BC
	for _, at := range []string{
		"0001-01-01T00:00:00.000001Z", "1600-01-01T00:00:00.123457Z", "1969-12-31T23:59:59.999999Z", "2026-01-01T00:00:00.123457Z",
		"2260-01-01T00:00:00.123457Z", "9999-12-31T23:59:59.999999Z",
	} {
		created, err := time.Parse(time.RFC3339Nano, at)
		require.NoError(t, err)
		times = append(times, created.UnixMicro())
	}
	for i, at := range times {
		d := letter()
		d.Position, d.CreatedAt = cursor.Position(fmt.Sprintf("p%d", i)), time.UnixMicro(at)
		require.NoError(t, lease.PutAside(t.Context(), d))
		kept, err := operator.New(s).DeadLetter(t.Context(), int64(i+1))
		require.NoError(t, err)
		require.Equal(t, at, kept.CreatedAt.UnixMicro())
	}
}

// TestPutAside_KeepsTheDeadLetterOrTheCursorStays: a trigger of others lets the INSERT keep
// nothing.
func TestPutAside_KeepsTheDeadLetterOrTheCursorStays(t *testing.T) {
	t.Parallel()
	for name, table := range map[string]string{"no dead letter": "dead_letter", "no audit row": "cursor_event"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			s := created(t, pool, "a")
			lease := acquire(t, s)
			exec(t, pool, `
				CREATE FUNCTION dispatch.nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
				CREATE TRIGGER nothing BEFORE INSERT ON dispatch.`+table+` FOR EACH ROW EXECUTE FUNCTION dispatch.nothing()`)
			err := lease.PutAside(t.Context(), cursor.DeadLetter{Position: "p1", Table: "t", RecordID: "1", Failure: poison("p1")})
			kept, listErr := operator.New(s).DeadLetters(t.Context(), "sms", false, 10)
			require.NoError(t, listErr)
			row, lookErr := s.Look(t.Context(), "sms")
			require.NoError(t, lookErr)
			if table == "cursor_event" { // whose owner may want no audit
				require.NoError(t, err)
				require.Len(t, kept, 1)
				require.Equal(t, cursor.Position("p1"), row.Position)
				return
			}
			require.ErrorContains(t, err, "the dead letter is not kept")
			require.Empty(t, kept)
			require.Empty(t, row.Position)
		})
	}
}
