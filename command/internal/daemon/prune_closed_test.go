package daemon_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
)

const (
	opened = "another session has opened it, attached it again or renamed it meanwhile, so it is left alone"
	// openJan is what an operator does to keep January.
	openJan = "ALTER TABLE public.jan DROP CONSTRAINT ordered_dispatcher_drops_this_partition"
)

// closing closes a partition of public.events, as a pass does.
func closing(t testing.TB, pool *pgxpool.Pool, partition string) {
	t.Helper()
	exec(t, pool, fmt.Sprintf(`ALTER TABLE public.%[1]s ADD CONSTRAINT ordered_dispatcher_drops_this_partition CHECK (false) NOT VALID;
		COMMENT ON CONSTRAINT ordered_dispatcher_drops_this_partition ON public.%[1]s IS 'public.events'`, partition))
}

// closed reports how many tables have the constraint.
func closed(t testing.TB, pool *pgxpool.Pool) int {
	t.Helper()
	return count(t, pool, "SELECT count(*) FROM pg_constraint WHERE conname = 'ordered_dispatcher_drops_this_partition'")
}

// keeping is a rule that is over for January, and not for February.
func keeping(t testing.TB) daemon.Config {
	t.Helper()
	hours := int(time.Since(time.Date(2026, 2, 15, 0, 0, 0, 0, time.UTC)).Hours())
	return ruled(t, monthsByID, "public.events", fmt.Sprintf("keep: %dh, mode: drop", hours))
}

// A DETACH of a partition that is open lets a record be passed. So no one opens it before the mark, unless the DETACH
// has ended.
func TestPrune_APartitionThatAnOperatorOpensIsNotDetached(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	locker := session(t, "BEGIN; LOCK TABLE ONLY public.events IN SHARE UPDATE EXCLUSIVE MODE") // DETACH waits for it
	done := pruning(t, pool, config)
	operator := session(t, "SET lock_timeout = '1min'")
	exec(t, operator, openJan)
	exec(t, operator, "INSERT INTO public.events (created_at) VALUES ('2026-01-25')")
	exec(t, locker, "COMMIT")
	require.ErrorContains(t, waittest.Receive(t, done, "the pass ends"), "another session waits for the partition alone, so the DETACH gave way")
	require.Contains(t, tables(t, pool), "jan")
	require.False(t, pgtest.Value[bool](t, pool, pending))
	require.Equal(t, 3, count(t, pool, "SELECT count(*) FROM public.events WHERE created_at < '2026-02-01'"))
}

// While one table is asked about, an operator attaches the next one again.
func TestPrune_ATableThatIsAttachedAgainMeanwhileStays(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	askedOf(t, pool, "EXISTS (SELECT FROM public.gate)", "PERFORM pg_catalog.pg_sleep(0.01)")
	for _, partition := range []string{"jan", "feb"} {
		closing(t, pool, partition)
		exec(t, pool, "ALTER TABLE public.events DETACH PARTITION public."+partition)
	}
	exec(t, pool, "INSERT INTO public.gate VALUES (true)")
	config.Processes = append(config.Processes, ruled(t, neverTaken, "public.events", dropRule).Processes...)
	report := make(chan rules.Report, 1)
	failed := make(chan error, 1)
	go func() {
		all, err := daemon.Prune(context.WithoutCancel(t.Context()), config, nil, rules.Pass)
		report <- all[0]
		failed <- err
	}()
	untilTrue(t, pool, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%source.first_needed%' AND wait_event = 'PgSleep')")
	exec(t, pool, `ALTER TABLE public.jan DROP CONSTRAINT ordered_dispatcher_drops_this_partition;
		ALTER TABLE public.events ATTACH PARTITION public.jan FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')`)
	exec(t, pool, "DELETE FROM public.gate")
	require.NoError(t, waittest.Receive(t, failed, "the pass ends"))
	got := waittest.Receive(t, report, "the pass ends")
	require.Equal(t, []string{"public.feb"}, got.Partitions)
	require.Contains(t, got.Waiting, "public.jan: "+opened)
	require.Equal(t, 2, count(t, pool, "SELECT count(*) FROM public.events WHERE created_at < '2026-02-01'"))
}

// neverTaken is a process that needs no record, and asks about each.
const neverTaken = "  b: {source: {table: public.events, order: id, where: public.taken(id)}, sink: {stdout: {}}, poll: 20ms}\n"

// askedOf makes the condition of neverTaken, which does something as long as, or if, a condition holds.
func askedOf(t testing.TB, pool *pgxpool.Pool, while, do string) {
	t.Helper()
	exec(t, pool, `CREATE TABLE public.gate (open boolean);
		CREATE FUNCTION public.taken(bigint) RETURNS boolean LANGUAGE plpgsql AS $$
		BEGIN
			WHILE `+while+` LOOP `+do+`; END LOOP;
			RETURN false;
		END $$`)
}

// A source.where may take long. All sessions that use the partition, or the table, would wait for it.
func TestPrune_AsksNoQuestionUnderALockThatOthersWaitFor(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"concurrently": "", "with a default partition": "CREATE TABLE public.rest PARTITION OF public.events DEFAULT"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := ranges(t, more)
			askedOf(t, pool, `EXISTS (
				SELECT FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation
				WHERE l.pid = pg_catalog.pg_backend_pid() AND l.mode = 'AccessExclusiveLock' AND (c.relname = 'events' OR c.relname IN ('jan', 'feb') AND c.relispartition))`,
				"RAISE 'all wait for this'")
			config := ruled(t, monthsByID+neverTaken, "public.events", dropRule)
			only := config
			only.Processes = config.Processes[:1]
			deliver(t, only)
			require.Equal(t, []string{"public.jan", "public.feb"}, pruned(t, config).Partitions)
		})
	}
}

