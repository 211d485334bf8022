package daemon_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// A pass looks at the rows of one table. ON DELETE CASCADE would remove rows of another that no one has delivered.
func TestPrune_RefusesWhatCascadesToATableOfAProcess(t *testing.T) {
	t.Parallel()
	const lines = "CREATE TABLE public.lines (LIKE public.bookings INCLUDING ALL, booking bigint, "
	for name, c := range map[string]struct{ tables, read, key string }{
		"at once": {lines + "CONSTRAINT of_booking FOREIGN KEY (booking) REFERENCES public.bookings ON DELETE CASCADE);", "lines", "of_booking of public.lines"},
		"through another": {`CREATE TABLE public.middle (id bigint PRIMARY KEY REFERENCES public.bookings ON DELETE CASCADE);` +
			lines + "CONSTRAINT of_middle FOREIGN KEY (booking) REFERENCES public.middle ON DELETE CASCADE);", "lines", "of_middle of public.lines"},
		"to a part": {lines + "CONSTRAINT of_booking FOREIGN KEY (booking) REFERENCES public.bookings ON DELETE CASCADE);" +
			"CREATE TABLE public.all_lines (LIKE public.bookings INCLUDING ALL, booking bigint); ALTER TABLE public.lines INHERIT public.all_lines;",
			"all_lines", "of_booking of public.lines"},
		"to itself": {"ALTER TABLE public.bookings ADD parent bigint CONSTRAINT of_parent REFERENCES public.bookings ON DELETE CASCADE;", "bookings", "of_parent of public.bookings"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _ := aged(t, stdoutProcess, "keep: 1h", 4)
			exec(t, pool, c.tables)
			config := ruled(t, stdoutProcess+"  lines: {source: {table: public."+c.read+", order: id}, sink: {stdout: {}}}\n", "public.bookings", "keep: 1h")
			_, err := prune(t, config)
			require.ErrorContains(t, err, "the foreign key "+c.key+" has ON DELETE CASCADE, and a process reads public."+c.read)
			erase := table.Erase{By: "customer", Key: "x"}
			_, err = daemon.Erase(t.Context(), config, "public.bookings", erase, cursor.Decision{Actor: "ann", Reason: "asked"})
			require.ErrorContains(t, err, "the foreign key "+c.key)
			require.Equal(t, 7, staying(t, pool))

			var found []string
			for _, f := range doctor(t, config) {
				if f.Severity == daemon.Refuse {
					found = append(found, f.Problem)
				}
			}
			require.Contains(t, found, "retention of public.bookings removes nothing, since it would remove records that no one has delivered: the foreign key "+
				c.key+" has ON DELETE CASCADE, and a process reads public."+c.read)

			config.Rules[0].Mode, config.Rules[0].Column = "mark", "gone"
			exec(t, pool, "ALTER TABLE public.bookings ADD gone boolean")
			_, err = prune(t, config)
			require.NotContains(t, fmt.Sprint(err), "CASCADE")
		})
	}
}

func TestPrune_ACascadeToATableThatNoProcessReadsIsFine(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h", 4)
	exec(t, pool, "CREATE TABLE public.notes (booking bigint REFERENCES public.bookings ON DELETE CASCADE)")
	require.EqualValues(t, 4, pruned(t, config).Rows)
}
