package cursor_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
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
			var effects int
			require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM dispatch.effect`).Scan(&effects))
			require.Zero(t, effects)
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
		"pause":  func() error { _, err := s.Pause(t.Context(), "sms", decision); return err },
		"rename": func() error { _, err := s.Rename(t.Context(), "sms", "other", decision); return err },
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
	distrust(t, pool, "dead_letter", "RETURN OLD;")
	decision := cursor.Decision{Actor: "me", Reason: "test"}
	_, err := s.Discard(t.Context(), 1, decision)
	require.ErrorContains(t, err, "the row did not take the change")
	require.NotErrorIs(t, err, cursor.ErrNoDeadLetter)
	_, err = s.Rename(t.Context(), "sms", "other", decision)
	require.ErrorContains(t, err, "the row did not take the change", "its dead letters would be left behind")
	_, err = acquire(t, s).Letter(t.Context(), 1, decision)
	require.ErrorContains(t, err, "the row did not take the change", "before anything is sent")
}
