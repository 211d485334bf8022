package main_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// hostileConfig has a process for each way to deliver, and for each order and stamp.
const hostileConfig = `
processes:
  out: {source: {table: public.bookings}, sink: {stdout: {}}, start: beginning, poll: 20ms}
  by_id: {source: {table: public.bookings, order: id, where: "customer <> 'x'"}, sink: {stdout: {}}, start: beginning, poll: 20ms}
  began: {source: {table: public.began, columns: {key: who}}, sink: {stdout: {}}, start: beginning, poll: 20ms}
  tx: {source: {table: public.bookings}, sink: {sql: {statement: "INSERT INTO ledger (id) VALUES (@id)"}}, start: beginning, poll: 20ms}
  remote: {source: {table: public.bookings}, sink: {sql: {url: "%[2]s", statement: "INSERT INTO ledger (id) VALUES (@id)"}}, start: beginning, poll: 20ms}
  aside: {source: {table: public.bookings}, sink: {webhook: {url: "%[1]s"}}, on_poison: dead_letter, start: beginning, poll: 20ms}
  stuck: {source: {table: public.bookings}, sink: {webhook: {url: "%[1]s"}}, start: beginning, poll: 20ms}
`

// hostileTables are made by their owner, whose own names may well be in public.
const hostileTables = `
	CREATE TABLE public.ledger (id bigint);
	CREATE TABLE public.began (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(), who text);
	CREATE UNIQUE INDEX ON public.began (created_at, id);
	INSERT INTO public.began (who) VALUES ('a'), ('b');`

// TestHostileSchema_NoCommandCallsAnothersFunction: whoever may write to a schema of the search_path could otherwise
// have an operator, or the daemon, run what they like with its rights.
func TestHostileSchema_NoCommandCallsAnothersFunction(t *testing.T) {
	t.Parallel()
	for name, through := range map[string]func(testing.TB, string) string{
		"directly":          func(_ testing.TB, address string) string { return address },
		"through PgBouncer": func(t testing.TB, address string) string { return bouncer(t, address) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hostileCommands(t, through)
		})
	}
}

// bouncer keeps the hostile search_path of the database.
func bouncer(t testing.TB, address string) string {
	return pgtest.Bouncer{SearchPath: "public, pg_catalog"}.Start(t, address)
}

func hostileCommands(t *testing.T, through func(testing.TB, string) string) {
	direct := pgtest.URL(t)
	sprung := pgtest.Hostile(t)
	trapped := func(what string) {
		t.Helper()
		require.Empty(t, sprung(), what)
	}
	prepare(t, direct, 4)
	execute(t, pgtest.Pool(t, direct, pgtest.PoolConfig{SearchPath: "pg_catalog"}), hostileTables)
	trapped("migrate up")
	receiver := newPicky(t, "2")
	address := through(t, direct)
	config := file(t, fmt.Sprintf(hostileConfig, receiver.URL, direct))
	_, stdout, _ := do(t, address, "doctor", "-c", config)
	execute(t, pgtest.Pool(t, direct, pgtest.PoolConfig{SearchPath: "pg_catalog"}), remoteTables(stdout))
	trapped("doctor, where something is missing")

	p := start(t, address, "run", "-c", config, "--listen=127.0.0.1:0", "--grace=1s")
	p.stderr.until(t, 1, "failed for good: the process is halted")
	p.stderr.until(t, 1, "kept as a dead letter")
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		get(t, p, path)
	}
	for _, args := range hostileArguments(config) {
		_, _, stderr := do(t, address, args...)
		require.NotContains(t, stderr, "42P01", args)
	}
	p.stop()
	trapped("run, and what operators do beside it")
	code, _, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Contains(t, []int{0, 3}, code, stderr)
	trapped("run --drain")
	for _, args := range append(hostileArguments(config), []string{"migrate", "status"}) {
		do(t, address, args...)
		trapped(strings.Join(args, " "))
	}
	code, _, stderr = do(t, direct, "migrate", "down", "--yes")
	require.Zero(t, code, stderr)
	trapped("migrate down")
}

// hostileArguments are all commands that look or decide.
func hostileArguments(config string) [][]string {
	var all [][]string
	for _, line := range strings.Split(strings.TrimSpace(`
check -c FILE
doctor -c FILE
grants -c FILE --role=worker --operator=people
status
status -c FILE
status -c FILE --json
status -c FILE stuck
history stuck
pause out -c FILE
resume out -c FILE
show -c FILE --id=2 --payload
show -c FILE --dedup-key=public.bookings/2/1
show stuck -c FILE --after=0
tail stuck -c FILE --once --payload
send-test out -c FILE
init --table public.bookings -o -
init
amend stuck -c FILE --payload FILE --dry-run
amend stuck -c FILE --clear --reason=x
retry stuck -c FILE
skip stuck -c FILE --reason=x
seek out -c FILE --reason=x --to-id=2
seek out -c FILE --reason=x --to-id=2 --dry-run
seek by_id -c FILE --reason=x --to-id=1 --dry-run
seek by_id -c FILE --reason=x --to-time=2020-01-01T00:00:00Z --dry-run
seek began -c FILE --reason=x --to-start --dry-run
prove -c FILE out --for=1ms --every=1ms
prove -c FILE by_id --for=1ms --every=1ms
adopt -c FILE out --after= --wait=1s
adopt -c FILE by_id --after-id=1 --wait=1s
dead-letter list
dead-letter list --all aside
dead-letter show 1 --payload
dead-letter replay 1 -c FILE --dry-run
dead-letter replay 1 -c FILE
dead-letter discard 1 --reason=x
process rename by_id by_number --reason=x
process rename by_number by_id --reason=x
process forget began --reason=x`), "\n") {
		all = append(all, strings.Fields(strings.ReplaceAll(line, "FILE", config)))
	}
	return all
}

var listening = regexp.MustCompile(`127\.0\.0\.1:[1-9][0-9]*`)

// get asks the program that listens.
func get(t testing.TB, p *program, path string) {
	t.Helper()
	p.stderr.until(t, 1, "serving")
	for line := range strings.Lines(p.stderr.String()) {
		if !strings.Contains(line, "serving") {
			continue
		}
		response, err := http.Get("http://" + listening.FindString(line) + path)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return
	}
}
