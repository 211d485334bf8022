package daemon_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

func TestPrune_MarksRowsInAColumn(t *testing.T) {
	t.Parallel()
	for kind, marked := range map[string]string{"timestamptz": "mark IS NOT NULL", "boolean": "mark"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			pool, config := aged(t, stdoutProcess, "keep: 1h, mode: mark, column: mark, batch: 2", 5)
			_, err := prune(t, config)
			require.ErrorContains(t, err, "public.bookings has no column mark that can be written")
			exec(t, pool, "ALTER TABLE public.bookings ADD mark "+kind)
			report := pruned(t, config)
			require.EqualValues(t, 5, report.Rows)
			require.Equal(t, 8, staying(t, pool))
			require.Equal(t, 5, count(t, pool, "SELECT count(*) FROM public.bookings WHERE "+marked))
			require.Zero(t, pruned(t, config).Rows)
		})
	}
}

func TestPrune_MovesRowsIntoATableInOneTransaction(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h, mode: archive, archive: public.archive, batch: 2", 5)
	exec(t, pool, `CREATE TABLE public.archive (LIKE public.bookings, archived_at timestamptz NOT NULL DEFAULT now());
		CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id = 4 THEN RAISE ''crash''; END IF; RETURN OLD; END';
		CREATE TRIGGER crash AFTER DELETE ON public.bookings FOR EACH ROW EXECUTE FUNCTION public.fail();`)
	report, err := prune(t, config)
	require.ErrorContains(t, err, "crash")
	require.EqualValues(t, 2, report.Rows)
	require.Equal(t, 6, staying(t, pool))
	require.Equal(t, 2, count(t, pool, "SELECT count(*) FROM public.archive"), "the copies of the failed batch are gone with it")

	exec(t, pool, "DROP TRIGGER crash ON public.bookings")
	require.EqualValues(t, 3, pruned(t, config).Rows)
	require.Equal(t, 5, count(t, pool, "SELECT count(DISTINCT id) FROM public.archive WHERE customer = 'c' AND archived_at IS NOT NULL"))
	require.Equal(t, 5, count(t, pool, "SELECT count(*) FROM public.archive"))
}

func TestPrune_AnArchiveThatDropsRowsKeepsThem(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h, mode: archive, archive: public.archive", 5)
	exec(t, pool, `CREATE TABLE public.archive (LIKE public.bookings);
		CREATE FUNCTION public.lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.id = 4 THEN RETURN NULL; END IF; RETURN NEW; END';
		CREATE TRIGGER lose BEFORE INSERT ON public.archive FOR EACH ROW EXECUTE FUNCTION public.lose();`)
	_, err := prune(t, config)
	require.ErrorContains(t, err, "public.archive took 4 of 5 rows")
	require.Equal(t, 8, staying(t, pool))
}

// lines returns the lines of all files of an archive, sorted.
func lines(t testing.TB, dir string) (all []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	require.NoError(t, err)
	for _, name := range names {
		f, err := os.Open(name)
		require.NoError(t, err)
		defer f.Close()
		z, err := gzip.NewReader(f)
		require.NoError(t, err)
		scanner := bufio.NewScanner(z)
		for scanner.Scan() {
			all = append(all, scanner.Text())
		}
		require.NoError(t, scanner.Err())
	}
	slices.Sort(all)
	return all
}

// The next pass writes the same rows, more of them, or fewer. A file with a row that the next one lacks stays.
func TestPrune_ACrashBetweenFileAndDeleteNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	for batch, twice := range map[string][]int{"3": nil, "10": nil, "2": {4, 5, 6}} {
		t.Run(batch, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			rule := "keep: 1h, mode: files, directory: '" + dir + "', batch: "
			pool, config := aged(t, stdoutProcess, rule+"3", 7)
			all := oldRows(t, pool)
			exec(t, pool, `CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id = 5 THEN RAISE ''crash''; END IF; RETURN OLD; END';
				CREATE TRIGGER crash BEFORE DELETE ON public.bookings FOR EACH ROW EXECUTE FUNCTION public.fail();`)
			report, err := prune(t, config)
			require.ErrorContains(t, err, "crash")
			require.EqualValues(t, 3, report.Rows)
			require.Equal(t, 7, staying(t, pool))
			require.Len(t, lines(t, dir), 6, "the file of rows 4 to 6 is written, and its rows are still there")

			exec(t, pool, "DROP TRIGGER crash ON public.bookings")
			require.EqualValues(t, 4, pruned(t, ruled(t, stdoutProcess, "public.bookings", rule+batch)).Rows)
			want := all
			for _, n := range twice {
				want = append(want, all[n-1])
			}
			require.ElementsMatch(t, want, lines(t, dir))
			require.Equal(t, 3, staying(t, pool))
		})
	}
}