const payments = `CREATE TABLE public.payments (at timestamptz, event bigint, FOREIGN KEY (at, event) REFERENCES public.events);`

// A partition that is closed takes no row, and lets none be updated. So it is not closed for nothing.
func TestPrune_APartitionThatCannotBeDroppedStaysOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ made, why, undone string }{
		"rows refer to it": {payments + "INSERT INTO public.payments SELECT created_at, id FROM public.events WHERE id = 1",
			"rows of public.payments refer to rows of it (foreign key payments_at_event_fkey): remove them first", "DELETE FROM public.payments"},
		"a foreign key to the partition itself": {"CREATE TABLE public.payments (at timestamptz, event bigint, FOREIGN KEY (at, event) REFERENCES public.jan)",
			"constraint payments_at_event_fkey on table public.payments depends on it: drop that first", "DROP TABLE public.payments"},
		"a view": {"CREATE VIEW public.january AS SELECT id FROM public.jan",
			"rule _RETURN on view public.january depends on it: drop that first", "DROP VIEW public.january"},
		"a function of its rows": {"CREATE FUNCTION public.of(public.jan) RETURNS int LANGUAGE sql AS 'SELECT 1'",
			"function public.of(public.jan) depends on it: drop that first", "DROP FUNCTION public.of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := dropping(t)
			exec(t, pool, c.made)
			for _, pass := range []daemon.Pass{rules.Preview, rules.Pass} {
				_, err := daemon.Prune(t.Context(), config, nil, pass)
				require.ErrorContains(t, err, "drop partition public.jan: ")
				require.ErrorContains(t, err, "it stays, and takes rows: "+c.why)
				require.Zero(t, closed(t, pool))
			}
			exec(t, pool, "UPDATE public.events SET region = 'x' WHERE created_at = '2026-01-20'")
			exec(t, pool, c.undone)
			require.Equal(t, []string{"public.jan", "public.feb"}, pruned(t, config).Partitions)
		})
	}
}

// What belongs to a partition goes with it, and so does a foreign key without rows.
func TestPrune_WhatBelongsToAPartitionIsNoObstacle(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	exec(t, pool, payments+`
		ALTER TABLE public.jan ADD CHECK (id > 0 AND jan IS NOT NULL);
		CREATE POLICY p ON public.jan USING (EXISTS (SELECT FROM public.jan));
		CREATE RULE r AS ON UPDATE TO public.jan WHERE OLD.id < 0 DO ALSO DELETE FROM public.jan WHERE id = OLD.id;
		CREATE STATISTICS public.s ON id, region FROM public.jan;
		CREATE INDEX ON public.jan ((id + 1)) WHERE id > 0;
		CREATE PUBLICATION od_months FOR TABLE public.jan;`)
	require.Equal(t, []string{"public.jan", "public.feb"}, pruned(t, config).Partitions)
}

