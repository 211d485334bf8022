package daemon_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
)

const attachJanuary = "ALTER TABLE public.events ATTACH PARTITION public.jan FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')"

// detachedTooEarly is process a on months, with a rule. January was detached with a record that it had not delivered, and
// the cursor has passed the place.
func detachedTooEarly(t testing.TB, rule string) (*pgxpool.Pool, daemon.Config) {
	t.Helper()
	pool, config := lagging(t, monthsProcess)
	config.Rules = ruled(t, monthsProcess, "public.events", rule).Rules
	g := guarding(t, config)
	exec(t, pool, "ALTER TABLE public.events DETACH PARTITION public.jan")
	g.Look(t, "a")
	deliver(t, config)
	return pool, config
}

func requireUnsettled(t testing.TB, config daemon.Config) {
	t.Helper()
	_, err := prune(t, config)
	require.ErrorIs(t, err, rules.ErrUnknown)
	require.ErrorContains(t, err, "process a: rows before its cursor may be undelivered: public.jan was detached before ")
	require.ErrorContains(t, err, "`ordered-dispatcher doctor -c FILE`, with a file that has the process, prints how to send them. "+
		"If its receiver has them, or they are not wanted: ordered-dispatcher seek a --to-position at.int:2026-02-20T00:00:00.000000Z/00000000000000000004 -c FILE --reason …")
	_, err = daemon.Prune(t.Context(), config, nil, rules.Preview)
	require.ErrorIs(t, err, rules.ErrUnknown)
}

func TestPrune_RemovesNothingUntilAPartitionThatWentTooEarlyIsSettled(t *testing.T) {
	t.Parallel()
	for _, rule := range []string{"keep: 1h", "keep: 1h, mode: drop"} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			pool, config := detachedTooEarly(t, rule)
			requireUnsettled(t, config)
			exec(t, pool, attachJanuary)
			requireUnsettled(t, config)
			exec(t, pool, "UPDATE od.cursor_event SET at = at - interval '31 days' WHERE action = 'partition_gone'")
			requireUnsettled(t, config)
			require.NotEmpty(t, about(t, config), "the doctor names what retention waits for")
			require.Contains(t, partitions(t, config)["public.feb"], "rows before its cursor may be undelivered")
			require.Equal(t, 4, count(t, pool, "SELECT count(*) FROM public.events"))

			seek(t, config, midJanuary)
			_, err := prune(t, config)
			var held *rules.PassesCursor
			require.ErrorAs(t, err, &held)
			require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM public.events WHERE id = 2"))
			deliver(t, config)
			pruned(t, config)
			require.Zero(t, count(t, pool, "SELECT count(*) FROM public.events"))
		})
	}
}

// TestPrune_APartitionThatIsBackBeforeTheCursorPassesItHoldsNothingUp: its records are after the cursor.
func TestPrune_APartitionThatIsBackBeforeTheCursorPassesItHoldsNothingUp(t *testing.T) {
	t.Parallel()
	pool, config := lagging(t, monthsProcess)
	config.Rules = ruled(t, monthsProcess, "public.events", "keep: 1h").Rules
	place(t, pool, "a", midJanuary, "paused")
	g := guarding(t, config)
	exec(t, pool, "ALTER TABLE public.events DETACH PARTITION public.jan")
	g.Look(t, "a")
	exec(t, pool, attachJanuary)
	report, err := prune(t, config)
	var held *rules.PassesCursor
	require.ErrorAs(t, err, &held)
	require.EqualValues(t, 1, report.Rows)
}

