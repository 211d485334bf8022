package daemon_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// TestSkip_OfAHaltOverTheDatabaseSaysWhatItIs: it said "not at the expected position", though the operator had
// named none. Of one that is paused, status named a record that fails and has no id.
func TestSkip_OfAHaltOverTheDatabaseSaysWhatItIs(t *testing.T) {
	t.Parallel()
	clock := func(t *testing.T, s *cursor.Store, is error) string {
		row, err := s.Look(t.Context(), "a")
		require.NoError(t, err)
		require.NotEmpty(t, row.Position)
		require.ErrorIs(t, s.HaltClock(t.Context(), "a", cursor.ClockHalt{At: row.Position, Reason: "the clock stepped back, so `retry`"}), is)
		return "the clock stepped back, so `retry`"
	}
	for name, displace := range map[string]func(t *testing.T, pool *pgxpool.Pool, s *cursor.Store) (reason string){
		"halted as clock": func(t *testing.T, _ *pgxpool.Pool, s *cursor.Store) string { return clock(t, s, cursor.ErrHalted) },
		"paused as clock": func(t *testing.T, _ *pgxpool.Pool, s *cursor.Store) string {
			asBob(t, s.Pause)
			return clock(t, s, cursor.ErrPaused)
		},
		"restored": func(t *testing.T, pool *pgxpool.Pool, s *cursor.Store) string {
			exec(t, pool, "UPDATE od.cursor SET system_identifier = 1")
			_, err := s.Acquire(t.Context(), "a")
			require.ErrorIs(t, err, cursor.ErrHalted)
			return "the database is not the one this position belongs to"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := drained(t, stdoutProcess)
			s, err := cursor.NewStore(pool, cursor.Config{Schema: schema})
			require.NoError(t, err)
			reason := displace(t, pool, s)
			o, err := daemon.NewOperator(t.Context(), config, "a")
			require.NoError(t, err)
			defer o.Close()
			for _, d := range []cursor.Decision{{Actor: "alice", Reason: "x"}, {Actor: "alice", Reason: "x", DryRun: true}} {
				_, err = o.Skip(t.Context(), d)
				require.ErrorIs(t, err, cursor.ErrNotFailing)
				require.ErrorContains(t, err, "no record is failing: the process is halted over its database, and delivers nothing: "+reason)
				require.ErrorContains(t, err, "retry")
				require.Regexp(t, "; nothing was changed$", err.Error())
			}

			_, text, _ := status(t, config, "")
			require.Contains(t, text, reason)
			require.NotContains(t, text, "record  fails")
		})
	}
}
