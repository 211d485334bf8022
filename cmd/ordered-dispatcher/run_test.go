package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// database is migrated and has a table of n bookings.
func database(t testing.TB, n int) (string, *pgxpool.Pool) {
	t.Helper()
	address := pgtest.URL(t)
	prepare(t, address, n)
	return address, pgtest.Database(t)
}

func prepare(t testing.TB, address string, n int) {
	t.Helper()
	code, _, stderr := do(t, address, "migrate", "up")
	require.Zero(t, code, stderr)
	execute(t, pgtest.Pool(t, address, pgtest.PoolConfig{}), `
		CREATE TABLE public.bookings (
			id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
			customer text NOT NULL
		);
		CREATE UNIQUE INDEX ON public.bookings (created_at, id);`)
	insert(t, pgtest.Pool(t, address, pgtest.PoolConfig{}), n)
}

var (
	execute = pgtest.Exec
	text    = pgtest.Value[string]
)

func insert(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	execute(t, pool, fmt.Sprintf("INSERT INTO public.bookings (customer) SELECT 'c' || i FROM generate_series(1, %d) i", n))
}

// sequence is how many records a process has delivered, durably.
func sequence(t testing.TB, pool *pgxpool.Pool, process string) int {
	t.Helper()
	return pgtest.Value[int](t, pool, "SELECT sequence FROM public.cursor WHERE process_name = $1", process)
}

// sequenceOr0 is sequence for a cursor that may not be there yet.
func sequenceOr0(t testing.TB, pool *pgxpool.Pool, process string) int {
	t.Helper()
	return pgtest.Value[int](t, pool, "SELECT coalesce(max(sequence), 0) FROM public.cursor WHERE process_name = $1", process)
}

// processes is a file with one process for each sink, on the bookings.
func processes(t testing.TB, sinks map[string]string) string {
	t.Helper()
	text := "processes:\n"
	for name, sink := range sinks {
		text += fmt.Sprintf("  %s: {source: {table: public.bookings}, sink: {%s}, start: beginning, poll: 20ms, retry: {initial: 10ms, max: 50ms}}\n", name, sink)
	}
	return file(t, text)
}

func ids(t testing.TB, stdout string) []string {
	t.Helper()
	var all []string
	for line := range strings.Lines(stdout) {
		var record struct{ ID string }
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		all = append(all, record.ID)
	}
	return all
}

func TestDrain_DeliversAllInOrderAndEnds(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 200)
	config := processes(t, map[string]string{"a": "stdout: {}"})

	code, stdout, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Zero(t, code, stderr)
	var want []string
	for i := range 200 {
		want = append(want, fmt.Sprint(i+1))
	}
	require.Equal(t, want, ids(t, stdout))
	require.Equal(t, 200, sequence(t, pool, "a"))

	code, stdout, stderr = do(t, address, "run", "--drain", "-c", config)
	require.Zero(t, code, stderr)
	require.Empty(t, stdout, "none twice")
}

func TestDrain_AHaltedProcessDoesNotEndTheOthers(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 50)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Ordered-Sequence") == "3" {
			http.Error(w, "no such booking", http.StatusUnprocessableEntity)
		}
	}))
	defer receiver.Close()
	config := processes(t, map[string]string{"bad": "webhook: {url: '" + receiver.URL + "'}", "fine": "stdout: {}"})

	code, stdout, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Equal(t, 3, code)
	require.Len(t, ids(t, stdout), 50)
	require.Contains(t, ended(stderr), `process "bad" is halted at record 3`)
	for line := range strings.Lines(stderr) {
		require.LessOrEqual(t, strings.Count(line, "skip"), 1, "the way out is said once: %s", line)
	}
	require.Equal(t, 2, sequence(t, pool, "bad"))
	require.Equal(t, 50, sequence(t, pool, "fine"))
}

func TestDrain_InterruptedIsNotDone(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 3)
	receiver := slow(t)
	p := start(t, address, "run", "--drain", "-c", processes(t, map[string]string{"a": "webhook: {url: '" + receiver.URL + "'}"}))
	<-receiver.arrived
	p.signal(syscall.SIGTERM)
	p.stderr.until(t, 1, "stopping")
	close(receiver.answer)
	require.Equal(t, 1, p.wait())
	require.Contains(t, p.stderr.String(), "interrupted before all was delivered")
}

