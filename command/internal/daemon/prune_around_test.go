package daemon_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

const (
	partProcess = "  a: {source: {table: public.feb}, sink: {stdout: {}}, poll: 20ms}\n"
	byID        = "  a: {source: {table: public.bookings, order: id}, sink: {stdout: {}}, poll: 20ms}\n"
)

var byAnn = cursor.Decision{Actor: "ann", Reason: "again"}

// called gives a process of a text another name.
func called(process, name string) string { return strings.Replace(process, " a:", " "+name+":", 1) }

// refusedSeek seeks back, also in a dry run, and returns why that is refused.
func refusedSeek(t testing.TB, config daemon.Config, to daemon.Target) (gone *operator.PrunedError) {
	t.Helper()
	for _, d := range []cursor.Decision{{Actor: "ann", DryRun: true}, byAnn} {
		_, err := operatorOf(t, config).Seek(t.Context(), to, d)
		require.ErrorAs(t, err, &gone)
		require.ErrorContains(t, err, "--pruned")
	}
	return gone
}

// sharing is a table with partitions, one process on all of it and one on February. All is delivered. One of the two has
// a rule, the other one is process a.
func sharing(t testing.TB, rule, process string) (pool *pgxpool.Pool, ruling, other daemon.Config) {
	t.Helper()
	pool = months(t)
	table := "public.events"
	if rule == partProcess {
		table = "public.feb"
	}
	ruling = ruled(t, called(rule, "ruled"), table, "keep: 1h")
	other = configure(t, pgtest.URL(t), process)
	deliver(t, ruling)
	require.NoError(t, drain(t, other))
	return pool, ruling, other
}

func TestSeek_OnATableAboveOrBelowThatOfTheRuleSeesWhatWasRemoved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rule, process, table string }{
		"a partition of it":  {monthsProcess, partProcess, "public.feb"},
		"the table above it": {partProcess, monthsProcess, "public.events"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, ruling, other := sharing(t, c.rule, c.process)
			pruned(t, ruling)
			for _, to := range []daemon.Target{daemon.ToBeginning, daemon.ToPosition(midFebruary)} {
				gone := refusedSeek(t, other, to)
				require.Equal(t, c.table, gone.Table)
				require.EqualValues(t, february, gone.Through)
			}
			if c.process == partProcess {
				exec(t, pool, "ALTER TABLE public.events DETACH PARTITION public.feb")
				refusedSeek(t, other, daemon.ToPosition(midFebruary))
			}
			d := byAnn
			d.Pruned = true
			_, err := operatorOf(t, other).Seek(t.Context(), daemon.ToPosition(midFebruary), d)
			require.NoError(t, err)
		})
	}
}

func TestSeek_OnATableAboveOrBelowThatOfTheRuleWaitsForARemoval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rule, process string }{
		"a partition of it":  {monthsProcess, partProcess},
		"the table above it": {partProcess, monthsProcess},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, ruling, other := sharing(t, c.rule, c.process)
			refusedMeanwhile(t, pool, ruling, other, "public.feb", midFebruary)
		})
	}
}

// A partition that retention has closed and detached is still one of the table's: it goes with the next pass.
func TestPrune_ACursorOnAPartitionThatIsDetachedAndNotDroppedYetKeepsIt(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	part := configure(t, pgtest.URL(t), called(strings.Replace(partProcess, "feb", "jan", 1), "part"))
	require.NoError(t, drain(t, part))
	exec(t, pool, `ALTER TABLE public.jan ADD CONSTRAINT ordered_dispatcher_drops_this_partition CHECK (false) NOT VALID;
		COMMENT ON CONSTRAINT ordered_dispatcher_drops_this_partition ON public.jan IS 'public.events';
		ALTER TABLE public.events DETACH PARTITION public.jan;`)
	place(t, pool, "part", midJanuary, "paused")
	_, err := prune(t, config)
	require.ErrorContains(t, err, "would pass the cursor of part")
	require.Equal(t, 2, count(t, pool, "SELECT count(*) FROM public.jan"))
}

