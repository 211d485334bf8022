package daemon_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
)

const (
	monthsByID = "  a: {source: {table: public.events, order: id}, sink: {stdout: {}}, poll: 20ms}\n"
	dropRule   = "keep: 1h, mode: drop"
	pending    = "SELECT EXISTS (SELECT FROM pg_inherits WHERE inhdetachpending)"
)

// dropping is a table with a partition of January, one of February and one of now, in which all five records are
// delivered, and a rule that drops partitions.
func dropping(t testing.TB) (*pgxpool.Pool, daemon.Config) {
	t.Helper()
	pool := ranges(t, "")
	config := ruled(t, monthsByID, "public.events", dropRule)
	deliver(t, config)
	return pool, config
}

// delivering runs the processes until the test ends, without the rules.
func delivering(t testing.TB, config daemon.Config) {
	t.Helper()
	config.Rules = nil
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- daemon.Run(ctx, quiet(daemon.RunConfig{Config: config})) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, waittest.Receive(t, done, "the run ends"))
	})
}

// interrupted ends a pass that waits for a DETACH, as its time-out would.
func interrupted(t testing.TB, pool *pgxpool.Pool, config daemon.Config) (rules.Report, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	var report rules.Report
	done := make(chan error, 1)
	go func() {
		all, err := daemon.Prune(ctx, config, nil, rules.Pass)
		report = all[0]
		done <- err
	}()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		select {
		case err := <-done:
			return report, err
		default:
			if pgtest.Value[bool](t, pool, pending) {
				cancel()
			}
		}
	}
	require.FailNow(t, "the pass does not end")
	return report, nil
}

// atID is the position of a record of monthsByID.
func atID(n string) string { return "int:0000000000000000000" + n }

// The row of an import that is open is not visible when the partition is asked about. The worker waits for it, and
// must find it when the import has committed, however long that takes.
func TestPrune_APartitionThatAnOpenImportWritesToIsRead(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	exec(t, pool, "DROP TABLE public.jan")
	delivering(t, config)
	importer := session(t, "BEGIN; INSERT INTO public.events (created_at) VALUES ('2026-02-25')")
	exec(t, pool, "INSERT INTO public.events DEFAULT VALUES")
	report, err := interrupted(t, pool, config)
	exec(t, importer, "COMMIT")
	untilTrue(t, pool, "SELECT position = $1 FROM od.cursor", atID("7"))
	require.Equal(t, 7, count(t, pool, "SELECT sequence FROM od.cursor"), "record 6 was delivered before record 7")
	require.NoError(t, err)
	require.Contains(t, tables(t, pool), "feb")
	require.Len(t, report.Waiting, 1)
	require.Regexp(t, `^public.feb: an open transaction writes to it \(pid \d+\)$`, report.Waiting[0])

	require.Equal(t, []string{"public.feb"}, pruned(t, config).Partitions, "it is delivered")
}

// A transaction that begins to write after the partition was asked about would be passed as well.
func TestPrune_NoTransactionBeginsToWriteToAPartitionThatIsToGo(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	locker := session(t, "BEGIN; LOCK TABLE ONLY public.events IN SHARE UPDATE EXCLUSIVE MODE") // DETACH waits for it
	done := pruning(t, pool, config)
	for _, sql := range []string{
		"INSERT INTO public.events (created_at) VALUES ('2026-01-25')",
		"INSERT INTO public.jan (id, created_at) VALUES (9, '2026-01-25')",
		"UPDATE public.events SET region = 'x' WHERE created_at = '2026-01-10'",
	} {
		_, err := pool.Exec(t.Context(), sql)
		require.ErrorContains(t, err, `new row for relation "jan" violates check constraint "ordered_dispatcher_drops_this_partition"`)
	}
	_, err := operatorOf(t, config).Seek(t.Context(), daemon.ToBeginning, cursor.Decision{Actor: "ann", Reason: "again"})
	require.ErrorContains(t, err, "were removed (retention, mode drop)", "nor does a cursor go back")
	exec(t, locker, "COMMIT")
	require.NoError(t, waittest.Receive(t, done, "the pass ends"))
	require.NotContains(t, tables(t, pool), "jan")
}

// pruning begins a pass, and returns when its DETACH waits for a lock.
func pruning(t testing.TB, pool *pgxpool.Pool, config daemon.Config) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := daemon.Prune(context.WithoutCancel(t.Context()), config, nil, rules.Pass)
		done <- err
	}()
	untilTrue(t, pool, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'ALTER TABLE % CONCURRENTLY' AND wait_event_type = 'Lock')")
	return done
}