// oldRows are the old bookings as lines of a file.
func oldRows(t testing.TB, pool *pgxpool.Pool) []string {
	t.Helper()
	return pgtest.Value[[]string](t, pool, "SELECT array_agg(row_to_json(t)::text ORDER BY id) FROM public.bookings t WHERE created_at < now() - interval '1 hour'")
}

// A removal may begin and end with the rows of an earlier one, and have other rows, or the same ones with other content.
func TestPrune_NoArchiveFileIsReplacedByOneOfOtherRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pool, config := aged(t, stdoutProcess, "keep: 1h, mode: files, directory: '"+dir+"'", 5)
	var all []string
	for _, change := range []string{"", "UPDATE public.bookings SET customer = 'again' WHERE id = 5", "DELETE FROM public.bookings WHERE id IN (2, 3)"} {
		if change != "" {
			exec(t, pool, `INSERT INTO public.bookings (id, created_at) OVERRIDING SYSTEM VALUE
				SELECT n, timestamptz '2026-01-01 00:00Z' + n * interval '1 minute' FROM generate_series(1, 5) n; `+change)
		}
		all = append(all, oldRows(t, pool)...)
		pruned(t, config)
		require.ElementsMatch(t, all, lines(t, dir), change)
	}
	require.Len(t, all, 13)

	exec(t, pool, `INSERT INTO public.bookings (id, created_at) OVERRIDING SYSTEM VALUE
		SELECT n, timestamptz '2026-01-01 00:00Z' + n * interval '1 minute' FROM generate_series(1, 5) n`)
	pruned(t, config)
	require.ElementsMatch(t, all, lines(t, dir), "the same rows have the same file")
}

// PostgreSQL takes more bytes of a text id than a file may have in its name.
func TestPrune_ALongTextIDIsNoObstacleForFiles(t *testing.T) {
	t.Parallel()
	pool, dir := database(t), t.TempDir()
	exec(t, pool, `CREATE TABLE public.named (id text PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now());
		INSERT INTO public.named SELECT repeat('é', 500) || n, timestamptz '2026-01-01 00:00Z' + n * interval '1 minute' FROM generate_series(1, 3) n`)
	config := ruled(t, "  a: {source: {table: public.named}, sink: {stdout: {}}, poll: 20ms}\n", "public.named", "keep: 1h, mode: files, directory: '"+dir+"', batch: 1")
	deliver(t, config)
	want := pgtest.Value[[]string](t, pool, "SELECT array_agg(row_to_json(t)::text ORDER BY created_at) FROM public.named t")
	require.EqualValues(t, 3, pruned(t, config).Rows)
	require.Equal(t, want, lines(t, dir))
}