// receiver answers when it is told to.
type receiver struct {
	*httptest.Server
	arrived  chan struct{}
	answer   chan struct{} // closed: answer
	requests atomic.Int32
}

func slow(t testing.TB) *receiver {
	t.Helper()
	r := &receiver{arrived: make(chan struct{}, 1000), answer: make(chan struct{})}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.requests.Add(1)
		r.arrived <- struct{}{}
		select {
		case <-r.answer:
		case <-req.Context().Done():
		}
	}))
	t.Cleanup(r.Server.CloseClientConnections)
	return r
}

func TestSIGTERM_LetsTheSlowCallFinish(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 3)
	receiver := slow(t)
	p := start(t, address, "run", "-c", processes(t, map[string]string{"a": "webhook: {url: '" + receiver.URL + "'}"}))
	<-receiver.arrived
	p.signal(syscall.SIGTERM)
	p.stderr.until(t, 1, "stopping")
	close(receiver.answer)
	require.Zero(t, p.wait())
	require.EqualValues(t, 1, receiver.requests.Load(), "no record behind the one in flight is sent")
	require.Equal(t, 1, sequence(t, pool, "a"), "what was delivered is durable")
}

func TestSIGHUP_LetsTheSlowCallFinish(t *testing.T) {
	t.Parallel()
	hangups := make(chan os.Signal, 1) // a program that is started inherits that a signal is ignored, not that it is caught
	signal.Notify(hangups, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangups) })
	address, pool := database(t, 3)
	receiver := slow(t)
	p := start(t, address, "run", "-c", processes(t, map[string]string{"a": "webhook: {url: '" + receiver.URL + "'}"}))
	<-receiver.arrived
	p.signal(syscall.SIGHUP)
	p.stderr.until(t, 1, "stopping")
	close(receiver.answer)
	require.Zero(t, p.wait())
	require.Equal(t, 1, sequence(t, pool, "a"), "what was delivered is durable")
}

// Under nohup a worker outlives its terminal.
func TestSIGHUP_IsIgnoredUnderNohup(t *testing.T) {
	t.Parallel()
	nohup := pgtest.Require(t, "nohup")
	address, pool := database(t, 1)
	p := startCommand(t, address, "", exec.Command(nohup, binary, "run", "-c", processes(t, map[string]string{"a": "stdout: {}"})))
	p.stdout.until(t, 1, `"process":"a"`)
	p.signal(syscall.SIGHUP)
	insert(t, pool, 1)
	p.stdout.until(t, 2, `"process":"a"`)
	p.stop()
	require.NotContains(t, p.stderr.String(), "hangup")
}

func TestSIGTERM_WaitsNoLongerThanTheGrace(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 3)
	receiver := slow(t)
	p := start(t, address, "run", "--grace=100ms", "-c", processes(t, map[string]string{"a": "webhook: {url: '" + receiver.URL + "'}"}))
	<-receiver.arrived
	p.signal(syscall.SIGTERM)
	require.Equal(t, 1, p.wait())
	require.Contains(t, p.stderr.String(), "did not end within the grace period: its record will be delivered again")
	require.Zero(t, sequence(t, pool, "a"))
}

func TestSIGTERM_TwiceEndsAtOnce(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 3)
	receiver := slow(t)
	config := processes(t, map[string]string{"a": "webhook: {url: '" + receiver.URL + "'}"})
	p := start(t, address, "run", "-c", config)
	<-receiver.arrived
	p.signal(syscall.SIGTERM)
	p.stderr.until(t, 1, "stopping")
	require.Eventually(t, func() bool { // one that comes at once is the first one again
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		return strings.Contains(p.stderr.String(), "stopping at once")
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, 1, p.wait())
	require.Zero(t, sequence(t, pool, "a"))

	close(receiver.answer)
	code, _, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Zero(t, code, stderr)
	require.Equal(t, 3, sequence(t, pool, "a"), "and nothing is lost")
}

