package daemon_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
)

func TestDoctor_NamesATableByDayThatHasNoPartitionForTomorrow(t *testing.T) {
	t.Parallel()
	pool := database(t)
	box, err := outbox.New(outbox.Config{Partitioned: true})
	require.NoError(t, err)
	exec(t, pool, box.SQL())
	const process = ": {source: {table: public.outbox, preset: outbox}, sink: {stdout: {}}}\n"
	config := configure(t, pgtest.URL(t), "  a"+process+"  b"+process)
	const problem = "public.outbox has partitions by day, and none for tomorrow, "
	want := daemon.Finding{
		Process: "a", Severity: daemon.Warn, Problem: problem,
		Fix: "DATABASE_URL=<the owner's> ordered-dispatcher migrate partitions --table public.outbox, every day",
	}
	requireFinding(t, doctor(t, config), want)
	_, err = box.MakePartitions(t.Context(), pool, 3)
	require.NoError(t, err)
	require.NotContains(t, problems(doctor(t, config)), problem)

	tomorrow := pgtest.Value[time.Time](t, pool, "SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date + 1")
	for ahead := range 3 { // the last day of those that there are is today
		exec(t, pool, "DROP TABLE public.outbox"+tomorrow.AddDate(0, 0, ahead).Format("_2006_01_02"))
	}
	want.Problem += tomorrow.Format(time.DateOnly) + " (UTC)"
	found := doctor(t, config)
	requireFinding(t, found, want)
	require.Len(t, found, 1, "one table is one finding")
	exec(t, pool, "CREATE TABLE public.rest PARTITION OF public.outbox DEFAULT")
	requireFinding(t, doctor(t, config), want)

	_, err = box.MakePartitions(t.Context(), pool, 2)
	require.NoError(t, err)
	require.Empty(t, doctor(t, config))
}

// The job that makes partitions may have failed for a week, and then have run after midnight for tomorrow alone.
func TestDoctor_ATableByDayThatHasNoPartitionForTodayIsAnError(t *testing.T) {
	t.Parallel()
	pool := database(t)
	box, err := outbox.New(outbox.Config{Partitioned: true})
	require.NoError(t, err)
	exec(t, pool, box.SQL())
	_, err = box.MakePartitions(t.Context(), pool, 3)
	require.NoError(t, err)
	config := configure(t, pgtest.URL(t), "  a: {source: {table: public.outbox, preset: outbox}, sink: {stdout: {}}}\n")
	require.Empty(t, doctor(t, config))
	today := pgtest.Value[time.Time](t, pool, "SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date")
	exec(t, pool, "DROP TABLE public.outbox"+today.Format("_2006_01_02"))
	found := doctor(t, config)
	requireFinding(t, found, daemon.Finding{
		Process: "a", Severity: daemon.Refuse, Problem: "public.outbox has partitions by day, and none for today, " + today.Format(time.DateOnly) + " (UTC): each INSERT fails",
		Fix: "DATABASE_URL=<the owner's> ordered-dispatcher migrate partitions --table public.outbox, every day",
	})
	require.Len(t, found, 1)
	exec(t, pool, "CREATE TABLE public.rest PARTITION OF public.outbox DEFAULT")
	require.Empty(t, doctor(t, config), "the DEFAULT partition takes the rows of today")
}

func TestDoctor_OtherPartitionsThanDaysNeedNoneForTomorrow(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `
		CREATE TABLE public.months (id bigint GENERATED ALWAYS AS IDENTITY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (created_at, id)) PARTITION BY RANGE (created_at);
		CREATE TABLE public.january PARTITION OF public.months FOR VALUES FROM ('2026-01-01 00:00Z') TO ('2026-02-01 00:00Z')`)
	config := configure(t, pgtest.URL(t), stdoutProcess+"  m: {source: {table: public.months}, sink: {stdout: {}}}\n")
	require.NotContains(t, problems(doctor(t, config)), "partitions by day")
}