func TestPrune_RowsThatChangeWhileTheyAreWrittenStay(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h, mode: files, directory: '"+t.TempDir()+"'", 3)
	open := gated(t, pool, "DELETE ON public.bookings")
	done := make(chan error, 1)
	go func() {
		_, err := daemon.Prune(context.WithoutCancel(t.Context()), config, nil, rules.Pass)
		done <- err
	}()
	untilTrue(t, pool, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%source.prune %' AND wait_event = 'PgSleep')")
	exec(t, pool, "UPDATE public.bookings SET customer = 'ann' WHERE id = 3")
	open()
	require.ErrorContains(t, waittest.Receive(t, done, "the pass ends"), "rows changed while they were written to an archive file, so they were not deleted")
	require.Equal(t, 6, staying(t, pool))
}

// ranges is a table of events with partitions of two past months, one of no rows, and one of now.
func ranges(t testing.TB, more string) *pgxpool.Pool {
	t.Helper()
	pool := months(t)
	exec(t, pool, `DROP TABLE public.rest;
		CREATE TABLE public.empty PARTITION OF public.events FOR VALUES FROM ('2025-12-01') TO ('2026-01-01');
		CREATE TABLE public.present PARTITION OF public.events FOR VALUES FROM ('2026-03-01') TO ('9999-01-01');
		INSERT INTO public.events DEFAULT VALUES;`+more)
	return pool
}

func tables(t testing.TB, pool *pgxpool.Pool) []string {
	t.Helper()
	return pgtest.Value[[]string](t, pool, "SELECT array_agg(relname::text ORDER BY relname) FROM pg_class WHERE relispartition AND relkind = 'r'")
}

func TestPrune_DropsPartitionsWhoseRangeIsOver(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"concurrently": "", "with a default partition": "CREATE TABLE public.rest PARTITION OF public.events DEFAULT"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := ranges(t, more)
			before := tables(t, pool)
			config := ruled(t, monthsProcess, "public.events", "keep: 1h, mode: drop")
			deliver(t, config)
			place(t, pool, "a", "at.int:2026-02-10T00:00:00.000000Z/00000000000000000003", "paused")
			preview, err := daemon.Prune(t.Context(), config, nil, rules.Preview)
			require.ErrorContains(t, err, "a (paused) has not passed row 4 of 2026-02-20T00:00:00Z: ordered-dispatcher resume a")
			require.Equal(t, []string{"public.jan"}, preview[0].Partitions)
			require.Equal(t, before, tables(t, pool))

			report, err := prune(t, config)
			require.ErrorContains(t, err, "retention of public.events with keep 1h0m0s would pass the cursor of a")
			require.Equal(t, []string{"public.jan"}, report.Partitions)
			require.Equal(t, slices.DeleteFunc(before, func(n string) bool { return n == "jan" }), tables(t, pool), "the empty one stays, and so does that of now")
			require.Equal(t, 3, count(t, pool, "SELECT count(*) FROM public.events"))

			_, err = operatorOf(t, config).Seek(t.Context(), daemon.ToBeginning, cursor.Decision{Actor: "ann", Reason: "again"})
			var gone *operator.PrunedError
			require.ErrorAs(t, err, &gone)
			require.ErrorContains(t, err, "were removed (retention, mode drop)")
		})
	}
}

func TestPrune_ATransactionThatWritesToAPartitionKeepsIt(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"concurrently": "", "with a default partition": "CREATE TABLE public.rest PARTITION OF public.events DEFAULT"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := ranges(t, more)
			config := ruled(t, monthsProcess, "public.events", "keep: 1h, mode: drop")
			deliver(t, config)
			place(t, pool, "a", "at.int:2026-01-21T00:00:00.000000Z/00000000000000000002", "paused")
			exec(t, pool, "DELETE FROM public.feb")
			importer := session(t, "BEGIN; INSERT INTO public.events (created_at) VALUES ('2026-01-25')")
			for _, pass := range []daemon.Pass{rules.Preview, rules.Pass} {
				all, err := daemon.Prune(t.Context(), config, nil, pass)
				require.NoError(t, err)
				require.Empty(t, all[0].Partitions)
				require.Contains(t, all[0].Waiting[0], "public.jan: an open transaction writes to it")
			}
			exec(t, importer, "COMMIT")
			_, err := prune(t, config)
			require.ErrorContains(t, err, "a (paused) has not passed row 6 of 2026-01-25T00:00:00Z")
			require.Equal(t, 4, count(t, pool, "SELECT count(*) FROM public.events"))
		})
	}
}

// gated makes a statement of a table wait until the function is called.
func gated(t testing.TB, pool *pgxpool.Pool, when string) (open func()) {
	t.Helper()
	exec(t, pool, `CREATE TABLE public.gate (open boolean);
		CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			WHILE NOT EXISTS (SELECT FROM public.gate) LOOP PERFORM pg_catalog.pg_sleep(0.01); END LOOP;
			IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER wait BEFORE `+when+` FOR EACH ROW EXECUTE FUNCTION public.wait();`)
	return func() { exec(t, pool, "INSERT INTO public.gate VALUES (true)") }
}

// refusedMeanwhile seeks back while a pass deletes rows of a table. The seek waits for it, and then is refused.
func refusedMeanwhile(t testing.TB, pool *pgxpool.Pool, pruning, seeking daemon.Config, table string, to cursor.Position) {
	t.Helper()
	open := gated(t, pool, "DELETE ON "+table)
	ctx := context.WithoutCancel(t.Context())
	deleted, sought := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := daemon.Prune(ctx, pruning, nil, rules.Pass)
		deleted <- err
	}()
	untilTrue(t, pool, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'ordered-dispatcher prune %' AND query LIKE '%source.prune %' AND wait_event = 'PgSleep')")
	o := operatorOf(t, seeking)
	go func() {
		_, err := o.Seek(ctx, daemon.ToPosition(to), byAnn)
		sought <- err
	}()
	untilTrue(t, pool, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%cursor.lock_seek%' AND wait_event = 'advisory')")
	open()
	require.NoError(t, waittest.Receive(t, deleted, "the pass ends"))
	var gone *operator.PrunedError
	require.ErrorAs(t, waittest.Receive(t, sought, "the seek ends"), &gone)
}

