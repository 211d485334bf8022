package sql_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// hinder has a trigger of others at a table of the sink run its body.
func (r *remote) hinder(t testing.TB, table, when, body string) (restore func()) {
	t.Helper()
	r.exec(t, fmt.Sprintf(`CREATE FUNCTION public.hinder() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s END $$;
		CREATE TRIGGER hinder %s ON public.ordered_dispatcher_%s FOR EACH ROW EXECUTE FUNCTION public.hinder()`, body, when, table))
	return func() { r.exec(t, "DROP FUNCTION public.hinder CASCADE") }
}

// mustNotKeep is that the process halts, with the table and what to look for.
func mustNotKeep(t testing.TB, s *sql.Remote, ds ...processor.Delivery) {
	t.Helper()
	n, err := sinktest.Deliver(t, s, ds)
	require.ErrorIs(t, err, sql.ErrNotKept)
	require.True(t, processor.IsRefused(err), "the process does not halt: %v", err)
	require.ErrorContains(t, err, `"public".ordered_dispatcher_applied`)
	require.ErrorContains(t, err, "trigger")
	require.Zero(t, n)
}

func TestRemote_WhatTheTargetDoesNotNoteIsNotApplied(t *testing.T) {
	t.Parallel()
	const back = "IF pg_catalog.pg_trigger_depth() = 1 THEN UPDATE public.ordered_dispatcher_applied SET sequence = OLD.sequence; END IF; RETURN NULL;"
	for name, hinder := range map[string]func(*remote, testing.TB){
		"a trigger drops it":   func(r *remote, t testing.TB) { r.hinder(t, "applied", "BEFORE UPDATE", "RETURN NULL;") },
		"a trigger changes it": func(r *remote, t testing.TB) { r.hinder(t, "applied", "BEFORE UPDATE", "RETURN OLD;") },
		"a trigger undoes it":  func(r *remote, t testing.TB) { r.hinder(t, "applied", "AFTER UPDATE", back) },
		"a trigger removes it": func(r *remote, t testing.TB) {
			r.hinder(t, "applied", "AFTER UPDATE", "DELETE FROM public.ordered_dispatcher_applied; RETURN NULL;")
		},
		"a rule drops it": func(r *remote, t testing.TB) {
			r.exec(t, "CREATE RULE hinder AS ON UPDATE TO public.ordered_dispatcher_applied DO INSTEAD NOTHING")
		},
		"a later trigger does": func(r *remote, t testing.TB) { r.hinder(t, "applied", "AFTER UPDATE", back); r.exec(t, deferredSQL) },
		"a view has its place": func(r *remote, t testing.TB) { r.exec(t, viewSQL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			s := r.sink(t, nil)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 3))
			hinder(r, t)
			for range 2 {
				mustNotKeep(t, s, sinktest.Deliveries(4, 1)...)
				mustNotKeep(t, s, sinktest.Deliveries(4, 3)...)
			}
			require.Equal(t, "1 2 3", r.ids(t))
			require.Equal(t, "3/3", r.noted(t))
		})
	}
}

const (
	deferredSQL = `DROP TRIGGER hinder ON public.ordered_dispatcher_applied;
		CREATE CONSTRAINT TRIGGER hinder AFTER UPDATE ON public.ordered_dispatcher_applied DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.hinder()`
	viewSQL = `ALTER TABLE public.ordered_dispatcher_applied RENAME TO kept; CREATE VIEW public.ordered_dispatcher_applied AS SELECT * FROM public.kept;
		CREATE FUNCTION public.hinder() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
		CREATE TRIGGER hinder INSTEAD OF UPDATE ON public.ordered_dispatcher_applied FOR EACH ROW EXECUTE FUNCTION public.hinder()`
)

func TestRemote_TheFirstRowThatTheTargetDoesNotKeepIsNamed(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	restore := r.hinder(t, "applied", "BEFORE INSERT", "RETURN NULL;")
	mustNotKeep(t, s, sinktest.Deliveries(1, 2)...)
	restore()
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
}

// A failure that is not noted would have the record look lost after it was passed over.
func TestRemote_ARecordWhoseFailureTheTargetDoesNotNoteIsNotGivenUp(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.refuse(t, "refused")
	s := r.sink(t, nil)
	restore := r.hinder(t, "refused", "BEFORE INSERT", "RETURN NULL;")
	ds := sinktest.Deliveries(1, 1)
	ds[0].Type = "refused"
	mustNotKeep(t, s, ds...)
	restore()
	_, err := sinktest.Deliver(t, s, ds)
	require.True(t, processor.IsPermanent(err), err)
	_, err = sinktest.Deliver(t, s, ds) // noted before
	require.Equal(t, "permanent", sinktest.Class(err), err)
	require.Equal(t, "0/3 refused 1", r.noted(t))
}

// The note that a record failed must go with its replay, or the next replay applies it again.
func TestRemote_AReplayThatTheTargetDoesNotNoteIsNotApplied(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	restore := r.refuse(t, "refused")
	s := r.sink(t, nil)
	ds := sinktest.Deliveries(1, 2)
	ds[0].Type = "refused"
	_, err := sinktest.Deliver(t, s, ds[:1])
	require.True(t, processor.IsPermanent(err), err)
	sinktest.Delivered(t, s, ds[1:])
	restore()
	free := r.hinder(t, "refused", "BEFORE UPDATE", "RETURN NULL;")
	replay := ds[:1]
	replay[0].After = replay[0].Position
	mustNotKeep(t, s, replay...)
	require.Equal(t, "2", r.ids(t))
	free()
	sinktest.Delivered(t, s, replay)
	sinktest.Delivered(t, s, replay)
	require.Equal(t, "2 1", r.ids(t))
}