// Another pass that sees the DETACH of the first one must not end it, nor drop the table under it.
func TestPrune_OneSessionAtATimeDropsPartitions(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{"before the mark": "LOCK TABLE ONLY public.events IN SHARE UPDATE EXCLUSIVE MODE", "after it": "LOCK TABLE ONLY public.events IN ACCESS SHARE MODE"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := dropping(t)
			locker := session(t, "BEGIN; "+lock)
			done := pruning(t, pool, config)
			_, err := prune(t, config)
			require.ErrorIs(t, err, rules.ErrBusy)
			exec(t, locker, "COMMIT")
			require.NoError(t, waittest.Receive(t, done, "the pass ends"))
			require.Equal(t, []string{"empty", "present"}, tables(t, pool))
		})
	}
}

func TestPrune_APartitionThatIsNeededAgainMeanwhileIsAttachedAgain(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	locker := session(t, "BEGIN; LOCK TABLE ONLY public.events IN SHARE UPDATE EXCLUSIVE MODE")
	done := pruning(t, pool, config)
	place(t, pool, "a", atID("1"), "paused") // as seek --pruned does
	exec(t, locker, "COMMIT")
	require.ErrorContains(t, waittest.Receive(t, done, "the pass ends"), "a (paused) has not passed row 2 of 2026-01-20T00:00:00Z")
	require.Contains(t, tables(t, pool), "jan")
	exec(t, pool, "INSERT INTO public.events (created_at) VALUES ('2026-01-25')")
}

// A worker that was stopped, or a time-out, leaves a partition on its way. The next pass goes on with it.
func TestPrune_GoesOnWithAPartitionThatAPassHasLeft(t *testing.T) {
	t.Parallel()
	const closed = `ALTER TABLE public.jan ADD CONSTRAINT ordered_dispatcher_drops_this_partition CHECK (false) NOT VALID;
		COMMENT ON CONSTRAINT ordered_dispatcher_drops_this_partition ON public.jan IS 'public.events';`
	const attached = "ALTER TABLE public.jan ADD CHECK (created_at < '2026-02-01')" // as DETACH … CONCURRENTLY does
	for name, left := range map[string]func(testing.TB, *pgxpool.Pool){
		"closed":  func(t testing.TB, pool *pgxpool.Pool) { exec(t, pool, closed) },
		"pending": func(t testing.TB, pool *pgxpool.Pool) { exec(t, pool, closed); detaching(t, pool) },
		"detached": func(t testing.TB, pool *pgxpool.Pool) {
			exec(t, pool, closed+attached+"; ALTER TABLE public.events DETACH PARTITION public.jan")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := dropping(t)
			left(t, pool)
			require.Equal(t, []string{"public.jan", "public.feb"}, pruned(t, config).Partitions)
			require.Equal(t, []string{"empty", "present"}, tables(t, pool))
			require.Zero(t, count(t, pool, "SELECT count(*) FROM pg_class WHERE relname = 'jan'"))
		})
	}
}

// detaching leaves a DETACH of January that did not end.
func detaching(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	detachingOf(t, pool, "public.events", "public.jan")
}

func detachingOf(t testing.TB, pool *pgxpool.Pool, table, partition string) {
	t.Helper()
	reader := session(t, "BEGIN; SELECT FROM "+table)
	detach := session(t, "SET search_path = ''")
	done := make(chan error, 1)
	go func() {
		_, err := detach.Exec(context.WithoutCancel(t.Context()), "ALTER TABLE "+table+" DETACH PARTITION "+partition+" CONCURRENTLY")
		done <- err
	}()
	untilTrue(t, pool, pending)
	exec(t, pool, "SELECT pg_cancel_backend($1)", detach.PgConn().PID())
	require.ErrorContains(t, waittest.Receive(t, done, "the DETACH ends"), "canceling statement")
	exec(t, reader, "ROLLBACK")
}

func TestPrune_ATableThatIsDetachedAndNeededAgainIsNamed(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	exec(t, pool, `ALTER TABLE public.jan ADD CONSTRAINT ordered_dispatcher_drops_this_partition CHECK (false) NOT VALID;
		COMMENT ON CONSTRAINT ordered_dispatcher_drops_this_partition ON public.jan IS 'public.events';
		ALTER TABLE public.events DETACH PARTITION public.jan`)
	place(t, pool, "a", atID("1"), "paused")
	report, err := prune(t, config)
	require.ErrorContains(t, err, "a (paused) has not passed row")
	require.Len(t, report.Waiting, 1)
	require.Contains(t, report.Waiting[0], `public.jan: it is detached, and a process needs a row of it. Attach it again: ALTER TABLE "public"."jan" DROP CONSTRAINT`)
	require.Equal(t, 2, count(t, pool, "SELECT count(*) FROM public.jan"))
}

