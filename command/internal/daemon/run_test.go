package daemon_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func TestBuild_HandsOverWhatTheFileSays(t *testing.T) {
	t.Parallel()
	config, err := parse(`processes: {a: {source: {table: t}, sink: {webhook: {url: "http://h", timeout: 3s}},
		start: end, batch: 7, checkpoint: 3, poll: 30ms, retry: {initial: 2s, max: 9s, jitter: 5%, attempts: 4}, on_timeout: halt}}`)
	require.NoError(t, err)
	discarded := slog.New(slog.DiscardHandler)
	require.Equal(t, processor.Config{
		Process: "a", Start: processor.End, Batch: 7, Checkpoint: 3, Poll: 30 * time.Millisecond, Grace: time.Second,
		Retry:         processor.Retry{Initial: 2 * time.Second, Max: 9 * time.Second, Jitter: 5, Attempts: 4},
		HaltOnTimeout: true, Logger: discarded,
	}, daemon.ProcessorConfig(config.Processes[0], time.Second))
	require.Equal(t, 8*time.Second, daemon.CallTimeout(t, config.Processes[0]), "a margin beyond the webhook's own")

	config, err = parse(`processes: {a: {source: {table: t}, sink: {webhook: {url: "http://h", timeout: 1h}}},
		b: {source: {table: t}, sink: {webhook: {url: "http://h"}}}}`)
	require.NoError(t, err)
	require.Equal(t, time.Hour, daemon.CallTimeout(t, config.Processes[0]), "no more than the processor allows")
	require.Equal(t, 15*time.Second, daemon.CallTimeout(t, config.Processes[1]))
	require.Equal(t, processor.Config{Process: "b", Logger: discarded}, daemon.ProcessorConfig(config.Processes[1], 0))
}

// A statement may hold a secret. Its digest in the audit differs from one process to
// the other, so likely secrets cannot be tried against many rows at once.
func TestDrain_SaltsTheDigestOfWhatMayBeSecret(t *testing.T) {
	t.Parallel()
	pool := database(t)
	statement := "INSERT INTO public.effects SELECT 'hunter2'"
	config := func(name string) string {
		return fmt.Sprintf("  %s: {source: {table: public.bookings}, start: end, sink: {sql: {statement: %q}}}\n", name, statement)
	}
	for range 2 {
		_ = drain(t, configure(t, pgtest.URL(t), config("one")))
		_ = drain(t, configure(t, pgtest.URL(t), config("two")))
	}
	rows, err := pool.Query(t.Context(), "SELECT detail->>'sink.sql.statement' FROM od.cursor_event WHERE action = 'configure'")
	require.NoError(t, err)
	digests, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Len(t, digests, 2, "each is noted once: the salt is that of the last note")
	require.NotEqual(t, digests[0], digests[1])
	require.Regexp(t, `^sha256:[0-9a-f]{32}$`, digests[0])
}

// What makes records ready decides what is delivered, as the sink does.
func TestDrain_NotesWhatMakesRecordsReady(t *testing.T) {
	t.Parallel()
	pool := database(t)
	last := func(more string) string {
		process := "  a: {source: {table: public.bookings, columns: {type: customer}}, start: end, sink: {stdout: {}}" + more + "}\n"
		require.NoError(t, drain(t, configure(t, pgtest.URL(t), process)))
		return pgtest.Value[string](t, pool, "SELECT detail - 'source.table' - 'source.order' - 'sink' - 'source.columns.type' - 'salt' FROM od.cursor_event WHERE action = 'configure' ORDER BY id DESC LIMIT 1")
	}
	noted := func() int { return count(t, pool, "SELECT count(*) FROM od.cursor_event WHERE action = 'configure'") }
	require.Equal(t, `{}`, last(""), "an upgrade of the program notes nothing if none of it is set")
	require.Equal(t, `{"compressed": "decompress"}`, last(", compressed: decompress"))
	require.Equal(t, `{"claims": "/claims/a"}`, last(", claims: /claims/a"))
	one := last(`, upcast: {a@1: '.secret = "hunter2"'}`)
	require.Regexp(t, `^{"upcast.a@1": "sha256:[0-9a-f]{32}"}$`, one)
	require.Equal(t, 4, noted())
	require.Equal(t, one, last(`, upcast: {a@1: '.secret = "hunter2"'}`))
	require.Equal(t, 4, noted())
	require.NotEqual(t, one, last(`, upcast: {a@1: '.secret = "hunter3"'}`))
	require.Equal(t, 5, noted())
}

