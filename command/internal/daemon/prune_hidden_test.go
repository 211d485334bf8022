package daemon_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// confinedRule is a rule that a role carries out which has only what is printed for it. All rows are delivered.
func confinedRule(t *testing.T) (pool *pgxpool.Pool, role string, config daemon.Config) {
	t.Helper()
	pool, config = aged(t, stdoutProcess, "keep: 1h, mode: archive, archive: public.archive", 5)
	exec(t, pool, "CREATE TABLE public.archive (LIKE public.bookings); UPDATE public.bookings SET customer = 'ann' WHERE id IN (1, 2)")
	role, config = granted(t, pool, config)
	exec(t, pool, `GRANT SELECT, DELETE ON public.bookings, public.archive TO "`+role+`"; GRANT SELECT, UPDATE ON od.dead_letter TO "`+role+`"; GRANT INSERT ON od.cursor_event TO "`+role+`"`)
	return pool, role, config
}

// A DELETE of a role from which a policy hides rows would remove only those that it shows, and say nothing.
func TestPrune_RefusesATableOfWhichRowsAreHidden(t *testing.T) {
	t.Parallel()
	for _, hiding := range []string{"public.bookings", "public.archive"} {
		t.Run(hiding, func(t *testing.T) {
			t.Parallel()
			pool, role, config := confinedRule(t)
			exec(t, pool, "CREATE POLICY visible ON "+hiding+" USING (id <> 1); ALTER TABLE "+hiding+" ENABLE ROW LEVEL SECURITY")
			want := "row-level security hides rows of " + hiding + " from role " + role
			for range 2 {
				_, err := prune(t, config)
				require.ErrorContains(t, err, want)
				require.NotContains(t, err.Error(), "grants")
			}
			_, err := daemon.Erase(t.Context(), config, "public.bookings", table.Erase{By: "customer", Key: "ann"}, cursor.Decision{Actor: "ann", Reason: "request 7"})
			require.ErrorContains(t, err, "row-level security")
			require.Equal(t, 8, staying(t, pool))
			found := finding(t, doctor(t, config), want)
			require.Equal(t, daemon.Refuse, found.Severity)
			require.Equal(t, `ALTER ROLE "`+role+`" BYPASSRLS`, found.Fix)

			exec(t, pool, found.Fix)
			require.EqualValues(t, 5, pruned(t, config).Rows)
			done, err := daemon.Erase(t.Context(), config, "public.bookings", table.Erase{By: "customer", Key: "ann"}, cursor.Decision{Actor: "ann", Reason: "request 7"})
			require.NoError(t, err)
			require.EqualValues(t, 2, done.Archived)
		})
	}
}