func TestRun_WaitsForADatabaseThatIsDown(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	prepare(t, server.URL(), 2)
	ctx := context.Background()
	require.NoError(t, server.StopFast(ctx))

	p := start(t, server.URL(), "run", "-c", processes(t, map[string]string{"a": "stdout: {}"}))
	p.stderr.until(t, 1, "cannot work; trying again")
	require.NoError(t, server.Restart(ctx))
	p.stdout.until(t, 2, `"process":"a"`)

	require.NoError(t, server.StopImmediate(ctx))
	p.stderr.until(t, 2, "cannot work; trying again")
	require.NoError(t, server.Restart(ctx))
	insert(t, pgtest.Pool(t, server.URL(), pgtest.PoolConfig{}), 1)
	p.stdout.until(t, 3, `"process":"a"`)
	p.stop()
	require.Equal(t, []string{"1", "2", "3"}, ids(t, p.stdout.String()))
}

// TestRun_AClosedStandardOutputIsRefused: Go leads it to the null device, where every record would count as delivered.
func TestRun_AClosedStandardOutputIsRefused(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 3)
	closed := exec.Command(pgtest.Require(t, "sh"), "-c", `exec "$0" "$@" >&-`, binary, "run", "--drain", "-c", processes(t, map[string]string{"a": "stdout: {}"}))
	p := startCommand(t, address, "", closed)
	require.NotZero(t, p.wait())
	require.Contains(t, p.stderr.String(), "the standard output is closed")
	require.Zero(t, sequenceOr0(t, pool, "a"))
}

func TestSIGTERM_EndsARunThatWaitsForItsDatabase(t *testing.T) {
	t.Parallel()
	p := start(t, nowhere, "run", "-c", processes(t, map[string]string{"a": "stdout: {}"}))
	p.stderr.until(t, 1, "cannot work; trying again; `ordered-dispatcher doctor` names the fix")
	p.stop()
	require.NotContains(t, p.stderr.String(), "CANARY")
}

func TestRun_AnotherWorkerTakesOver(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	config := processes(t, map[string]string{"a": "stdout: {}"})
	workers := []*program{start(t, address, "run", "-c", config), start(t, address, "run", "-c", config)}
	for _, w := range workers {
		w.stderr.until(t, 1, "starting")
	}
	insert(t, pool, 1)
	require.Eventually(t, func() bool {
		return sequenceOr0(t, pool, "a") == 1 && workers[0].stdout.String()+workers[1].stdout.String() != ""
	}, patience, 10*time.Millisecond)
	active, standby := workers[0], workers[1]
	if active.stdout.String() == "" {
		active, standby = standby, active
	}
	active.signal(syscall.SIGKILL)
	killed := time.Now()
	require.Equal(t, -1, active.wait())
	insert(t, pool, 2)
	standby.stdout.until(t, 2, `"process":"a"`)
	require.Less(t, time.Since(killed), 9*time.Second, "the closed socket frees the lease, not the lease's time-out of 10 s")
	standby.stop()
	require.Equal(t, []string{"1", "2", "3"}, append(ids(t, active.stdout.String()), ids(t, standby.stdout.String())...))
	// Not by how much: a worker that loses the lock between its take-over and its first record leaves an epoch unused.
	require.Greater(t, epochOfLast(t, standby.stdout.String()), epochOfLast(t, active.stdout.String()))
}

// epochOfLast is the epoch under which the last record of stdout was sent.
func epochOfLast(t testing.TB, stdout string) int64 {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var record struct {
		Epoch int64 `json:",string"`
	}
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &record))
	return record.Epoch
}

func TestRun_SaysWhatBecameOfTheTable(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 1)
	p := start(t, address, "run", "-c", processes(t, map[string]string{"a": "stdout: {}"}))
	p.stdout.until(t, 1, `"process":"a"`)

	execute(t, pool, "ALTER TABLE public.bookings RENAME TO moved")
	p.stderr.until(t, 1, "public.bookings")
	execute(t, pool, "ALTER TABLE public.moved RENAME TO bookings")
	insert(t, pool, 1)
	p.stdout.until(t, 2, `"process":"a"`)

	execute(t, pool, "DELETE FROM public.cursor")
	p.stderr.until(t, 1, "its row was deleted while the process ran")
	p.stop()

	code, _, stderr := do(t, address, "run", "--drain", "-c", processes(t, map[string]string{"a": "stdout: {}"}))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "ordered-dispatcher process forget a")
	code, stdout, _ := do(t, address, "doctor", "-c", processes(t, map[string]string{"a": "stdout: {}"}))
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "the cursor's row was deleted")
}