func TestPrune_APartitionOfAnotherOwnerStaysOpen(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	name, _ := role(t, pool)
	exec(t, pool, "ALTER TABLE public.jan OWNER TO "+name)
	_, err := prune(t, config)
	require.ErrorContains(t, err, "its owner is not that of public.events: ALTER TABLE")
	require.Zero(t, closed(t, pool))
}

// A row that refers to the partition comes after it is closed.
func TestPrune_APartitionWhoseDetachFailsIsOpenedAgain(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	exec(t, pool, payments)
	locker := session(t, "BEGIN; LOCK TABLE ONLY public.events IN SHARE UPDATE EXCLUSIVE MODE")
	done := pruning(t, pool, config)
	exec(t, pool, "INSERT INTO public.payments SELECT created_at, id FROM public.events WHERE id = 1")
	exec(t, locker, "COMMIT")
	err := waittest.Receive(t, done, "the pass ends")
	require.ErrorContains(t, err, "drop partition public.jan: it is open again: ")
	require.ErrorContains(t, err, "23503")
	require.Zero(t, closed(t, pool))
	exec(t, pool, "INSERT INTO public.events (created_at) VALUES ('2026-01-25')")
}

// Lock and settings of the session that drops would go to other clients of the pooler.
func TestPrune_DropsNoPartitionThroughAPooler(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	config.Database = pgtest.PgBouncer(t, pgtest.URL(t))
	_, err := prune(t, config)
	require.ErrorContains(t, err, "a connection pooler is in between, and to drop partitions takes a session of its own")
	require.Zero(t, closed(t, pool))
	require.Contains(t, tables(t, pool), "jan")
	requireFinding(t, doctor(t, config), daemon.Finding{Severity: daemon.Warn,
		Problem: "the connection goes through a pooler, and to drop partitions of public.events takes a session of its own", Fix: "a direct connection"})
}

func TestPrune_ALongerKeepKeepsWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	t.Run("closed, after a partition that must stay", func(t *testing.T) {
		t.Parallel()
		pool, _ := dropping(t)
		closing(t, pool, "feb")
		place(t, pool, "a", atID("1"), "paused")
		_, err := prune(t, keeping(t))
		require.ErrorContains(t, err, "a (paused) has not passed row 2")
		require.Zero(t, closed(t, pool))
	})
	t.Run("pending", func(t *testing.T) {
		t.Parallel()
		pool, _ := dropping(t)
		closing(t, pool, "jan")
		detaching(t, pool)
		require.Empty(t, pruned(t, ruled(t, monthsByID, "public.events", "keep: 876000h, mode: drop")).Partitions)
		require.Zero(t, closed(t, pool))
		require.Equal(t, 5, count(t, pool, "SELECT count(*) FROM public.events"))
	})
	t.Run("detached", func(t *testing.T) {
		t.Parallel()
		pool, _ := dropping(t)
		closing(t, pool, "feb")
		exec(t, pool, "ALTER TABLE public.events DETACH PARTITION public.feb")
		report := pruned(t, keeping(t))
		require.Equal(t, []string{"public.jan"}, report.Partitions)
		require.Len(t, report.Waiting, 1)
		require.Contains(t, report.Waiting[0], "public.feb: it is detached, and it has rows that are younger than keep. Attach it again: ALTER TABLE")
		require.Equal(t, 2, count(t, pool, "SELECT count(*) FROM public.feb"))
	})
}

func TestDoctor_KnowsTheRuleOfATableWithoutItsSchema(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	closing(t, pool, "jan")
	const closed = "retention has closed public.jan, to drop it from public.events"
	config = ruled(t, "  a: {source: {table: events, order: id}, sink: {stdout: {}}, poll: 20ms}\n", "events", dropRule)
	config.Database = with(t, pgtest.URL(t), "search_path", "public")
	require.NotContains(t, problems(doctor(t, config)), closed)
	config.Rules = nil
	require.Contains(t, problems(doctor(t, config)), closed)
}
