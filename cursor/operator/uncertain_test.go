package operator_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestDecision_WhoseCommitIsNotAnsweredMayHaveBeenMade: who takes the error for a refusal
// and skips again passes over another record.
func TestDecision_WhoseCommitIsNotAnsweredMayHaveBeenMade(t *testing.T) {
	t.Parallel()
	d := cursor.Decision{Actor: "me", Reason: "test"}
	for action, decide := range map[string]func(context.Context, *cursor.Store) error{
		"skip": func(ctx context.Context, s *cursor.Store) error {
			_, err := operator.New(s).Skip(ctx, "sms", d)
			return err
		},
		"seek": func(ctx context.Context, s *cursor.Store) error {
			_, err := operator.New(s).Seek(ctx, "sms", "p7", d)
			return err
		},
		"rename": func(ctx context.Context, s *cursor.Store) error {
			_, err := operator.New(s).Rename(ctx, "sms", "texts", d)
			return err
		},
		"dead_letter_discarded": func(ctx context.Context, s *cursor.Store) error {
			open, err := operator.New(s).DeadLetters(ctx, "sms", false, 10)
			require.NoError(t, err)
			require.Len(t, open, 1)
			_, err = operator.New(s).Discard(ctx, open[0].ID, d)
			return err
		},
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			lease := acquire(t, created(t, pool, "a"))
			require.NoError(t, lease.PutAside(t.Context(), cursor.DeadLetter{Position: "p1", Table: "t", RecordID: "1", Failure: poison("p1")}))
			require.NoError(t, lease.Halt(t.Context(), poison("p2")))

			address, link := pgtest.Proxy(t, pgtest.URL(t))
			far, err := pgxpool.New(t.Context(), address)
			require.NoError(t, err)
			t.Cleanup(far.Close)
			link.OnData(func(fromServer bool, data []byte) {
				if fromServer && bytes.Contains(data, []byte("COMMIT\x00")) && events(pool, action) > 0 {
					link.Cut()
				}
			})
			err = decide(t.Context(), store(t, far, "operator"))
			require.ErrorIs(t, err, cursor.ErrUncertain)
			require.ErrorContains(t, err, "it is not known whether this was done")
		})
	}
}

// TestDecision_ThatTheServerRefusesWasNotMade: there is nothing uncertain about it.
func TestDecision_ThatTheServerRefusesWasNotMade(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	exec(t, pool, `
		CREATE FUNCTION dispatch.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON dispatch.cursor_event FOR EACH ROW EXECUTE FUNCTION dispatch.refuse()`)
	_, err := operator.New(s).Pause(t.Context(), "sms", cursor.Decision{Actor: "me", Reason: "test"})
	require.ErrorContains(t, err, "no")
	require.NotErrorIs(t, err, cursor.ErrUncertain)
	require.Zero(t, events(pool, "pause"))
}