// However short a drain is, its configuration is in the audit, and only once.
func TestDrain_NotesItsConfiguration(t *testing.T) {
	t.Parallel()
	pool := database(t)
	noted := func() int { return count(t, pool, "SELECT count(*) FROM od.cursor_event WHERE action = 'configure'") }
	first := configure(t, pgtest.URL(t), stdoutProcess)
	require.NoError(t, drain(t, first))
	require.NoError(t, drain(t, first))
	require.Equal(t, 1, noted())

	blocker := begin(t, pool, "LOCK TABLE od.cursor_event IN ACCESS EXCLUSIVE MODE")
	done := make(chan error, 1)
	go func() {
		done <- drain(t, configure(t, pgtest.URL(t), strings.Replace(stdoutProcess, "bookings", "bookings, where: id > 0", 1)))
	}()
	require.Eventually(t, func() bool {
		var waiting bool
		err := pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE relation = 'od.cursor_event'::regclass AND NOT granted)").Scan(&waiting)
		return err == nil && waiting || len(done) > 0
	}, 30*time.Second, time.Millisecond)
	require.Never(t, func() bool { return len(done) > 0 }, 300*time.Millisecond, 10*time.Millisecond, "it waits for the note")
	require.NoError(t, blocker.Rollback(t.Context()))
	require.NoError(t, waittest.Receive(t, done, "the drain ends"))
	require.Equal(t, 2, noted())
}

// The daemon collects no spans, and cuts no trace.
func TestRun_ARecordsTraceGoesOnAtItsReceiver(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	pool := database(t)
	exec(t, pool, "ALTER TABLE public.bookings ADD headers jsonb")
	exec(t, pool, `INSERT INTO public.bookings (headers) VALUES ('{"traceparent": "`+parent+`", "tracestate": "vendor=x"}'), (NULL)`)
	var mu sync.Mutex
	var parents, states []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		parents, states = append(parents, r.Header.Get("Traceparent")), append(states, r.Header.Get("Tracestate"))
	}))
	defer receiver.Close()
	require.NoError(t, drain(t, configure(t, pgtest.URL(t),
		"  a: {source: {table: public.bookings, columns: {headers: headers}}, sink: {webhook: {url: '"+receiver.URL+"'}}}\n")))
	require.Equal(t, []string{parent, ""}, parents)
	require.Equal(t, []string{"vendor=x", ""}, states)
}

// What a deferred constraint says comes with the end of the effects, not with a statement of
// the record. A process whose settings refer to files hands records to its sink by another way.
func TestDrain_ADeferredConstraintIsAWordOnTheRecordWithoutItsData(t *testing.T) {
	t.Parallel()
	const statement = "INSERT INTO public.cards VALUES (@key)"
	file := filepath.Join(t.TempDir(), "statement")
	require.NoError(t, os.WriteFile(file, []byte(statement), 0o600))
	for name, statement := range map[string]string{"settings": statement, "a file": "${file:" + file + "}"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokenConstraint(t, statement)
		})
	}
}

