package sql_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// of is a delivery of the same records by a process of another name.
func of(process string, ds []processor.Delivery) []processor.Delivery {
	for i := range ds {
		ds[i].Process = process
	}
	return ds
}

// letter is the replay of a record that was put aside.
func letter(process string, number int) []processor.Delivery {
	ds := of(process, sinktest.Deliveries(number, 1))
	ds[0].After = ds[0].Position
	return sinktest.Under(9, ds)
}

// withLetter has the target take five records without the third, which failed there.
func (r *remote) withLetter(t testing.TB, s *sql.Remote) {
	t.Helper()
	restore := r.refuse(t, "refused")
	defer restore()
	ds := sinktest.Deliveries(1, 5)
	ds[2].Type = "refused"
	sinktest.Delivered(t, s, ds[:2])
	_, err := sinktest.Deliver(t, s, ds[2:3])
	require.True(t, processor.IsPermanent(err), err)
	sinktest.Delivered(t, s, ds[3:])
}

// obey runs the SQL of an error from there on.
func (r *remote) obey(t testing.TB, err error, from string) {
	t.Helper()
	require.Error(t, err)
	at := strings.LastIndex(err.Error(), from)
	require.Positive(t, at, err)
	r.exec(t, err.Error()[at:])
}

func mustBeUnproven(t testing.TB, s *sql.Remote, ds []processor.Delivery) error {
	t.Helper()
	n, err := sinktest.Deliver(t, s, ds)
	require.ErrorIs(t, err, sql.ErrUnproven)
	require.ErrorContains(t, err, "discard")
	require.Zero(t, n)
	return err
}

// The process got another name, or another target: what was put aside before is not
// taken for applied, and is applied once when an operator says that it is not there.
func TestRemote_ADeadLetterFromBeforeTheNotesBeginIsNotTakenForApplied(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	r.withLetter(t, s)
	_, err := sinktest.Deliver(t, s, of("texts", sinktest.Deliveries(6, 1)))
	require.ErrorIs(t, err, sql.ErrMissing)
	r.obey(t, err, "INSERT ")
	sinktest.Delivered(t, s, of("texts", sinktest.Deliveries(6, 1)))

	err = mustBeUnproven(t, s, letter("texts", 3))
	require.Equal(t, "1 2 4 5 6", r.ids(t))
	r.obey(t, err, "INSERT ")
	for range 3 { // the answer was lost twice
		sinktest.Delivered(t, s, letter("texts", 3))
	}
	sinktest.Delivered(t, s, sinktest.Under(9, of("texts", sinktest.Deliveries(7, 1))))
	require.Equal(t, "1 2 4 5 6 3 7", r.ids(t))
}

func TestRemote_ARenamedProcessTakesItsNotesAlong(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	r.withLetter(t, s)
	_, err := sinktest.Deliver(t, s, of("texts", sinktest.Deliveries(6, 1)))
	require.ErrorIs(t, err, sql.ErrMissing)
	_, rename, found := strings.Cut(err.Error(), "another name there: ")
	require.True(t, found, err)
	rename, _, _ = strings.Cut(rename, " (with")
	r.exec(t, strings.ReplaceAll(rename, "OLD NAME", "sms"))
	sinktest.Delivered(t, s, of("texts", sinktest.Deliveries(5, 2))) // the cursor did not hear of the first
	for range 2 {
		sinktest.Delivered(t, s, letter("texts", 3))
	}
	require.Equal(t, "1 2 4 5 6 3", r.ids(t))
}

// A replay says nothing of how far the process has come.
func TestRemote_AReplayBeginsNoNotes(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	for _, number := range []int{1, 3} {
		n, err := sinktest.Deliver(t, s, letter("sms", number))
		require.ErrorIs(t, err, sql.ErrMissing)
		require.NotContains(t, err.Error(), "INSERT")
		require.Zero(t, n)
	}
	require.Equal(t, "0", r.text(t, "SELECT count(*)::text FROM public.ordered_dispatcher_applied"))
	require.Empty(t, r.ids(t))
}

// What the target lost with a restore is not proved by what came after it.
func TestRemote_ADeadLetterThatARestoreTookIsNotTakenForApplied(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
	sought := sinktest.Under(4, sinktest.Deliveries(3, 4)) // 3 and more were lost, and 3 put aside
	for i := range sought {
		sought[i].Sequence += 6 + cursor.SeekGap
	}
	sinktest.Delivered(t, s, sought)
	mustBeUnproven(t, s, letter("sms", 3))
	require.Equal(t, "1 2 3 4 5 6", r.ids(t))
	sinktest.Delivered(t, s, sinktest.Under(9, sought)) // the last one is proved by the notes
}

// An operator said that what is missing need not come, not that it is not there.
func TestRemote_ADeadLetterThatAnOperatorPassedOverIsNotTakenForMissing(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(5, 1))
	require.ErrorIs(t, err, sql.ErrMissing)
	r.obey(t, err, "INSERT ")
	sinktest.Delivered(t, s, sinktest.Deliveries(5, 1))
	r.obey(t, mustBeUnproven(t, s, letter("sms", 3)), "INSERT ")
	for range 2 {
		sinktest.Delivered(t, s, letter("sms", 3))
	}
	require.Equal(t, "1 2 5 3", r.ids(t))
}

// A process took the name of an earlier one, whose notes are of other records.
func TestRemote_ANoteOfAnotherRecordProvesNothing(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	r.withLetter(t, s)
	for _, number := range []int64{3, 5} {
		other := letter("sms", 77)
		other[0].Sequence = number
		mustBeUnproven(t, s, other)
	}
	sinktest.Delivered(t, s, letter("sms", 3))
	require.Equal(t, "1 2 4 5 3", r.ids(t))
}

func TestRemote_TablesOfAnEarlierVersionAreNamedWithTheirFix(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	r.withLetter(t, s)
	r.exec(t, "ALTER TABLE public.ordered_dispatcher_applied DROP since; ALTER TABLE public.ordered_dispatcher_refused DROP applied, DROP dedup_key")
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(6, 1))
	require.Zero(t, n)
	require.ErrorContains(t, err, "earlier version")
	err = s.Check(t.Context())
	require.ErrorContains(t, err, "earlier version")
	r.obey(t, err, "ALTER TABLE \"public\".ordered_dispatcher_applied ADD")
	require.NoError(t, s.Check(t.Context()))
	sinktest.Delivered(t, s, sinktest.Deliveries(6, 1))
	mustBeUnproven(t, s, letter("sms", 2))
	sinktest.Delivered(t, s, letter("sms", 3))
	require.Equal(t, "1 2 4 5 6 3", r.ids(t))
}