func TestPrune_ASeekThatComesMeanwhileSeesThatTheRowsAreGone(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h", 4)
	at := pgtest.Value[string](t, pool, "SELECT position FROM od.cursor")
	refusedMeanwhile(t, pool, config, config, "public.bookings", oldAt(1))
	require.Equal(t, at, pgtest.Value[string](t, pool, "SELECT position FROM od.cursor"))
}

func TestPrune_RemovesNothingThatACursorGoesBackToMeanwhile(t *testing.T) {
	t.Parallel()
	for name, decision := range map[string]cursor.Decision{
		"seek":          {Actor: "ann", Reason: "again"},
		"seek --pruned": {Actor: "ann", Reason: "again", Pruned: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := aged(t, stdoutProcess, "keep: 1h", 4)
			open := gated(t, pool, "INSERT ON od.cursor_event")
			sought := make(chan error, 1)
			o := operatorOf(t, config)
			go func() {
				_, err := o.Seek(context.WithoutCancel(t.Context()), daemon.ToPosition(oldAt(1)), decision)
				sought <- err
			}()
			untilTrue(t, pool, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'ordered-dispatcher operator %' AND wait_event = 'PgSleep')")
			_, err := prune(t, config)
			require.ErrorIs(t, err, rules.ErrBusy)
			require.Equal(t, 7, staying(t, pool))
			open()
			require.NoError(t, waittest.Receive(t, sought, "the seek ends"))
			_, err = prune(t, config)
			require.ErrorContains(t, err, "has not passed row 2")
			require.Equal(t, 6, staying(t, pool))
		})
	}
}

func TestPrune_ALockOfAnotherSessionIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h", 4)
	session(t, "BEGIN; SELECT FROM public.bookings WHERE id = 2 FOR UPDATE")
	_, err := prune(t, config)
	require.ErrorContains(t, err, "lock timeout")
	require.Equal(t, 7, staying(t, pool))
	namesTheSession(t, pool, err)
}

// namesTheSession runs the SQL of an error, which finds the session that is in the way.
func namesTheSession(t testing.TB, pool *pgxpool.Pool, err error) {
	t.Helper()
	_, sql, found := strings.Cut(err.Error(), "; another session uses it, and a later pass tries again. To find that: ")
	require.True(t, found, err)
	sql, _, _ = strings.Cut(sql, "\n")
	require.Equal(t, "importer", pgtest.Value[string](t, pool, "SELECT string_agg(application_name, ', ') FROM ("+sql+") s WHERE pid <> pg_backend_pid()"))
}

func TestPrune_BehindAReaderOfAPartitionNamesThatSession(t *testing.T) {
	t.Parallel()
	pool, config := dropping(t)
	left(t, pool)
	session(t, "BEGIN; SELECT FROM public.jan")
	_, err := prune(t, config)
	require.ErrorContains(t, err, "retention of public.events: drop partition public.jan: ")
	require.NotContains(t, err.Error(), "remove rows")
	namesTheSession(t, pool, err)
}

// The statement of the page leaves no copy in the archive, to which the rule moves the rows once more.
func TestPrune_RowsThatGoBackByTheStatementOfThePageAreNotInTheArchive(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/retention.md")
	require.NoError(t, err)
	_, sql, found := strings.Cut(string(page), "```sql\nWITH back")
	require.True(t, found)
	sql, _, _ = strings.Cut("WITH back"+sql, "```")
	pool, config := aged(t, stdoutProcess, "keep: 1h, mode: archive, archive: public.bookings_archive", 5)
	exec(t, pool, "CREATE TABLE public.bookings_archive (LIKE public.bookings)")
	for range 2 {
		pruned(t, config)
		require.Equal(t, 5, count(t, pool, "SELECT count(*) FROM public.bookings_archive"))
		exec(t, pool, sql)
		require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM public.bookings_archive"))
		require.Equal(t, 7, staying(t, pool))
	}
}