func TestRun_SaysThatAnotherConfigurationRanBefore(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 3)
	first := file(t, "processes: {a: {start: beginning, source: {table: public.bookings}, sink: {stdout: {}}}}")
	second := file(t, "processes: {a: {source: {table: public.bookings, where: id > 1}, sink: {webhook: {url: 'http://127.0.0.1:1/CANARY', secret: CANARY-of-thirty-two-bytes-xxxxxx}}}}")
	code, _, stderr := do(t, address, "run", "--drain", "-c", first)
	require.Zero(t, code)
	require.NotContains(t, stderr, "the configuration has changed")

	p := start(t, address, "run", "-c", second)
	p.stderr.until(t, 1, "the configuration has changed: ")
	insert(t, pool, 1)
	p.stderr.until(t, 1, "delivery failed")
	require.Contains(t, p.stderr.String(), `source.where was \"\" and is \"id > 1\" here`)
	p.stop()
	code, stdout, _ := do(t, address, "doctor", "-c", first)
	require.Zero(t, code, stdout)
	require.Contains(t, stdout, "with another configuration")

	code, stdout, _ = do(t, address, "status", "-c", second, "--json")
	require.Zero(t, code)
	require.NotContains(t, stdout+p.stderr.String(), "CANARY")
	require.NotContains(t, text(t, pool, "SELECT string_agg(detail::text, '') FROM public.cursor_event"), "CANARY")
}

// A receiver that sends more than it was asked for, and echoes the secret in it:
// net/http has a word to say about that, to nobody in particular.
func TestRun_LogsNothingThatAReceiverSendsUnasked(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 3)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n\x1b[31m \"CANARY\" of the receiver")
	}))
	defer receiver.Close()
	code, _, stderr := do(t, address, "run", "--drain", "-c", processes(t, map[string]string{"a": "webhook: {url: '" + receiver.URL + "'}"}))
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "Unsolicited response received on idle HTTP channel starting with …")
	require.NotContains(t, stderr, "CANARY")
	for line := range strings.Lines(stderr) {
		require.True(t, json.Valid([]byte(line)), line)
	}
}

func TestDrain_EndsWhereTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	config := processes(t, map[string]string{"a": "stdout: {}"})
	for name, c := range map[string]struct {
		change func(*url.URL)
		want   []string
	}{
		"a user that does not exist": {
			func(u *url.URL) { u.User = url.UserPassword("od_nobody", "CANARY") },
			[]string{"SQLSTATE 28", "; correct user and password in the connection string, or let the user in (pg_hba.conf)"},
		},
		"no such database": {
			func(u *url.URL) { u.Path = "/od_nowhere" },
			[]string{"SQLSTATE 3D000", "; correct the database in the connection string, or create it"},
		},
		"no such host": {
			func(u *url.URL) { u.Host = "od-nowhere.invalid:5432" },
			[]string{"no such host", "; start the server, or correct host and port in the connection string"},
		},
		"no tables": {
			func(*url.URL) {},
			[]string{"SQLSTATE 42P01", "; create the tables with `ordered-dispatcher migrate up -c FILE`, or name the schema that has them with -c or --schema"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(pgtest.URL(t))
			require.NoError(t, err)
			c.change(u)
			code, _, stderr := do(t, u.String(), "run", "--drain", "-c", config)
			require.Equal(t, 1, code, stderr)
			last := strings.TrimSpace(stderr)
			last = last[strings.LastIndex(last, "\n")+1:]
			for _, want := range c.want {
				require.Contains(t, last, want)
			}
			require.NotContains(t, stderr, "CANARY")
		})
	}
}

func TestDrain_WaitsForADatabaseThatIsDown(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	prepare(t, server.URL(), 2)
	require.NoError(t, server.StopFast(context.Background()))
	p := start(t, server.URL(), "run", "--drain", "-c", processes(t, map[string]string{"a": "stdout: {}"}))
	p.stderr.until(t, 1, "cannot work; trying again")
	require.NoError(t, server.Restart(context.Background()))
	require.Zero(t, p.wait())
	require.Equal(t, []string{"1", "2"}, ids(t, p.stdout.String()))
}
