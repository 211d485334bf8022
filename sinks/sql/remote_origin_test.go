package sql_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// from is a delivery of the same records by another cursor.
func from(origin string, ds []processor.Delivery) []processor.Delivery {
	for i := range ds {
		ds[i].Origin = origin
	}
	return ds
}

func mustBeAnothers(t testing.TB, s *sql.Remote, ds []processor.Delivery) error {
	t.Helper()
	n, err := sinktest.Deliver(t, s, ds)
	require.ErrorIs(t, err, sql.ErrOrigin)
	require.True(t, processor.IsUnreached(err), err)
	require.Zero(t, n)
	return err
}

// Neither a number that was applied, nor the next one, nor a later epoch, nor what looks
// like a seek makes the records of another cursor those of this one.
func TestRemote_RefusesAnotherCursorUnderTheNameOfAProcess(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 5))
	for _, ds := range [][]processor.Delivery{
		sinktest.Deliveries(1, 8), sinktest.Deliveries(3, 1), sinktest.Deliveries(6, 1), sinktest.Under(1, sinktest.Deliveries(6, 1)),
		sinktest.Under(9, numbered(10006, sinktest.Deliveries(6, 1))), letter("sms", 3),
	} {
		mustBeAnothers(t, s, from("there", ds))
	}
	sinktest.Delivered(t, s, sinktest.Deliveries(6, 1))
	require.Equal(t, "1 2 3 4 5 6", r.ids(t))
	require.Equal(t, "6/3", r.noted(t))
}

// The SQL of the error is what it says: the record comes next.
func TestRemote_AnotherCursorTakesAnAbandonedNameOver(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	r.withLetter(t, s)
	there := from("there", sinktest.Under(1, sinktest.Deliveries(2, 3)))
	r.obey(t, mustBeAnothers(t, s, there), "DELETE FROM")
	for range 2 {
		sinktest.Delivered(t, s, there)
	}
	require.Equal(t, "1 2 4 5 2 3 4", r.ids(t))
	require.Equal(t, "4/1", r.noted(t))
	mustBeAnothers(t, s, sinktest.Under(9, sinktest.Deliveries(6, 1)))
	mustBeUnproven(t, s, from("there", letter("sms", 1)))
}

// A process takes the name of one that was forgotten, whose notes are still there: they
// prove nothing of its dead letters.
func TestRemote_ARenamedProcessDoesNotContinueTheNotesOfTheEarlierOne(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	sinktest.Delivered(t, s, of("texts", from("forgotten", sinktest.Deliveries(1, 9))))
	r.withLetter(t, s)
	err := mustBeAnothers(t, s, letter("texts", 3))
	require.NotContains(t, err.Error(), "INSERT")
	mustBeAnothers(t, s, of("texts", sinktest.Under(9, numbered(10006, sinktest.Deliveries(6, 1)))))

	_, move, found := strings.Cut(err.Error(), "another name there: ")
	require.True(t, found, err)
	move, _, _ = strings.Cut(move, " (with")
	r.exec(t, strings.ReplaceAll(move, "OLD NAME", "sms"))
	for range 2 {
		sinktest.Delivered(t, s, letter("texts", 3))
	}
	sinktest.Delivered(t, s, of("texts", sinktest.Under(9, sinktest.Deliveries(6, 1))))
	require.Equal(t, "1 2 3 4 5 6 7 8 9 1 2 4 5 3 6", r.ids(t))
}

func TestRemote_NotesThatDoNotSayWhoseTheyAreAreTheFirstOnes(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
	r.exec(t, "UPDATE public.ordered_dispatcher_applied SET origin = NULL")
	sinktest.Delivered(t, s, from("there", sinktest.Deliveries(2, 2)))
	mustBeAnothers(t, s, sinktest.Deliveries(4, 1))
	sinktest.Delivered(t, s, from("", sinktest.Deliveries(4, 1))) // by a program that does not say it
	mustBeAnothers(t, s, sinktest.Deliveries(5, 1))
}

// Two databases, a process of one name in both, one target.
func TestRemote_OfTwoDatabasesWithOneProcessNameTheSecondIsRefused(t *testing.T) {
	t.Parallel()
	a := newSource(t)
	b := newSourceTo(t, a.remote)
	a.insert(t, "a", "a", "a")
	require.NoError(t, a.drain(t, true))
	b.insert(t, "b", "b", "b", "b", "b")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- b.process(t, true).Drain(ctx) }()
	require.Eventually(t, func() bool {
		row, err := b.store.Look(ctx, "sms")
		return err == nil && row.Failure != nil && row.Failure.Attempts > 2
	}, time.Minute, 5*time.Millisecond)
	a.insert(t, "a", "a", "a", "a", "a")
	require.NoError(t, a.drain(t, true))
	cancel()
	require.NoError(t, <-done)
	require.Contains(t, b.row(t).Failure.Error, sql.ErrOrigin.Error())
	require.Zero(t, b.row(t).Sequence)
	require.Equal(t, "a 8", a.remote.text(t, "SELECT string_agg(DISTINCT type, ' ') || ' ' || count(*) FROM public.received"))
}