func TestPrune_WithoutARightNamesGrants(t *testing.T) {
	t.Parallel()
	pool := confined(t)
	exec(t, pool, "UPDATE app.plain SET created_at = '2026-01-01'")
	config := ruled(t, "  a: {source: {table: app.plain, columns: {payload: note}}, sink: {stdout: {}}, start: beginning, poll: 20ms}\n", "app.plain", "keep: 1h")
	role, config := granted(t, pool, config)
	deliver(t, config)
	exec(t, pool, `REVOKE DELETE ON app.plain FROM "`+role+`"`)
	_, err := prune(t, config)
	require.ErrorContains(t, err, "permission denied for table plain")
	require.ErrorContains(t, err, "; next: run what `ordered-dispatcher grants -c FILE` prints")
}

func TestRun_CarriesOutTheRulesAndGoesOnWhenAPassFails(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h, mode: archive, archive: public.archive", 4)
	log := &buffer{}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- daemon.Run(ctx, quiet(daemon.RunConfig{Config: config, Logger: slog.New(slog.NewTextHandler(log, nil))}.PruningEvery(10*time.Millisecond)))
	}()
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), "retention failed, and is tried again; deliveries go on")
	}, patience, 5*time.Millisecond)
	insert(t, pool, 2)
	untilTrue(t, pool, "SELECT sequence = 9 FROM od.cursor")
	exec(t, pool, "CREATE TABLE public.archive (LIKE public.bookings)")
	untilTrue(t, pool, "SELECT count(*) = 4 FROM public.archive")
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), `msg="retention: 4 rows removed in 1 transaction, up to `+string(oldAt(4)))
	}, patience, 5*time.Millisecond)
	stop()
	require.NoError(t, waittest.Receive(t, done, "the run ends"))
	require.Equal(t, 1, strings.Count(log.String(), "retention failed"), "a failure is logged once")
}

const keyed = "  a: {source: {table: public.bookings, columns: {key: customer}}, sink: {stdout: {}}, poll: 20ms}\n"

func TestErase_DeletesOrBlanksDeliveredRowsOfAKeyAndNotesIt(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, keyed, "keep: 1h, mode: archive, archive: public.archive", 2)
	exec(t, pool, `CREATE TABLE public.archive (LIKE public.bookings, note text NOT NULL DEFAULT 'x');
		ALTER TABLE public.bookings ADD note text NOT NULL DEFAULT 'x', ADD extra jsonb DEFAULT '{"a":1}';
		ALTER TABLE public.archive ADD extra jsonb;`)
	pruned(t, config)
	exec(t, pool, `UPDATE public.archive SET customer = 'ann';
		INSERT INTO public.bookings (customer) VALUES ('ann'), ('bob'), ('ann');
		INSERT INTO od.dead_letter (process_name, position, sequence, table_name, record_id, key, payload, attempts, first_failed_at, error, class, resolution, resolved_at)
		VALUES ('a', '', 1, 'public.bookings', '1', 'ann', 'secret', 1, now(), 'ann is secret', 'permanent', 'discarded', now());`)
	d := cursor.Decision{Actor: "ann", Reason: "request 7"}
	e := table.Erase{Key: "ann", Blank: []string{"note", "extra"}}
	_, err := daemon.Erase(t.Context(), config, "public.bookings", e, d)
	require.ErrorIs(t, err, table.ErrUndelivered)
	require.ErrorContains(t, err, "process a has yet to deliver row ")
	deliver(t, config)

	dry := d
	dry.DryRun = true
	for _, d := range []cursor.Decision{dry, d} {
		done, err := daemon.Erase(t.Context(), config, "public.bookings", e, d)
		require.NoError(t, err)
		require.Equal(t, rules.Erasure{Erased: table.Erased{Rows: 2, Archived: 2}, Letters: 1, Blanked: e.Blank, Processes: []string{"a"}}, done)
		blanked := 0
		if !d.DryRun {
			blanked = 2
		}
		require.Equal(t, blanked, count(t, pool, "SELECT count(*) FROM public.bookings WHERE customer = 'ann' AND note = '' AND extra IS NULL"))
		require.Equal(t, blanked, count(t, pool, "SELECT count(*) FROM public.archive WHERE customer = 'ann' AND note = '' AND extra IS NULL"))
	}
	require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM od.dead_letter WHERE key = '' AND payload IS NULL AND error = 'erased'"))
	events, err := operatorOf(t, config).History(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, "erase", events[0].Action)
	require.Equal(t, "request 7", events[0].Reason)
	require.JSONEq(t, `{"table": "public.bookings", "by": "customer", "blanked": ["note", "extra"], "rows": 2, "archived": 2, "dead_letters": 1, "calls": 0}`, string(events[0].Detail))

	done, err := daemon.Erase(t.Context(), config, "public.bookings", table.Erase{By: "customer", Key: "bob"}, d)
	require.NoError(t, err)
	require.EqualValues(t, 1, done.Rows)
	require.Zero(t, count(t, pool, "SELECT count(*) FROM public.bookings WHERE customer = 'bob'"))
}

