package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// section is one section of docs/moving.md.
type section struct{ sql, yaml, sh string }

// moving returns a section of docs/moving.md by its title.
func moving(t *testing.T, title string) section {
	t.Helper()
	text, err := os.ReadFile("../../docs/moving.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "\n## "+title+"\n")
	require.True(t, found, title)
	rest, _, _ = strings.Cut(rest, "\n## ")
	var s section
	for _, m := range regexp.MustCompile("(?s)```(\\w+)\n(.*?)```").FindAllStringSubmatch(rest, -1) {
		to := map[string]*string{"sql": &s.sql, "yaml": &s.yaml, "sh": &s.sh}[m[1]]
		require.Empty(t, *to, "one block of each kind")
		*to = m[2]
	}
	return s
}

// shell runs commands of the document beside its file.
func shell(t *testing.T, address, dir, script string) (code int, output string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH"), "DATABASE_URL=" + address}
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

var startSetting = regexp.MustCompile(`(?m)^  start:\s+(\S+)$`)

// proposedSteps is the file with the start that adopt has printed.
func proposedSteps(t *testing.T, yaml, output string) string {
	t.Helper()
	found := startSetting.FindStringSubmatch(output)
	require.NotNil(t, found, output)
	return yaml + "    start: " + found[1] + "\n"
}

const movedOrders = `CREATE TABLE public.orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), dispatched_at timestamptz);
	CREATE INDEX ON public.orders (created_at, id);
	INSERT INTO public.orders (dispatched_at) SELECT CASE WHEN n IN (1, 2, 3, 5) THEN now() END FROM generate_series(1, 6) n;`

// Each way of docs/moving.md: its commands find a position, and a process that starts there delivers what is left.
func TestMoving_EachWayFindsWhereToBegin(t *testing.T) {
	t.Parallel()
	for title, c := range map[string]struct {
		old  string
		code int
		said string
		left []string
	}{
		"From a dispatched_at flag":   {movedOrders, 0, "Sent twice", []string{"4", "5", "6"}},
		"From a loop that reads id >": {movedOrders, 0, "stay lost", []string{"4", "5", "6"}},
		"From watermill-sql": {`
			CREATE TABLE public."watermill_orders" ("offset" BIGSERIAL, "uuid" VARCHAR(36) NOT NULL, "created_at" TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
				"payload" JSON DEFAULT NULL, "metadata" JSON DEFAULT NULL, "transaction_id" xid8 NOT NULL, PRIMARY KEY ("transaction_id", "offset"));
			CREATE TABLE public."watermill_offsets_orders" (consumer_group VARCHAR(255) NOT NULL, offset_acked BIGINT, last_processed_transaction_id xid8 NOT NULL, PRIMARY KEY(consumer_group));
			INSERT INTO public."watermill_orders" (uuid, payload, metadata, transaction_id) SELECT n::text, '{}', '{"name": "x"}', pg_current_xact_id() FROM generate_series(1, 4) n;
			INSERT INTO public."watermill_offsets_orders" SELECT 'billing', 2, transaction_id FROM public.watermill_orders LIMIT 1`,
			0, "No row is sent twice", []string{"3", "4"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			address, pool := database(t, 0)
			pgtest.Exec(t, pool, c.old)
			move(t, address, pool, moving(t, title), c.code, c.said, c.left)
		})
	}
}

// move follows a section, and checks which records a process delivers from there.
func move(t *testing.T, address string, pool *pgxpool.Pool, s section, wantCode int, said string, left []string) {
	t.Helper()
	if s.sql != "" {
		pgtest.Exec(t, pool, strings.TrimSuffix(strings.TrimSpace(s.sql), ";"))
	}
	path := file(t, s.yaml)
	code, output := shell(t, address, filepath.Dir(path), strings.TrimSpace(s.sh)+" --watch=0s")
	require.Equal(t, wantCode, code, output)
	require.Contains(t, strings.Join(strings.Fields(output), " "), said)
	require.Empty(t, pgtest.Value[int](t, pool, `SELECT count(*)::int FROM public.cursor`), "nothing was changed")

	whole := file(t, proposedSteps(t, s.yaml, output))
	require.Contains(t, must(t, address, "doctor", "-c", whole), "0 errors, 0 warnings")
	require.Equal(t, left, ids(t, must(t, address, "run", "--drain", "-c", whole)))

	// The seek that is proposed goes to the same place.
	_, command, found := strings.Cut(output, "\n  ordered-dispatcher seek")
	require.True(t, found, output)
	command, _, _ = strings.Cut(command, "\n\n")
	code, output = shell(t, address, filepath.Dir(path), "ordered-dispatcher seek"+command)
	require.Zero(t, code, output)
	require.Contains(t, output, "again", "it would go back: nothing was sent twice in a dry run")
}

func TestMoving_FromASlot(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, map[string]string{"wal_level": "logical"})
	prepare(t, server.URL(), 0)
	pool := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	pgtest.Exec(t, pool, `CREATE TABLE public.outbox (id uuid PRIMARY KEY, aggregatetype varchar(255) NOT NULL, aggregateid varchar(255) NOT NULL, type varchar(255) NOT NULL, payload jsonb)`)
	for statement := range strings.SplitSeq(strings.TrimSuffix(fromDebezium(t), ";"), ";\n") {
		pgtest.Exec(t, pool, statement)
	}
	pgtest.Exec(t, pool, movedOrders)
	for _, slot := range []string{"debezium", "sequin_slot"} {
		pgtest.Exec(t, pool, `SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, slot)
	}
	const one, two = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"
	insert := func(id string) {
		pgtest.Exec(t, pool, `INSERT INTO public.outbox (id, aggregatetype, aggregateid, type, payload) VALUES ($1, 'order', 'k', 'order.created', '{}')`, id)
	}
	insert(one)
	pgtest.Exec(t, pool, `CHECKPOINT`)
	pgtest.Exec(t, pool, `SELECT pg_replication_slot_advance('debezium', pg_current_wal_lsn())`)
	insert(two)
	move(t, server.URL(), pool, moving(t, "From Debezium"), 0, "are proven", []string{two})

	pgtest.Exec(t, pool, `DELETE FROM public.cursor`)
	pgtest.Exec(t, pool, `CHECKPOINT`)
	pgtest.Exec(t, pool, `SELECT pg_replication_slot_advance('sequin_slot', pg_current_wal_lsn())`)
	pgtest.Exec(t, pool, `INSERT INTO public.orders DEFAULT VALUES`)
	s := moving(t, "From Sequin")
	path := file(t, s.yaml)
	code, output := shell(t, server.URL(), filepath.Dir(path), s.sh)
	require.Equal(t, 1, code, output)
	require.Contains(t, output, "Not proven")
	require.NotNil(t, startSetting.FindStringSubmatch(output), output)
}

func TestMoving_ProveIsAsTheDocumentHasIt(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, movedOrders)
	code, output := shell(t, address, t.TempDir(), strings.Replace(moving(t, "Does the loop lose rows?").sh, "--for 1m", "--for 100ms", 1))
	require.Zero(t, code, output)
	require.Contains(t, output, "public.orders, ordered by created_at, id: ")
	require.Contains(t, output, "No row became visible")
}

func TestMoving_FromAPosition(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, movedOrders)
	s := moving(t, "From anything else")
	s.yaml = moving(t, "From a loop that reads id >").yaml
	move(t, address, pool, s, 0, "only you know", []string{"4", "5", "6"})
}

// A late commit is lost by the loops, while the program measures.
func TestProve_NamesWhatALoopLoses(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, movedOrders)
	cmd := exec.Command(binary, "prove", "--table=public.orders", "--order=created_at,id", "--for=1h", "--every=10ms", "--log-level=debug")
	cmd.Env = []string{"COLUMNS=80"}
	p := startCommand(t, address, "", cmd)
	// A look that began after this moment has ended when two more are done.
	looks := func() int { return strings.Count(p.stderr.String(), "looked at the table") }
	look := func() {
		t.Helper()
		before := looks()
		require.Eventually(t, func() bool { return looks() >= before+2 }, patience, tick, "%s", p.stderr.tail())
	}
	look()
	late := pgtest.Begin(t, pool, `INSERT INTO public.orders DEFAULT VALUES`)
	pgtest.Exec(t, pool, `INSERT INTO public.orders DEFAULT VALUES`)
	look()
	require.NoError(t, late.Commit(t.Context()))
	look()
	p.signal(syscall.SIGINT)
	require.Zero(t, p.wait())
	out := p.stdout.String()
	require.Contains(t, p.stderr.String(), "measuring public.orders for 1h0m0s; Ctrl-C ends it")
	require.Regexp(t, `id > the last id seen +1\n`, out)
	require.Regexp(t, `time > the last poll +\d+\n`, out)
	require.Regexp(t, `ours, below the fence +0\n`, out)
	require.Contains(t, out, "Lost by \"id > the last id seen\", by id:\n  7 of ")
	require.Contains(t, out, "it was interrupted")
	require.Regexp(t, `pid \d+, application`, out)
	for line := range strings.Lines(out) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 80, line)
	}
}

func TestProve_EndsByItselfAndPrintsJSON(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 3)
	config := processes(t, map[string]string{"a": "stdout: {}"})
	began := time.Now()
	out := must(t, address, "prove", "-c", config, "--for=50ms", "--every=1ms", "--json")
	require.Less(t, time.Since(began), patience)
	require.Contains(t, out, `"table":"public.bookings"`)
	require.Contains(t, out, `"ours":{"reads":"ours, below the fence","lost":0,"rows":[]}`)
}

func TestProveAndAdopt_WrongUse(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 1)
	config := processes(t, map[string]string{"a": "stdout: {}", "b": "stdout: {}"})
	for _, c := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"prove"}, "name a file with -c, or a table with --table"},
		{[]string{"prove", "-c", config, "--table=x"}, "name a file with -c, or a table with --table"},
		{[]string{"prove", "-c", config}, "the file has 2 processes"},
		{[]string{"prove", "-c", config, "c"}, "there is no process"},
		{[]string{"prove", "a", "--table=public.bookings"}, "name the file with -c"},
		{[]string{"prove", "--table=public.bookings", "--order=a,b,c"}, "--order takes an id"},
		{[]string{"prove", "--table=public.bookings", "--for=0s"}, "--for must be more than 0"},
		{[]string{"prove", "--table=public.nowhere"}, "cannot be read in order"},
		{[]string{"adopt", "-c", config, "a"}, "--dispatched-at"},
		{[]string{"adopt", "-c", config, "a", "--dispatched-at=sent"}, "has no column sent"},
		{[]string{"adopt", "-c", config, "a", "--dispatched-at=sent", "--after-id=1"}, "can't be used together"},
		{[]string{"adopt", "-c", config, "a", "--after=", "--lsn=0/0"}, "--lsn needs --debezium"},
		{[]string{"adopt", "-c", config, "a", "--after=", "--watermill-offsets=x"}, "--watermill-offsets needs --watermill"},
		{[]string{"adopt", "-c", config, "a", "--debezium=none", "--lsn=16"}, "not a place of the log"},
		{[]string{"adopt", "-c", config, "a", "--debezium=none"}, `no replication slot "none"`},
	} {
		code, stdout, stderr := do(t, address, c.args...)
		require.Equal(t, 2, code, "%v: %s", c.args, stderr)
		require.Contains(t, stderr, c.stderr)
		require.Empty(t, stdout)
	}
}