// Any role may give its own table the constraint and the comment of a partition of ours.
func TestPrune_ATableOfAnotherOwnerIsNoPartitionThatWasClosed(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h", 2)
	exec(t, pool, `CREATE TABLE public.theirs (pk bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ts timestamptz NOT NULL DEFAULT clock_timestamp())`)
	other := configure(t, pgtest.URL(t), "  other: {source: {table: public.theirs, order: id, columns: {id: pk, created_at: ts}}, sink: {stdout: {}}, poll: 20ms}\n")
	require.NoError(t, drain(t, other))
	exec(t, pool, `ALTER TABLE public.theirs ADD CONSTRAINT ordered_dispatcher_drops_this_partition CHECK (false) NOT VALID;
		COMMENT ON CONSTRAINT ordered_dispatcher_drops_this_partition ON public.theirs IS 'public.bookings'`)
	require.Contains(t, problems(doctor(t, config)), "retention has closed public.theirs, to drop it from public.bookings")
	exec(t, pool, `ALTER TABLE public.theirs OWNER TO `+pgtest.Role(t, pool, "od_", ""))
	require.EqualValues(t, 2, pruned(t, config).Rows)
	require.NotContains(t, problems(doctor(t, config)), "retention has closed")

	exec(t, pool, `ALTER TABLE public.theirs OWNER TO CURRENT_USER; COMMENT ON CONSTRAINT ordered_dispatcher_drops_this_partition ON public.theirs IS NULL`)
	require.NotContains(t, problems(doctor(t, config)), "retention has closed", "no comment names its table")
}

func TestSeek_ATableThatHasAnotherNameNowIsKnown(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h", 4)
	pruned(t, config)
	exec(t, pool, "ALTER TABLE public.bookings RENAME TO orders")
	renamed := configure(t, pgtest.URL(t), strings.Replace(stdoutProcess, "bookings", "orders", 1))
	gone := refusedSeek(t, renamed, daemon.ToPosition(oldAt(3)))
	require.Equal(t, "public.orders", gone.Table)
	require.Equal(t, oldAt(4), gone.Through)

	exec(t, pool, "CREATE TABLE public.others (LIKE public.orders INCLUDING ALL)")
	other := configure(t, pgtest.URL(t), strings.Replace(called(stdoutProcess, "other"), "bookings", "others", 1))
	o, err := daemon.NewOperator(t.Context(), other, "other")
	require.NoError(t, err)
	t.Cleanup(o.Close)
	_, err = o.Seek(t.Context(), daemon.ToBeginning, byAnn)
	require.NoError(t, err, "of another table nothing is gone")
}

// Positions of two orders cannot be compared, so it is not known what a replay would lack.
func TestSeek_BackInAnotherOrderThanThatOfTheRemovalIsRefused(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, called(stdoutProcess, "other"), "keep: 1h", 4)
	pruned(t, config)
	late := configure(t, pgtest.URL(t), byID)
	require.NoError(t, drain(t, late))
	const fifth, sixth, last = "int:00000000000000000005", "int:00000000000000000006", "int:00000000000000000007"
	for _, to := range []daemon.Target{daemon.ToBeginning, daemon.ToPosition(sixth)} {
		gone := refusedSeek(t, late, to)
		require.True(t, gone.Apart)
		require.EqualError(t, gone, "records of public.bookings up to position "+string(oldAt(4))+" were removed (retention, mode delete), so this replay may lack some of them: "+
			"the positions of a cannot be compared with that one. To go there with what the table holds, add --pruned")
	}
	require.Equal(t, last, pgtest.Value[string](t, pool, "SELECT position FROM od.cursor WHERE process_name = 'a'"))
	err := daemon.ShowRecords(t.Context(), late, "a", daemon.Ask{After: 0, Limit: 10}, &bytes.Buffer{})
	require.ErrorIs(t, err, daemon.ErrRemoved)
	require.ErrorContains(t, err, "a place that cannot be compared with those of this process")

	d := byAnn
	d.Pruned = true
	o := operatorOf(t, late)
	_, err = o.Seek(t.Context(), daemon.ToPosition(fifth), d)
	require.NoError(t, err)
	_, err = o.Seek(t.Context(), daemon.ToPosition(sixth), byAnn)
	require.NoError(t, err, "nothing comes again on the way forward")
}

func TestSeek_BeforeTheFirstRunSeesWhatWasRemoved(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, called(stdoutProcess, "other"), "keep: 1h", 4)
	pruned(t, config)
	fresh := configure(t, pgtest.URL(t), stdoutProcess)
	require.Equal(t, oldAt(4), refusedSeek(t, fresh, daemon.ToPosition(oldAt(3))).Through)
	require.Equal(t, oldAt(4), refusedSeek(t, fresh, daemon.ToBeginning).Through)
	require.Zero(t, count(t, pool, "SELECT count(*) FROM od.cursor WHERE process_name = 'a'"))

	_, err := operatorOf(t, fresh).Seek(t.Context(), daemon.ToPosition(oldAt(4)), byAnn)
	require.NoError(t, err)
	exec(t, pool, "DELETE FROM od.cursor WHERE process_name = 'a'; INSERT INTO od.cursor_event (process_name, actor, action) VALUES ('a', 'ann', 'forget')")
	d := byAnn
	d.Pruned = true
	outcome, err := operatorOf(t, fresh).Seek(t.Context(), daemon.ToBeginning, d)
	require.NoError(t, err)
	require.Contains(t, outcome.Text, "a has not run yet: its first worker starts at the beginning")
}