// A table of another owner, or one that another table lost, is not ours to drop.
func TestPrune_DropsNoTableThatOnlyLooksLikeOneThatIsLeft(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	exec(t, pool, `CREATE TABLE public.other (LIKE public.jan, CONSTRAINT ordered_dispatcher_drops_this_partition CHECK (false));
		CREATE TABLE public.theirs (LIKE public.jan, CONSTRAINT ordered_dispatcher_drops_this_partition CHECK (false));
		COMMENT ON CONSTRAINT ordered_dispatcher_drops_this_partition ON public.other IS 'public.bookings';
		COMMENT ON CONSTRAINT ordered_dispatcher_drops_this_partition ON public.theirs IS 'public.events'`)
	name, _ := role(t, pool)
	exec(t, pool, "ALTER TABLE public.theirs OWNER TO "+name)
	pruned(t, config)
	require.Equal(t, 2, count(t, pool, "SELECT count(*) FROM pg_class WHERE relname IN ('other', 'theirs')"))
}

func TestPrune_ADetachThatAnOperatorBeganIsLeftAlone(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	detaching(t, pool)
	report := pruned(t, config)
	require.Len(t, report.Waiting, 1)
	require.Contains(t, report.Waiting[0], "public.jan: a DETACH was begun and did not end")
	require.Empty(t, report.Partitions, "PostgreSQL detaches one partition of a table at a time")
	require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM pg_class WHERE relname = 'jan'"))
}

// No process reads the rows of a part whose DETACH did not end, but a DROP of the partition would remove them.
func TestPrune_ADetachBelowAPartitionThatDidNotEndKeepsIt(t *testing.T) {
	t.Parallel()
	for name, closed := range map[string]string{"open": "", "closed": strings.ReplaceAll(closeJanuary, "public.jan", "public.mar")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := months(t)
			exec(t, pool, "DROP TABLE public.jan, public.feb, public.rest; "+subPartition+closed)
			config := ruled(t, monthsProcess, "public.events", dropRule)
			detachingOf(t, pool, "public.mar", "public.mar_a")
			deliver(t, config)
			_, err := prune(t, config)
			require.ErrorContains(t, err, "To end it: ALTER TABLE public.mar DETACH PARTITION public.mar_a FINALIZE")
			require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM public.mar_a"))
			exec(t, pool, "ALTER TABLE public.mar DETACH PARTITION public.mar_a FINALIZE")
			require.Equal(t, []string{"public.mar"}, pruned(t, config).Partitions)
			require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM public.mar_a"))
		})
	}
}

// A partition on its way stays if an operator goes back to it with --pruned, or if keep is longer than it was.
func TestPrune_APartitionThatAProcessNeedsAgainIsOpened(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"needed": true, "younger than keep": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := dropping(t)
			exec(t, pool, `ALTER TABLE public.jan ADD CONSTRAINT ordered_dispatcher_drops_this_partition CHECK (false) NOT VALID;
				COMMENT ON CONSTRAINT ordered_dispatcher_drops_this_partition ON public.jan IS 'public.events'`)
			if kept {
				place(t, pool, "a", atID("1"), "paused")
				_, err := prune(t, config)
				var passes *rules.PassesCursor
				require.ErrorAs(t, err, &passes)
			} else {
				pruned(t, ruled(t, monthsByID, "public.events", "keep: 876000h, mode: drop"))
			}
			exec(t, pool, "INSERT INTO public.events (created_at) VALUES ('2026-01-25')")
		})
	}
}

// The oldest partition that must stay ends a pass, and the report names who needs it, once.
func TestPrune_DropsTheOldestPartitionsFirst(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	exec(t, pool, `ALTER TABLE public.events DETACH PARTITION public.present;
		ALTER TABLE public.events ATTACH PARTITION public.present FOR VALUES FROM ('2026-04-01') TO ('9999-01-01');
		CREATE TABLE public.aaa PARTITION OF public.events FOR VALUES FROM ('2026-03-01') TO ('2026-04-01');
		CREATE TABLE public.oldest PARTITION OF public.events FOR VALUES FROM (MINVALUE) TO ('2025-12-01');
		INSERT INTO public.events (created_at) VALUES ('2026-03-02'), ('2025-01-01')`)
	deliver(t, config)
	place(t, pool, "a", atID("2"), "paused")
	exec(t, pool, "UPDATE public.events SET id = 0 WHERE id = 7") // the oldest is delivered
	for _, pass := range []daemon.Pass{rules.Preview, rules.Pass} {
		all, err := daemon.Prune(t.Context(), config, nil, pass)
		require.ErrorContains(t, err, "a (paused) has not passed row 3 of 2026-02-10T00:00:00Z")
		require.Equal(t, []string{"public.oldest", "public.jan"}, all[0].Partitions)
		require.Len(t, all[0].Holds, 1, "and not one for each partition")
	}
}

