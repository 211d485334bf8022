package operator_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

// TestDecision_WithoutAnEventChangesNothing: a trigger that archives events elsewhere let
// operators' commands through without a trace.
func TestDecision_WithoutAnEventChangesNothing(t *testing.T) {
	t.Parallel()
	decided := func(_ operator.Change, err error) error { return err }
	for name, decide := range map[string]func(context.Context, *cursor.Store) error{
		"pause": func(ctx context.Context, s *cursor.Store) error {
			return decided(operator.New(s).Pause(ctx, "sms", alice))
		},
		"resume": func(ctx context.Context, s *cursor.Store) error {
			return decided(operator.New(s).Resume(ctx, "paused", alice))
		},
		"retry": func(ctx context.Context, s *cursor.Store) error {
			return decided(operator.New(s).Retry(ctx, "stuck", alice))
		},
		"skip": func(ctx context.Context, s *cursor.Store) error {
			return decided(operator.New(s).Skip(ctx, "stuck", alice))
		},
		"seek": func(ctx context.Context, s *cursor.Store) error {
			return decided(operator.New(s).Seek(ctx, "sms", "p9", alice))
		},
		"rename": func(ctx context.Context, s *cursor.Store) error {
			return decided(operator.New(s).Rename(ctx, "sms", "mail", alice))
		},
		"forget": func(ctx context.Context, s *cursor.Store) error {
			return decided(operator.New(s).Forget(ctx, "sms", alice))
		},
		"prepare": func(ctx context.Context, s *cursor.Store) error {
			return decided(operator.New(s).Prepare(ctx, "new", "p0", cursor.Paused, "pause", alice))
		},
		"forget one that is gone": func(ctx context.Context, s *cursor.Store) error {
			return decided(operator.New(s).Forget(ctx, "gone", alice))
		},
		"discard": func(ctx context.Context, s *cursor.Store) error {
			_, err := operator.New(s).Discard(ctx, 1, alice)
			return err
		},
		"replay, before anything is sent": func(ctx context.Context, s *cursor.Store) error {
			lease, err := s.Acquire(ctx, "sms")
			require.NoError(t, err)
			defer lease.Release()
			_, err = lease.Letter(ctx, 1, alice)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			s := created(t, pool, "a")
			lease := acquire(t, s)
			require.NoError(t, lease.PutAside(t.Context(), letter()))
			lease.Release()
			for _, process := range []string{"paused", "stuck", "gone"} {
				_, err := s.Create(t.Context(), process, "p0")
				require.NoError(t, err)
			}
			require.NoError(t, decided(operator.New(s).Pause(t.Context(), "paused", alice)))
			stuck, err := s.Acquire(t.Context(), "stuck")
			require.NoError(t, err)
			require.NoError(t, stuck.Fail(t.Context(), poison("p1")))
			exec(t, pool, `DELETE FROM dispatch.cursor WHERE process_name = 'gone';
				CREATE TABLE dispatch.archive (LIKE dispatch.cursor_event);
				CREATE FUNCTION dispatch.archive() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO dispatch.archive SELECT new.*; RETURN NULL; END $$;
				CREATE TRIGGER archive BEFORE INSERT ON dispatch.cursor_event FOR EACH ROW EXECUTE FUNCTION dispatch.archive()`)
			all := func() (text string) {
				require.NoError(t, pool.QueryRow(t.Context(), `SELECT concat(
					(SELECT string_agg(concat_ws(' ', process_name, position, sequence, state, failed_position), ', ' ORDER BY process_name) FROM dispatch.cursor),
					(SELECT string_agg(concat(id, resolution), ', ') FROM dispatch.dead_letter), (SELECT count(*) FROM dispatch.archive))`).Scan(&text))
				return text
			}
			before := all()
			require.ErrorIs(t, decide(t.Context(), s), cursor.ErrNoEvent)
			require.Equal(t, before, all())

			exec(t, pool, `DROP TRIGGER archive ON dispatch.cursor_event`)
			require.NoError(t, decide(t.Context(), s))
		})
	}
}
