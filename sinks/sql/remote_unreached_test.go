package sql_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// hangUp has the target end the sink's sessions.
func (r *remote) hangUp(t testing.TB) {
	t.Helper()
	r.exec(t, "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'ordered-dispatcher sink' AND datname = current_database()")
}

func TestRemote_AConnectionThatEndedWhileItWasIdleIsNoFailure(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	r.hangUp(t)
	sinktest.Delivered(t, s, sinktest.Deliveries(2, 2))
	require.Equal(t, "1 2 3", r.ids(t))

	r.hangUp(t)
	back := r.away(t)
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(4, 1))
	require.True(t, processor.IsUnreached(err), err)
	back()
	sinktest.Delivered(t, s, sinktest.Deliveries(4, 1))
}

// What the target says of itself is no attempt at the record: no dead letter is made of it.
func TestRemote_WhatIsWrongWithTheTargetIsNoVerdictOnTheRecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change string
		next   []processor.Delivery
	}{
		"its notes are behind": {"UPDATE public.ordered_dispatcher_applied SET sequence = 1, position = 'int:1', dedup_key = NULL", sinktest.Deliveries(4, 1)},
		"its notes are gone":   {"TRUNCATE public.ordered_dispatcher_applied", sinktest.Deliveries(4, 1)},
		"it has another one":   {"SELECT 1", numbered(3, sinktest.Deliveries(9, 1))},
		"it has a later epoch": {"UPDATE public.ordered_dispatcher_applied SET epoch = 99", sinktest.Deliveries(4, 1)},
		"it proves nothing":    {"UPDATE public.ordered_dispatcher_applied SET since = 3", letter("sms", 2)},
		"its tables are old":   {"ALTER TABLE public.ordered_dispatcher_applied DROP since", sinktest.Deliveries(4, 1)},
		"its tables are gone":  {"DROP TABLE public.ordered_dispatcher_applied", sinktest.Deliveries(4, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			s := r.sink(t, nil)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 3))
			r.exec(t, c.change)
			n, err := sinktest.Deliver(t, s, c.next)
			require.Zero(t, n)
			require.Equal(t, "unreached", sinktest.Class(err), err)
		})
	}
}

// numbered has deliveries under the numbers from there on.
func numbered(first int64, ds []processor.Delivery) []processor.Delivery {
	for i := range ds {
		ds[i].Sequence = first + int64(i)
	}
	return ds
}

// Another session has the notes of the process: nothing was written, and nothing is unknown.
func TestRemote_AWaitForTheNotesIsNoAttempt(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, func(c *sql.Config) { c.Timeout = 3 * time.Second })
	sinktest.Delivered(t, r.sink(t, nil), sinktest.Deliveries(1, 1))
	pgtest.Begin(t, r.pool, "SELECT FROM public.ordered_dispatcher_applied FOR UPDATE")
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 1))
	require.ErrorContains(t, err, "nothing was written")
	require.True(t, processor.IsUnreached(err), err)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.DeliverBatch(ctx, sinktest.Deliveries(2, 1))
	require.True(t, processor.IsUnreached(err), err)
}

// The statements of all records together take longer than the call may, and each alone does not. Neither is such an
// attempt the first record's, nor is it repeated for ever.
func TestRemote_ACheckpointOfSlowStatementsIsApplied(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s, ds := r.sink(t, nil), sinktest.Deliveries(2, 30)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1)) // connected
	pgtest.Exec(t, r.pool, `CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.2); RETURN NEW; END';
		CREATE TRIGGER slow BEFORE INSERT ON public.received FOR EACH ROW EXECUTE FUNCTION public.slow()`)
	call := func() (int, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return s.DeliverBatch(ctx, ds)
	}
	n, err := call()
	require.Zero(t, n)
	require.Equal(t, "outage", sinktest.Class(err), err)
	require.ErrorContains(t, err, "30 records took longer together than a call may")
	for calls := 0; len(ds) > 0; calls++ {
		require.Less(t, calls, 30, "it makes no progress")
		n, _ = call()
		ds = ds[n:]
	}
	require.Equal(t, "31", r.text(t, "SELECT count(*)::text FROM public.received"))
}