// TestDoctor_PutsRecordsBackWhereRetentionDoesNotTakeThemForDelivered: after the cursor, and while nothing is delivered.
func TestDoctor_PutsRecordsBackWhereRetentionDoesNotTakeThemForDelivered(t *testing.T) {
	t.Parallel()
	const back, attach, settle = "ordered-dispatcher seek a --to-position " + midJanuary + " -c FILE --reason …",
		"ALTER TABLE public.events ATTACH PARTITION public.jan FOR VALUES FROM ('2026-01-01 00:00:00+00') TO ('2026-02-01 00:00:00+00')",
		". That sends again what follows that position. Or, if the receiver has these records, settle it: ordered-dispatcher seek a --to-position "
	for state, want := range map[string]string{
		"running": "ordered-dispatcher pause a --reason …; then " + back + "; then " + attach + "; then ordered-dispatcher resume a --reason …" + settle,
		"paused":  back + "; then " + attach + settle,
		"halted":  attach + "; then " + back + settle,
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			pool, config := detachedTooEarly(t, "keep: 1h")
			exec(t, pool, "UPDATE od.cursor SET state = $1", state)
			require.Contains(t, requireLeft(t, config, daemon.Warn, "public.jan was detached").Fix, want)
		})
	}
}

// droppedByARule is process a on months with a worker that has seen all of it undelivered, and a rule that has dropped January
// and February once all was delivered.
func droppedByARule(t testing.TB) (*pgxpool.Pool, daemon.Config, daemon.Guard) {
	t.Helper()
	pool, config := lagging(t, monthsProcess)
	config.Rules = ruled(t, monthsProcess, "public.events", "keep: 1h, mode: drop").Rules
	g := guarding(t, config)
	deliver(t, config)
	require.Len(t, pruned(t, config).Partitions, 2)
	return pool, config, g
}

func TestGuard_NotesNoPartitionThatRetentionDrops(t *testing.T) {
	t.Parallel()
	pool, config, g := droppedByARule(t)
	g.Look(t, "a")
	require.Empty(t, noted(t, pool))
	require.Empty(t, about(t, config))
}

// TestGuard_NotesAPartitionThatRetentionWasToDropBefore: it was opened again, and has got other records since.
func TestGuard_NotesAPartitionThatRetentionWasToDropBefore(t *testing.T) {
	t.Parallel()
	pool, config := lagging(t, monthsProcess)
	exec(t, pool, `INSERT INTO od.cursor_pruned (table_name, kind, through, mode, place, removed, at)
		SELECT 'table ' || 'public.jan'::regclass::oid || ' of database ' || d.oid || ' of system ' || s.system_identifier, 'at.int', $1, 'drop', '', 2, clock_timestamp() - interval '1 minute'
		FROM pg_database d, pg_control_system() s WHERE datname = current_database()`, january)
	g := guarding(t, config)
	exec(t, pool, "DROP TABLE public.jan")
	g.Look(t, "a")
	require.Equal(t, []string{"a public.jan dropped 1 " + midJanuary}, noted(t, pool))
}

// TestDoctor_APartitionThatRetentionHasDroppedIsSettled: the worker's role may not read how far rows are gone, and has
// noted it.
func TestDoctor_APartitionThatRetentionHasDroppedIsSettled(t *testing.T) {
	t.Parallel()
	pool, config := lagging(t, monthsProcess)
	config.Rules = ruled(t, monthsProcess, "public.events", "keep: 1h, mode: drop").Rules
	worker := config
	worker.Rules = nil
	_, worker = granted(t, pool, worker)
	g := guarding(t, worker)
	deliver(t, config)
	require.Len(t, pruned(t, config).Partitions, 2)
	g.Look(t, "a")
	require.Len(t, noted(t, pool), 2)
	require.Empty(t, about(t, config))
	pruned(t, config)

	exec(t, pool, "UPDATE od.cursor_event SET detail = jsonb_set(detail, '{seen}', to_jsonb($1::text)) WHERE action = 'partition_gone'", time.Now().Add(time.Hour).Format(time.RFC3339))
	require.Len(t, about(t, config), 2)
	_, err := prune(t, config)
	require.ErrorIs(t, err, rules.ErrUnknown)
}
