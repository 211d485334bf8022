package cursor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// distrust gives a table a trigger that a colleague made: it answers for every change, and
// lets none through.
func distrust(t testing.TB, pool *pgxpool.Pool, table, body string) {
	t.Helper()
	exec(t, pool, `
		CREATE FUNCTION dispatch.distrust() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN `+body+` END $$;
		CREATE TRIGGER distrust BEFORE UPDATE ON dispatch.`+table+` FOR EACH ROW EXECUTE FUNCTION dispatch.distrust()`)
}

// TestLease_AChangeThatTheRowDoesNotTakeIsAnError: the server counts a row as changed that a
// trigger left as it was, or gave other values.
func TestLease_AChangeThatTheRowDoesNotTakeIsAnError(t *testing.T) {
	t.Parallel()
	failure := cursor.Failure{Position: "p1", RecordID: "1", Attempts: 1, Error: "no"}
	for name, end := range map[string]func(context.Context, *cursor.Lease) error{
		"advance": func(ctx context.Context, l *cursor.Lease) error { return l.Advance(ctx, "p1", 1) },
		"advance when it looks for waiters": func(ctx context.Context, l *cursor.Lease) error {
			cursor.Unyielded(l)
			return l.Advance(ctx, "p1", 1)
		},
		"fail": func(ctx context.Context, l *cursor.Lease) error { return l.Fail(ctx, failure) },
		"note": func(ctx context.Context, l *cursor.Lease) error { return l.Note(ctx, failure) },
		"halt": func(ctx context.Context, l *cursor.Lease) error { return l.Halt(ctx, failure) },
		"put aside": func(ctx context.Context, l *cursor.Lease) error {
			return l.PutAside(ctx, cursor.DeadLetter{Position: "p1", Table: "t", RecordID: "1", Failure: failure})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			lease := acquire(t, created(t, pool, "a"))
			distrust(t, pool, "cursor", "RETURN OLD;")
			err := end(t.Context(), lease)
			require.ErrorIs(t, err, cursor.ErrLeaseLost)
			require.ErrorContains(t, err, "the row did not take the change")
			var left int
			require.NoError(t, pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM dispatch.cursor_event WHERE action <> 'create')
				+ (SELECT count(*) FROM dispatch.dead_letter)`).Scan(&left))
			require.Zero(t, left, "events and dead letters of a change that is not there")
		})
	}
}

// TestAdvance_WithOtherNumbersThanItsOwnCommitsNoEffects: one number would stand for two records.
func TestAdvance_WithOtherNumbersThanItsOwnCommitsNoEffects(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"the position": "NEW.position := OLD.position; RETURN NEW;",
		"the sequence": "NEW.sequence := OLD.sequence; RETURN NEW;",
		"the epoch":    "NEW.epoch := 7; RETURN NEW;",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			exec(t, pool, `CREATE TABLE dispatch.effect (n int)`)
			lease, err := created(t, pool, "a").AcquireTx(t.Context(), "sms", 0)
			require.NoError(t, err)
			t.Cleanup(lease.Release)
			distrust(t, pool, "cursor", body)
			inTx(t, lease, `INSERT INTO dispatch.effect VALUES (1)`)
			require.ErrorIs(t, lease.Advance(t.Context(), "p1", 1), cursor.ErrUnmoved)
			require.Zero(t, pgtest.Value[int](t, pool, `SELECT count(*) FROM dispatch.effect`))
		})
	}
}

func TestAcquire_OfARowThatTakesNoEpochSaysSo(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	distrust(t, pool, "cursor", "RETURN OLD;")
	_, err := s.Acquire(t.Context(), "sms")
	require.ErrorContains(t, err, "the row did not take the change")
	require.NotErrorIs(t, err, cursor.ErrHeld)
}

func TestDecision_ThatTheRowDoesNotTakeIsAnError(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	distrust(t, pool, "cursor", "RETURN OLD;")
	decision := cursor.Decision{Actor: "me", Reason: "test"}
	for name, decide := range map[string]func() error{
		"pause":  func() error { _, err := operator.New(s).Pause(t.Context(), "sms", decision); return err },
		"rename": func() error { _, err := operator.New(s).Rename(t.Context(), "sms", "other", decision); return err },
	} {
		require.ErrorContains(t, decide(), "the row did not take the change", name)
	}
	require.Equal(t, cursor.Running, look(t, s).State)
	require.Equal(t, []string{"create"}, actionsOf(history(t, s)), "what was not done has no event")
}

func TestDeadLetter_ThatDoesNotTakeItsResolutionIsNotResolved(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	lease := acquire(t, s)
	require.NoError(t, lease.PutAside(t.Context(), letter()))
	lease.Release()
	distrust(t, pool, "dead_letter", "RETURN NULL;")
	decision := cursor.Decision{Actor: "me", Reason: "test"}
	_, err := operator.New(s).Rename(t.Context(), "sms", "other", decision)
	require.ErrorContains(t, err, "dead letters left behind: 1")
	exec(t, pool, "DROP TRIGGER distrust ON dispatch.dead_letter; DROP FUNCTION dispatch.distrust")
	distrust(t, pool, "dead_letter", "RETURN OLD;")
	_, err = operator.New(s).Discard(t.Context(), 1, decision)
	require.ErrorContains(t, err, "the row did not take the change")
	require.NotErrorIs(t, err, cursor.ErrNoDeadLetter)
	_, err = operator.New(s).Rename(t.Context(), "sms", "other", decision)
	require.ErrorContains(t, err, "the row did not take the change", "its dead letters would be left behind")
	_, err = acquire(t, s).Letter(t.Context(), 1, decision)
	require.ErrorContains(t, err, "the row did not take the change", "before anything is sent")
}

// kept is a trigger of others at the cursor table that keeps an advance from the row, or
// undoes it behind the UPDATE.
var kept = map[string]string{
	"all of it":                "BEFORE UPDATE ON dispatch.cursor FOR EACH ROW EXECUTE FUNCTION dispatch.keep()",
	"moves of the position":    "BEFORE UPDATE OF position ON dispatch.cursor FOR EACH ROW EXECUTE FUNCTION dispatch.keep()",
	"moves of the sequence":    "BEFORE UPDATE OF sequence ON dispatch.cursor FOR EACH ROW EXECUTE FUNCTION dispatch.keep()",
	"where the sequence grows": "BEFORE UPDATE ON dispatch.cursor FOR EACH ROW WHEN (NEW.sequence > OLD.sequence) EXECUTE FUNCTION dispatch.keep()",
	"the ends of failures":     "BEFORE UPDATE OF failed_class ON dispatch.cursor FOR EACH ROW EXECUTE FUNCTION dispatch.keep()",
	"undone":                   "AFTER UPDATE ON dispatch.cursor FOR EACH ROW WHEN (NEW.sequence > OLD.sequence) EXECUTE FUNCTION dispatch.undo()",
}

// undone are those that act behind the UPDATE.
var undone = []string{
	kept["undone"],
	"AFTER UPDATE ON dispatch.cursor DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.sequence > OLD.sequence) EXECUTE FUNCTION dispatch.undo()",
}

// keeps makes such a trigger.
func keeps(t testing.TB, pool *pgxpool.Pool, trigger string) {
	t.Helper()
	kind := "TRIGGER"
	if strings.Contains(trigger, "DEFERRED") {
		kind = "CONSTRAINT TRIGGER"
	}
	exec(t, pool, `CREATE OR REPLACE FUNCTION dispatch.keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE OR REPLACE FUNCTION dispatch.undo() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN UPDATE dispatch.cursor SET position = OLD.position, sequence = OLD.sequence WHERE process_name = NEW.process_name; RETURN NULL; END';
		CREATE `+kind+` keeper `+trigger)
}

// TestAcquire_NoLeaseOfARowThatTakesNoAdvance: neither for a worker that takes over, nor for
// one that was restarted under its name.
func TestAcquire_NoLeaseOfARowThatTakesNoAdvance(t *testing.T) {
	t.Parallel()
	for name, trigger := range kept {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			acquire(t, created(t, pool, "a")).Release()
			before := look(t, store(t, pool, "a"))
			keeps(t, pool, trigger)
			for _, worker := range []string{"a", "b"} {
				_, err := store(t, pool, worker).Acquire(t.Context(), "sms")
				require.ErrorContains(t, err, "the row refuses an advance: before it sent anything, the worker tried one", worker)
				require.ErrorContains(t, err, "at the table cursor, by others: trigger audit, trigger keeper", worker)
			}
			require.Equal(t, before, look(t, store(t, pool, "a")))
			exec(t, pool, "DROP TRIGGER keeper ON dispatch.cursor")
			for _, worker := range []string{"a", "b"} {
				acquire(t, store(t, pool, worker)).Release()
			}
		})
	}
}

// TestAdvance_ThatATriggerUndoesIsAnError: the server counts it, returns it, and commits it.
func TestAdvance_ThatATriggerUndoesIsAnError(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(context.Context, *cursor.Lease) error{
		"advance":   func(ctx context.Context, l *cursor.Lease) error { return l.Advance(ctx, "p1", 1) },
		"put aside": func(ctx context.Context, l *cursor.Lease) error { return l.PutAside(ctx, letter()) },
		"write off": func(ctx context.Context, l *cursor.Lease) error { return l.WriteOff(ctx, "p1", 1) },
		"advance when it looks for waiters": func(ctx context.Context, l *cursor.Lease) error {
			cursor.Unyielded(l)
			return l.Advance(ctx, "p1", 1)
		},
	} {
		for _, trigger := range undone {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				pool := database(t)
				s := created(t, pool, "a")
				exec(t, pool, "DROP TRIGGER audit ON dispatch.cursor") // here it does go back
				lease := acquire(t, s)
				keeps(t, pool, trigger)
				require.ErrorIs(t, end(t.Context(), lease), cursor.ErrUndone)
				require.ErrorIs(t, context.Cause(lease.Context()), cursor.ErrLeaseLost)
				lease.Release()
				_, err := s.Acquire(t.Context(), "sms")
				require.ErrorContains(t, err, "the row refuses an advance")
				exec(t, pool, "DROP TRIGGER keeper ON dispatch.cursor")
				lease = acquire(t, s)
				require.EqualValues(t, 1, lease.Epoch(), "who made the advance goes on in its epoch")
				require.NoError(t, lease.Advance(t.Context(), "p1", 1))
			})
		}
	}
}