func brokenConstraint(t *testing.T, statement string) {
	pool := database(t)
	exec(t, pool, `
		CREATE TABLE public.cards (card text);
		CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN RAISE EXCEPTION 'card % is refused', NEW.card USING ERRCODE = '23514'; END $$;
		CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON public.cards DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (NEW.card LIKE '4111%') EXECUTE FUNCTION public.refuse();
		INSERT INTO public.bookings (customer) VALUES ('5500-FINE'), ('4111-CANARYCARD-1111'), ('5500-FINE')`)
	config := configure(t, pgtest.URL(t), "  a: {source: {table: public.bookings, columns: {key: customer}}, checkpoint: 3, retry: {initial: 10ms, max: 20ms, attempts: 2}, sink: {sql: {statement: '"+statement+"'}}}\n")
	_ = drain(t, config)
	var state, class, said string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT state, failed_class, failed_error FROM od.cursor`).Scan(&state, &class, &said))
	require.Equal(t, "halted", state)
	require.Equal(t, "permanent", class, "as where the constraint is immediate")
	require.Contains(t, said, "is refused")
	require.NotContains(t, said, "CANARYCARD")
	require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM public.cards"))
}

func TestDrain_ASQLSinkThatRequiresARowHaltsWhereNoneIsTouched(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `
		CREATE TABLE public.account (owner text PRIMARY KEY, n int NOT NULL DEFAULT 0);
		INSERT INTO public.account VALUES ('ann'), ('cid');
		INSERT INTO public.bookings (customer) VALUES ('ann'), ('bob'), ('cid')`)
	config := configure(t, pgtest.URL(t), "  a: {source: {table: public.bookings, columns: {key: customer}}, checkpoint: 3, "+
		"sink: {sql: {rows: at_least 1, statement: UPDATE public.account SET n = n + 1 WHERE owner = @key}}}\n")
	_ = drain(t, config)
	var state, class, said string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT state, failed_class, failed_error FROM od.cursor`).Scan(&state, &class, &said))
	require.Equal(t, "halted", state)
	require.Equal(t, "permanent", class)
	require.Contains(t, said, "touched no row")
	applied := pgtest.Value[string](t, pool, "SELECT string_agg(owner, ' ') FROM public.account WHERE n = 1")
	require.Equal(t, "ann", applied, "what is before it is applied, and nothing after it")
}

// The keys are no JSON, so the server converts them: to bytes that are not UTF-8, or not at all.
func TestDrain_ARoleOfAnotherEncodingDeliversUTF8(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `INSERT INTO public.bookings (customer) VALUES ('é'), ('€')`)
	exec(t, pool, `ALTER DATABASE `+pgx.Identifier{pool.Config().ConnConfig.Database}.Sanitize()+` SET client_encoding = 'LATIN1'`)
	config := configure(t, pgtest.URL(t), "  a: {source: {table: public.bookings, columns: {key: customer}}, sink: {stdout: {}}}\n")
	var out bytes.Buffer
	require.NoError(t, drainTo(t, daemon.RunConfig{Config: config, Stdout: &out}))
	require.Contains(t, out.String(), `"key":"é"`)
	require.Contains(t, out.String(), `"key":"€"`)
}

const unqualifiedProcess = "  a: {source: {table: bookings}, sink: {stdout: {}}, poll: 20ms}\n"

// TestRun_ANameThatMeansAnotherTableAfterARestartIsRefused: the search_path finds a new
// table before the one that was read. Neither a start, nor one more, nor a rename of the
// process, nor the retention of the audit accepts it; the schema in the file does.
func TestRun_ANameThatMeansAnotherTableAfterARestartIsRefused(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "CREATE SCHEMA early")
	address := with(t, pgtest.URL(t), "search_path", "early,public")
	config := configure(t, address, unqualifiedProcess)
	insert(t, pool, 2)
	require.NoError(t, drain(t, config))

	exec(t, pool, "CREATE TABLE early.bookings (LIKE public.bookings INCLUDING ALL); INSERT INTO early.bookings (id, customer) OVERRIDING SYSTEM VALUE VALUES (1, 'forged')")
	const problem = "table bookings meant public.bookings when the process last ran, and is early.bookings now"
	insert(t, pool, 1)
	for range 2 {
		require.ErrorContains(t, drain(t, config), problem)
	}
	fix := "write source.table as public.bookings, or as early.bookings if it is meant"
	require.Equal(t, fix, requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Refuse, problem, fix}).Fix)

	exec(t, pool, "DELETE FROM od.cursor_event")
	require.ErrorContains(t, drain(t, config), problem)

	renamed := configure(t, address, strings.Replace(unqualifiedProcess, "a:", "b:", 1))
	_, err := daemon.Rename(t.Context(), renamed, "a", "b", cursor.Decision{Actor: "test", Reason: "another name"})
	require.NoError(t, err)
	require.ErrorContains(t, drain(t, renamed), problem)

	log := drainLog(t, configure(t, address, strings.NewReplacer("a:", "b:", "bookings", "public.bookings").Replace(unqualifiedProcess)))
	require.NotContains(t, log, "the configuration has changed", "it means the same table")
	require.Equal(t, 3, count(t, pool, "SELECT sequence FROM od.cursor WHERE process_name = 'b'"))
}