func TestSeek_BeforeTheFirstRunWaitsForARemoval(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, called(stdoutProcess, "other"), "keep: 1h", 4)
	refusedMeanwhile(t, pool, config, configure(t, pgtest.URL(t), stdoutProcess), "public.bookings", oldAt(1))
}

// A start sends what the table holds, and is no replay: it is not refused, but doctor shows what it will lack.
func TestDoctor_NotesWhatANewProcessWillLack(t *testing.T) {
	t.Parallel()
	_, config := aged(t, called(stdoutProcess, "other"), "keep: 1h", 4)
	pruned(t, config)
	for start, lacks := range map[cursor.Position]bool{"beginning": true, oldAt(3): true, oldAt(4): false, "end": false} {
		fresh := configure(t, pgtest.URL(t), stdoutProcess)
		fresh.Processes[0].Start = start
		text := problems(doctor(t, fresh))
		const want = "it has no cursor yet, and starts with what the table holds: records of public.bookings up to position "
		require.Equal(t, lacks, strings.Contains(text, want), "%s: %s", start, text)
	}
}

func TestDoctor_NotesCursorsOfOtherSchemasThatRetentionDoesNotSee(t *testing.T) {
	t.Parallel()
	_, config := aged(t, stdoutProcess, "keep: 1h", 4)
	require.NotContains(t, problems(doctor(t, config)), "other schemas")
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: config.Database, Schema: "second"})
	require.NoError(t, err)
	require.Contains(t, problems(doctor(t, config)), "there are cursors in other schemas, too (second): retention does not see them")
}

// To note which of its partitions lost rows, a role reads a column of the table that it would not need for anything else.
func TestGrants_LetARoleRemoveRowsOfATableWithPartitions(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{"delete": "keep: 1h", "mark": "keep: 1h, mode: mark, column: gone"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := confined(t)
			exec(t, pool, "ALTER TABLE app.parted ADD gone boolean; UPDATE app.parted SET created_at = '2026-01-01'")
			config := ruled(t, "  a: {source: {table: app.parted, columns: {payload: note}}, sink: {stdout: {}}, start: beginning, poll: 20ms}\n", "app.parted", rule)
			role, config := granted(t, pool, config)
			deliver(t, config)
			require.False(t, daemon.Wrong(doctor(t, config)), "%+v", doctor(t, config))
			require.EqualValues(t, 3, pruned(t, config).Rows)
			require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM od.cursor_pruned WHERE table_name LIKE 'table ' || 'app.part'::regclass::oid || ' of %'"))

			exec(t, pool, `REVOKE SELECT (tableoid) ON app.parted FROM "`+role+`"`)
			require.Contains(t, problems(doctor(t, config)), `lacks SELECT ("tableoid") on app.parted`)
		})
	}
}

// With inheritance, a table may be below several: a process on another one of them may lack a row, too.
func TestPrune_ACursorOnAnotherTableAboveHoldsRowsBack(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `CREATE TABLE public.one (id bigint NOT NULL, created_at timestamptz NOT NULL); CREATE TABLE public.two (LIKE public.one);
		CREATE TABLE public.both (PRIMARY KEY (id)) INHERITS (public.one, public.two);
		CREATE INDEX ON public.one (created_at, id); CREATE INDEX ON public.two (created_at, id); CREATE INDEX ON public.both (created_at, id);
		INSERT INTO public.both SELECT n, timestamptz '2026-01-01 00:00Z' + n * interval '1 minute' FROM generate_series(1, 4) n`)
	const one = "  one: {source: {table: public.one}, sink: {stdout: {}}, poll: 20ms}\n"
	deliver(t, ruled(t, one, "public.one", "keep: 1h"))
	_, err := prune(t, ruled(t, one+"  two: {source: {table: public.two}, sink: {stdout: {}}, poll: 20ms}\n", "public.one", "keep: 1h"))
	require.ErrorContains(t, err, "two (not run yet) has not passed row 1")
	require.Equal(t, 4, count(t, pool, "SELECT count(*) FROM public.both"))
}