func TestErase_RefusesWhileADeadLetterOfTheKeyIsOpen(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, keyed, "keep: 1h", 1)
	exec(t, pool, `INSERT INTO od.dead_letter (process_name, position, sequence, table_name, record_id, key, attempts, first_failed_at, error, class)
		VALUES ('a', '', 1, 'public.bookings', '1', 'c', 1, now(), 'x', 'permanent')`)
	_, err := daemon.Erase(t.Context(), config, "public.bookings", table.Erase{Key: "c"}, cursor.Decision{Actor: "ann", Reason: "request 7"})
	require.ErrorIs(t, err, operator.ErrOpenLetter)
	require.ErrorContains(t, err, "replay or discard them")
	require.Equal(t, 4, staying(t, pool))
}

// Without columns.key, and with another column than that, a dead letter has no key to be found by.
func TestErase_EmptiesDeadLettersOfTheRowsWhateverTheirKey(t *testing.T) {
	t.Parallel()
	for name, process := range map[string]string{
		"no key":      stdoutProcess,
		"another key": "  a: {source: {table: public.bookings, columns: {key: room}}, sink: {stdout: {}}, poll: 20ms}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			exec(t, pool, "ALTER TABLE public.bookings ADD room text NOT NULL DEFAULT 'blue'")
			config := ruled(t, process, "public.bookings", "keep: 1h, mode: archive, archive: public.archive")
			old(t, pool, 1)
			exec(t, pool, "CREATE TABLE public.archive (LIKE public.bookings); UPDATE public.bookings SET customer = 'ann'")
			insert(t, pool, 2)
			exec(t, pool, "UPDATE public.bookings SET customer = 'ann' WHERE id = 2")
			deliver(t, config)
			pruned(t, config)
			exec(t, pool, `INSERT INTO od.dead_letter (process_name, position, sequence, table_name, record_id, key, payload, attempts, first_failed_at, error, class, resolution, resolved_at)
				SELECT 'a', '', n, t, n, k, 'secret', 1, now(), 'x', 'permanent', 'discarded', now()
				FROM (VALUES (1, 'public.bookings', ''), (2, 'public.bookings', 'blue'), (3, 'public.bookings', 'ann'), (2, 'public.other', 'blue')) l (n, t, k)`)
			e, d := table.Erase{By: "customer", Key: "ann"}, cursor.Decision{Actor: "ann", Reason: "request 7"}

			exec(t, pool, "UPDATE od.dead_letter SET resolution = NULL, resolved_at = NULL WHERE record_id = '2' AND key = 'blue'")
			_, err := daemon.Erase(t.Context(), config, "public.bookings", e, d)
			require.ErrorIs(t, err, operator.ErrOpenLetter)
			require.ErrorContains(t, err, "1 of that key")

			exec(t, pool, "UPDATE od.dead_letter SET resolution = 'discarded', resolved_at = now()")
			done, err := daemon.Erase(t.Context(), config, "public.bookings", e, d)
			require.NoError(t, err)
			require.Equal(t, rules.Erasure{Erased: table.Erased{Rows: 1, Archived: 1}, Letters: 2, Processes: []string{"a"}}, done)
			require.Equal(t, []string{"1", "2"}, pgtest.Value[[]string](t, pool, "SELECT array_agg(record_id ORDER BY record_id) FROM od.dead_letter WHERE error = 'erased' AND payload IS NULL"))
		})
	}
}