// A database in which every role may create in public is that of PostgreSQL 14 and
// older: the table there is found first, and no one can put one before it.
func TestRun_ANameWithoutASchemaInPublicWorks(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "GRANT CREATE ON SCHEMA public TO PUBLIC")
	insert(t, pool, 2)
	config := configure(t, pgtest.URL(t), unqualifiedProcess)
	for range 2 {
		require.NoError(t, drain(t, config))
	}
	require.NotContains(t, problems(doctor(t, config)), "search_path")
	exec(t, pool, "DROP TABLE public.bookings")
	exec(t, pool, "CREATE TABLE public.bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp()); CREATE INDEX ON public.bookings (created_at, id)")
	require.NoError(t, drain(t, config), "made anew under its name")
}

// drainLog is drain with what it logs.
func drainLog(t testing.TB, config daemon.Config) string {
	t.Helper()
	log := &buffer{}
	require.NoError(t, drainTo(t, daemon.RunConfig{Config: config, Logger: slog.New(slog.NewTextHandler(log, nil))}))
	return log.String()
}

func TestRun_RefusesANewNameWhoseStartWasLeftInTheFile(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	started := strings.Replace(stdoutProcess, "{source", "{start: beginning, source", 1)
	const warning = "a cursor without a process in this file"
	log := drainLog(t, configure(t, pgtest.URL(t), started))
	require.NotContains(t, log, warning, "it is the first")

	both := started + strings.Replace(started, "a:", "second:", 1)
	require.NotContains(t, drainLog(t, configure(t, pgtest.URL(t), both)), warning, "the file has both")

	exec(t, pool, "CREATE TABLE public.others (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp()); CREATE INDEX ON public.others (created_at, id)")
	elsewhere := strings.NewReplacer("a:", "other:", "bookings", "others").Replace(started)
	require.NotContains(t, drainLog(t, configure(t, pgtest.URL(t), elsewhere)), warning, "it reads another table")

	renamed := configure(t, pgtest.URL(t), strings.Replace(started, "a:", "renamed:", 1))
	var usage *daemon.UsageError
	err := drain(t, renamed)
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, warning+" has the same table and the same sink (a, second)")
	require.ErrorContains(t, err, "`ordered-dispatcher process rename a renamed -c FILE --reason …`")
	require.ErrorContains(t, err, "`ordered-dispatcher seek renamed -c FILE --to-start --reason …`")
	err = daemon.Run(t.Context(), quiet(daemon.RunConfig{Config: renamed}))
	require.ErrorContains(t, err, warning, "without --drain, too")
	require.Equal(t, 0, count(t, pool, "SELECT count(*) FROM od.cursor WHERE process_name = 'renamed'"))
	require.Equal(t, 0, count(t, pool, "SELECT count(*) FROM od.cursor_event WHERE process_name = 'renamed'"))
	require.Contains(t, problems(doctor(t, renamed)), warning+" has the same table and the same sink (a, second)", "doctor says what run will")

	other := drainLog(t, configure(t, pgtest.URL(t), strings.NewReplacer("a:", "filtered:", "{start: beginning, source: {", "{start: beginning, source: {where: id > 1, ").Replace(started)))
	require.Contains(t, other, warning, "it may be another process of another file: that is no more than a warning")

	exec(t, pool, "DELETE FROM public.bookings")
	drainLog(t, renamed) // there is nothing to send twice
	require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM od.cursor WHERE process_name = 'renamed'"))
}