// Imports of old rows, of all lengths, fall together with passes. Each of them fails, or all of its records are
// delivered.
func TestPrune_BesideImportsNoRecordIsPassed(t *testing.T) {
	t.Parallel()
	const days, importers, imports = 12, 4, 15
	pool := ranges(t, "DROP TABLE public.jan, public.feb")
	for day := 1; day <= days; day++ {
		exec(t, pool, fmt.Sprintf(`CREATE TABLE public.day_%d PARTITION OF public.events FOR VALUES FROM ('2026-01-%02[1]d') TO ('2026-01-%02[2]d');
			INSERT INTO public.events (created_at) VALUES ('2026-01-%02[1]d 00:00')`, day, day+1))
	}
	config := ruled(t, monthsByID, "public.events", dropRule)
	out := &buffer{}
	ctx, stop := context.WithCancel(t.Context())
	run := config
	run.Rules = nil
	ran := make(chan error, 1)
	go func() { ran <- daemon.Run(ctx, quiet(daemon.RunConfig{Config: run, Stdout: out})) }()
	untilTrue(t, pool, "SELECT EXISTS (SELECT FROM od.cursor)")

	var importing sync.WaitGroup
	committed := make(chan string, importers*imports)
	for range importers {
		importing.Go(func() {
			for n := range imports {
				day, open := 1+rand.IntN(days), time.Duration(rand.IntN(60))*time.Millisecond
				var id string
				err := pgx.BeginFunc(context.WithoutCancel(t.Context()), pool, func(tx pgx.Tx) error {
					err := tx.QueryRow(t.Context(), fmt.Sprintf("INSERT INTO public.events (created_at) VALUES ('2026-01-%02d 12:00') RETURNING id::text", day)).Scan(&id)
					if err == nil && n%2 == 0 {
						_, err = tx.Exec(t.Context(), "SELECT pg_sleep($1)", open.Seconds())
					}
					return err
				})
				if err == nil {
					committed <- id
				}
			}
		})
	}
	imported := make(chan struct{})
	go func() { importing.Wait(); close(imported) }()
	for over := false; !over; {
		select {
		case <-imported:
			over = true
		default:
		}
		_, _ = daemon.Prune(t.Context(), config, nil, rules.Pass)
	}
	close(committed)
	exec(t, pool, "INSERT INTO public.events DEFAULT VALUES")
	last := "int:" + pgtest.Value[string](t, pool, "SELECT lpad(max(id)::text, 20, '0') FROM public.events")
	untilTrue(t, pool, "SELECT position = $1 FROM od.cursor", last)
	stop()
	require.NoError(t, waittest.Receive(t, ran, "the run ends"))
	for id := range committed {
		require.Contains(t, out.String(), fmt.Sprintf(`"id":%q`, id), "it was committed, and never delivered")
	}
}

func TestRun_LogsOnceThatAPartitionWaits(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	importer := session(t, "BEGIN; INSERT INTO public.events (created_at) VALUES ('2026-01-25')")
	log := &buffer{}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- daemon.Run(ctx, quiet(daemon.RunConfig{Config: config, Logger: slog.New(slog.NewTextHandler(log, nil))}.PruningEvery(time.Millisecond)))
	}()
	const waits = "retention: rows cannot go yet"
	require.Eventually(t, func() bool { return strings.Contains(log.String(), waits) }, patience, 5*time.Millisecond)
	exec(t, importer, "COMMIT")
	untilTrue(t, pool, "SELECT count(*) = 2 FROM pg_class WHERE relispartition AND relkind = 'r'")
	require.Eventually(t, func() bool { return strings.Contains(log.String(), `msg="retention: 2 partitions removed: public.`) }, patience, 5*time.Millisecond)
	stop()
	require.NoError(t, waittest.Receive(t, done, "the run ends"))
	require.Equal(t, 1, strings.Count(log.String(), waits))
}

func TestDoctor_NamesAPartitionThatIsClosedAndThatNoRuleDrops(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	exec(t, pool, `ALTER TABLE public.jan ADD CONSTRAINT ordered_dispatcher_drops_this_partition CHECK (false) NOT VALID;
		COMMENT ON CONSTRAINT ordered_dispatcher_drops_this_partition ON public.jan IS 'public.events'`)
	const closed = "retention has closed public.jan, to drop it from public.events"
	require.NotContains(t, problems(doctor(t, config)), closed, "the next pass goes on with it")
	config.Rules = nil
	require.Contains(t, problems(doctor(t, config)), closed)
}