// The row keeps the object of its payload in the claim store.
func TestErase_BlanksNoRowWhosePayloadIsInAClaimStore(t *testing.T) {
	t.Parallel()
	const process = "  a: {source: {table: public.bookings, columns: {key: customer, headers: headers}}, sink: {stdout: {}}, poll: 20ms}\n"
	pool := database(t)
	exec(t, pool, "ALTER TABLE public.bookings ADD headers jsonb, ADD payload jsonb")
	exec(t, pool, `INSERT INTO public.bookings (customer, headers, payload) VALUES ('bob', '{}', '{}'), ('bob', NULL, '{}'), ('ann', '{"claim-check": "0a"}', '{"object": "0a"}')`)
	config := ruled(t, process, "public.bookings", "keep: 1h")
	deliver(t, config)
	d := cursor.Decision{Actor: "ann", Reason: "request 7"}
	_, err := daemon.Erase(t.Context(), config, "public.bookings", table.Erase{Key: "ann", Blank: []string{"payload"}}, d)
	require.ErrorIs(t, err, table.ErrClaimed)
	require.ErrorContains(t, err, "row 3 of that key")
	done, err := daemon.Erase(t.Context(), config, "public.bookings", table.Erase{Key: "bob", Blank: []string{"payload"}}, d)
	require.NoError(t, err)
	require.EqualValues(t, 2, done.Rows)
	done, err = daemon.Erase(t.Context(), config, "public.bookings", table.Erase{Key: "ann"}, d)
	require.NoError(t, err)
	require.EqualValues(t, 1, done.Rows)
}

// A json may have escapes that no text can have, in any of its members.
func TestErase_BlanksRowsWithEscapesThatNoTextCanHave(t *testing.T) {
	t.Parallel()
	const process = "  a: {source: {table: public.bookings, columns: {key: customer, headers: headers}}, sink: {stdout: {}}, poll: 20ms}\n"
	pool := database(t)
	exec(t, pool, "ALTER TABLE public.bookings ADD headers json, ADD payload jsonb")
	exec(t, pool, `INSERT INTO public.bookings (customer, headers, payload) VALUES ('bob', '{"x": "a\u0000b"}', '{}'), ('bob', '{"n": 1e999999}', '{}'), ('ann', '{"x": "\ud800", "claim\u002dcheck": "0a"}', '{}')`)
	config := ruled(t, process, "public.bookings", "keep: 1h")
	deliver(t, config)
	d := cursor.Decision{Actor: "ann", Reason: "request 7"}
	_, err := daemon.Erase(t.Context(), config, "public.bookings", table.Erase{Key: "ann", Blank: []string{"payload"}}, d)
	require.ErrorIs(t, err, table.ErrClaimed)
	done, err := daemon.Erase(t.Context(), config, "public.bookings", table.Erase{Key: "bob", Blank: []string{"payload"}}, d)
	require.NoError(t, err)
	require.EqualValues(t, 2, done.Rows)
}

// However a seek and a removal fall together, all records after the cursor are there.
func TestPrune_BesideSeeksNoRecordAfterTheCursorIsMissing(t *testing.T) {
	t.Parallel()
	const rows, batch = 40, "5"
	pool, config := aged(t, stdoutProcess, "keep: 1h, batch: "+batch, rows)
	for round := 1; round <= 8; round++ {
		last := round * rows
		exec(t, pool, "DELETE FROM public.bookings")
		exec(t, pool, `INSERT INTO public.bookings (id, created_at) OVERRIDING SYSTEM VALUE
			SELECT n, timestamptz '2026-01-01 00:00Z' + n * interval '1 minute' FROM generate_series($1::int - $2::int + 1, $1) n`, last, rows)
		place(t, pool, "a", string(oldAt(last)), "running")
		sought := make(chan error, 1)
		o := operatorOf(t, config)
		go func() {
			_, err := o.Seek(context.WithoutCancel(t.Context()), daemon.ToPosition(oldAt(last-rows/2)), cursor.Decision{Actor: "ann", Reason: "again"})
			sought <- err
		}()
		_, err := prune(t, config)
		var passes *rules.PassesCursor
		if err != nil && !errors.As(err, &passes) {
			require.ErrorIs(t, err, rules.ErrBusy)
		}
		at := last
		if err := waittest.Receive(t, sought, "the seek ends"); err == nil {
			at -= rows / 2
		} else {
			var gone *operator.PrunedError
			require.ErrorAs(t, err, &gone)
		}
		require.Equal(t, string(oldAt(at)), pgtest.Value[string](t, pool, "SELECT position FROM od.cursor"))
		require.Equal(t, last-at, count(t, pool, "SELECT count(*) FROM public.bookings WHERE id > $1", at))
	}
}
