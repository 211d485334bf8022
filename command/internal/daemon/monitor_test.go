package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

const patience = 2 * time.Minute

// monitored is a daemon that serves metrics and health.
type monitored struct {
	t    testing.TB
	url  string
	log  *buffer
	stop context.CancelFunc
	done chan error
}

// monitor runs a daemon until the test ends, or stop is called.
func monitor(t testing.TB, config daemon.Config) *monitored {
	t.Helper()
	return monitorAs(t, daemon.RunConfig{Config: config})
}

// monitorAs is monitor with more than a file.
func monitorAs(t testing.TB, config daemon.RunConfig) *monitored {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	m := &monitored{t: t, log: &buffer{}, stop: cancel, done: make(chan error, 1)}
	go func() {
		config.Grace, config.Listen, config.Stdout, config.Logger = patience, "127.0.0.1:0", io.Discard, daemon.NewLogger(m.log, slog.LevelDebug)
		m.done <- daemon.Run(ctx, config.LookEvery(100*time.Millisecond))
	}()
	t.Cleanup(func() {
		cancel()
		if t.Failed() {
			t.Log(m.log.String())
		}
	})
	require.Eventually(t, func() bool { m.url = "http://" + m.address(); return m.url != "http://" }, patience, time.Millisecond)
	return m
}

// address is in the log.
func (m *monitored) address() string {
	for line := range strings.Lines(m.log.String()) {
		var entry struct{ Address string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Address != "" {
			return entry.Address
		}
	}
	return ""
}

// get returns status and text of a route.
func (m *monitored) get(path string) (int, string) {
	m.t.Helper()
	response, err := http.Get(m.url + path)
	require.NoError(m.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(m.t, err)
	return response.StatusCode, string(body)
}

// answers waits until a route answers with a status and a text.
func (m *monitored) answers(path string, want int, contains string) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		status, text := m.get(path)
		return status == want && strings.Contains(text, contains)
	}, patience, 20*time.Millisecond, contains)
}

// series are the metrics of process a.
func (m *monitored) series() map[string]float64 { return m.seriesOf("a") }

// seriesOf are the metrics of a process, as name or name{value of the other label}.
func (m *monitored) seriesOf(wanted string) map[string]float64 {
	m.t.Helper()
	status, text := m.get("/metrics")
	require.Equal(m.t, http.StatusOK, status)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(m.t, err)
	all := map[string]float64{}
	for name, family := range families {
		short, ours := strings.CutPrefix(name, "ordered_dispatcher_")
		if !ours {
			continue
		}
		for _, metric := range family.GetMetric() {
			key, process := short, ""
			for _, label := range metric.GetLabel() {
				if label.GetName() == "process" {
					process = label.GetValue()
				} else {
					key += "{" + label.GetValue() + "}"
				}
			}
			if process == wanted {
				all[key] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return all
}

// until waits for a series to have a value.
func (m *monitored) until(series string, holds func(float64) bool) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		value, there := m.series()[series]
		return there && holds(value)
	}, patience, 20*time.Millisecond, series)
}

func is(want float64) func(float64) bool { return func(got float64) bool { return got == want } }

func positive(got float64) bool { return got > 0 }

// webhookTo is process a, which posts to a handler.
func webhookTo(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	receiver := httptest.NewServer(handler)
	t.Cleanup(receiver.Close)
	t.Cleanup(receiver.CloseClientConnections)
	return "  a: {source: {table: public.bookings}, sink: {webhook: {url: '" + receiver.URL + "', timeout: 1s}}, poll: 20ms, retry: {initial: 5ms, max: 10ms}}\n"
}

// keepWaiting keeps a call of a receiver waiting until a channel is closed, or the test ends: the Close of the receiver waits for
// all calls.
func keepWaiting(t testing.TB, until <-chan struct{}) {
	select {
	case <-until:
	case <-t.Context().Done():
	}
}

// What the receiver counted is what the metrics say (I12 of the invariants).
func TestMetrics_EqualWhatAReceiverCounted(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 50)
	var taken, refused, unanswered atomic.Int64
	var n atomic.Int64
	config := configure(t, pgtest.URL(t), webhookTo(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch n := n.Add(1); {
		case n%7 == 3:
			refused.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		case n == 20:
			unanswered.Add(1)
			<-r.Context().Done()
		default:
			taken.Add(1)
		}
	}))
	config.Processes[0].Sink.Config.(*webhook.Config).Timeout = 10 * time.Second // an answer that a busy machine gives later would count twice
	m := monitor(t, config)
	m.until("records_delivered_total", is(50))
	got := m.series()
	require.EqualValues(t, 50, taken.Load())
	require.EqualValues(t, taken.Load(), got["attempts_total{acknowledged}"])
	require.EqualValues(t, refused.Load(), got["attempts_total{transient}"])
	require.EqualValues(t, unanswered.Load(), got["attempts_total{unknown}"])
	require.Zero(t, got["attempts_total{permanent}"])
	require.EqualValues(t, n.Load(), got["attempt_duration_seconds"])
	require.EqualValues(t, 50, got["record_age_seconds"])
	require.EqualValues(t, 1, got["take_overs_total"])
	require.Zero(t, got["lease_losses_total"])
	require.Zero(t, got["database_errors_total"])

	m.until("sequence", is(50))
	m.until("lag_records", is(0))
	got = m.series()
	require.EqualValues(t, 1, got["epoch"])
	require.Zero(t, got["lag_seconds"])
	require.Zero(t, got["head_of_line_age_seconds"])
	require.Zero(t, got["halted_seconds"])
	require.InDelta(t, float64(time.Now().Unix()), got["last_look_timestamp_seconds"], patience.Seconds())
}

func TestMetrics_ShowAHaltAndStayAlive(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	m := monitor(t, configure(t, pgtest.URL(t), webhookTo(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Ordered-Sequence") == "2" {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	})))
	m.until("halted_seconds", positive)
	m.until("halts_total{permanent}", is(1))
	m.until("lag_records", is(2))
	m.until("lag_seconds", positive)
	got := m.series()
	require.EqualValues(t, 1, got["attempts_total{permanent}"])
	require.EqualValues(t, 1, got["records_delivered_total"])
	require.Positive(t, got["head_of_line_age_seconds"])
	require.Zero(t, got["paused"])
	status, text := m.get("/healthz")
	require.Equal(t, http.StatusOK, status, text)
	status, text = m.get("/readyz")
	require.Equal(t, http.StatusOK, status, text)

	exec(t, pool, "UPDATE od.cursor SET state = 'paused'")
	m.until("paused", is(1))
	m.until("halted_seconds", is(0))
	status, _ = m.get("/healthz")
	require.Equal(t, http.StatusOK, status)
}

// Delays of up to a second are waited out under the lease, and stand in no row.
func TestMetrics_ShowAHeadThatFailsWithShortDelays(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	var well atomic.Bool
	m := monitor(t, configure(t, pgtest.URL(t), webhookTo(t, func(w http.ResponseWriter, _ *http.Request) {
		if !well.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})))
	m.until("head_of_line_age_seconds", func(age float64) bool { return age > 1 })
	well.Store(true)
	m.until("head_of_line_age_seconds", is(0))
}

func TestMetrics_ShowWhatHoldsTheFence(t *testing.T) {
	t.Parallel()
	pool := database(t)
	m := monitor(t, configure(t, pgtest.URL(t), stdoutProcess))
	m.until("lag_records", is(0))
	tx := begin(t, pool, "INSERT INTO public.bookings DEFAULT VALUES")
	insert(t, pool, 1)
	m.until("fence_lag_seconds{writer}", func(lag float64) bool { return lag > 1 })
	m.until("lag_records", is(1))
	got := m.series()
	require.Zero(t, got["fence_lag_seconds{transaction}"])
	require.Zero(t, got["fence_lag_seconds{prepared}"])
	require.NoError(t, tx.Commit(t.Context()))
	m.until("fence_lag_seconds{writer}", is(0))
}

// TestMetrics_ASlowCountLeavesNobodyBlind: while the table cannot be counted, what
// becomes of the cursor's row is seen.
func TestMetrics_ASlowCountLeavesNobodyBlind(t *testing.T) {
	t.Parallel()
	pool := database(t)
	m := monitor(t, configure(t, pgtest.URL(t), stdoutProcess))
	m.until("lag_records", is(0))
	tx := begin(t, pool, "LOCK TABLE public.bookings IN ACCESS EXCLUSIVE MODE")
	counts := func() (began []time.Time) { // that wait for the table
		rows, err := pool.Query(t.Context(), `SELECT query_start FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '/* source.lag */%'`)
		require.NoError(t, err)
		began, err = pgx.CollectRows(rows, pgx.RowTo[time.Time])
		require.NoError(t, err)
		return began
	}
	paused := 0.0
	require.Eventually(t, func() bool {
		before := counts()
		if len(before) == 0 {
			return false
		}
		paused = 1 - paused
		exec(t, pool, fmt.Sprintf("UPDATE od.cursor SET state = CASE %v WHEN 1 THEN 'paused' ELSE 'running' END", paused))
		m.until("paused", is(paused))
		return slices.ContainsFunc(counts(), before[0].Equal)
	}, patience, 20*time.Millisecond, "a look ends while a count goes on")
	require.NoError(t, tx.Rollback(t.Context()))
	m.until("lag_records", is(0))
}

// TestMetrics_CountRecordsThatComeBehindTheCursor: they are never delivered. What
// else happens to rows that were is nothing to be told.
func TestMetrics_CountRecordsThatComeBehindTheCursor(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 20)
	taken := make(chan struct{})
	m := monitor(t, configure(t, pgtest.URL(t), webhookTo(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Ordered-Sequence") == "21" {
			keepWaiting(t, taken)
		}
	})))
	m.until("sequence", is(20))
	exec(t, pool, "UPDATE public.bookings SET customer = 'told' WHERE id < 15")
	exec(t, pool, "DELETE FROM public.bookings WHERE id < 5")
	insert(t, pool, 1)
	m.until("lag_records", is(1))
	close(taken)
	m.until("lag_records", is(0)) // so one is behind the cursor that stood at the end
	require.Zero(t, m.series()["late_records_total"])

	exec(t, pool, "INSERT INTO public.bookings (created_at) VALUES (now() - interval '1 minute')")
	m.until("late_records_total", is(1))
	require.Contains(t, m.log.String(), `"record_id":"22"`)
	exec(t, pool, "UPDATE od.cursor SET state = 'paused'")
	m.until("paused", is(1))
	exec(t, pool, "INSERT INTO public.bookings DEFAULT VALUES")
	m.until("lag_records", is(1))
	require.EqualValues(t, 1, m.series()["late_records_total"])
	exec(t, pool, "UPDATE public.bookings SET created_at = now() - interval '1 minute' WHERE id = 23")
	m.until("late_records_total", is(2))
	require.Contains(t, m.log.String(), `"record_id":"23"`)
}

func TestMetrics_CountDatabaseErrorsAndLeaseLosses(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	arrived, answer := make(chan struct{}, 10), make(chan struct{})
	m := monitor(t, configure(t, pgtest.URL(t), webhookTo(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		keepWaiting(t, answer)
	})))
	waittest.Receive(t, arrived, "the receiver is called")
	exec(t, pool, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'ordered-dispatcher lease %'")
	m.until("lease_losses_total", positive)
	close(answer)
	m.until("records_delivered_total", is(1))

	exec(t, pool, "ALTER TABLE public.bookings RENAME TO moved")
	m.until("database_errors_total", positive)
	exec(t, pool, "ALTER TABLE public.moved RENAME TO bookings")
}

// TestHealthz_NamesAProcessInWhichNothingHappens: idle, it lives, and so it does
// once it goes on.
func TestHealthz_NamesAProcessInWhichNothingHappens(t *testing.T) {
	t.Parallel()
	pool := database(t)
	answer := make(chan struct{})
	config := configure(t, pgtest.URL(t), webhookTo(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the end of the request goes unnoticed
		select {
		case <-answer:
		case <-r.Context().Done():
		}
	}))
	config.Processes[0].Sink.Config.(*webhook.Config).Timeout = patience
	m := monitorAs(t, daemon.RunConfig{Config: config}.SilentFor(time.Second))
	m.until("lag_records", is(0))
	m.answers("/healthz", http.StatusOK, "ok\n")
	insert(t, pool, 1)
	m.answers("/healthz", http.StatusServiceUnavailable, `process "a": its worker has done nothing for`)
	close(answer)
	m.answers("/healthz", http.StatusOK, "ok\n")
}

func TestReadyz_FollowsTheDatabase(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	pool := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	migrate(t, pool, server.URL())
	m := monitor(t, configure(t, server.URL(), stdoutProcess))
	m.answers("/readyz", http.StatusOK, "ok\n")
	looked := m.series()["last_look_timestamp_seconds"]

	require.NoError(t, server.StopFast(t.Context()))
	m.answers("/readyz", http.StatusServiceUnavailable, "the database cannot be asked: see the log")
	status, text := m.get("/healthz")
	require.Equal(t, http.StatusOK, status, text)
	require.GreaterOrEqual(t, m.series()["last_look_timestamp_seconds"], looked, "a scrape needs no database")
	require.NoError(t, server.Restart(t.Context()))
	pool.Reset() // its connections were ended with the server
	m.answers("/readyz", http.StatusOK, "ok\n")

	exec(t, pool, "ALTER TABLE od.cursor RENAME TO other")
	m.answers("/readyz", http.StatusServiceUnavailable, "the database cannot be asked: see the log")
	exec(t, pool, "ALTER TABLE od.other RENAME TO cursor")
	m.answers("/readyz", http.StatusOK, "ok\n")
	exec(t, pool, "ALTER DATABASE "+pool.Config().ConnConfig.Database+" SET default_transaction_read_only = on")
	require.NoError(t, server.StopFast(t.Context()))
	require.NoError(t, server.Restart(t.Context()))
	m.answers("/readyz", http.StatusServiceUnavailable, "the cursor tables cannot be written")
}

func TestMonitor_NeedsNoMoreThanTheGrants(t *testing.T) {
	t.Parallel()
	pool := confined(t)
	config := confinedConfig(t)
	role, config := granted(t, pool, config)
	m := monitor(t, config)
	for _, process := range config.Names() {
		require.Eventually(t, func() bool {
			series := m.seriesOf(process)
			_, counted := series["lag_records"]
			_, letters := series["dead_letters_open"]
			return counted && letters
		}, patience, 50*time.Millisecond, process)
	}
	m.answers("/readyz", http.StatusOK, "")
	exec(t, pool, fmt.Sprintf(`REVOKE INSERT ON od.cursor_event FROM "%s"`, role))
	m.answers("/readyz", http.StatusServiceUnavailable, "cannot be written")
	require.Contains(t, m.log.String(), "a grant is missing")
}

// A process that is paused reads nothing, so only an inspection finds out that it could not.
func TestReadyz_WaitsForEachSourceToBeInspected(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "INSERT INTO od.cursor (process_name, position, state) VALUES ('b', '', 'paused')")
	m := monitor(t, configure(t, pgtest.URL(t), stdoutProcess+"  b: {source: {table: public.missing}, sink: {stdout: {}}, poll: 20ms}\n"))
	m.answers("/readyz", http.StatusServiceUnavailable, `process "b": its source could not be inspected yet`)
	exec(t, pool, "CREATE TABLE public.missing (LIKE public.bookings INCLUDING ALL)")
	m.answers("/readyz", http.StatusOK, "ok\n")
	exec(t, pool, "DROP TABLE public.missing")
	m.until("records_delivered_total", is(0))
	status, text := m.get("/readyz")
	require.Equal(t, http.StatusOK, status, text, "once is enough")
}

func TestServe_AnswersUntilTheLastDelivery(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	arrived, answer := make(chan struct{}, 10), make(chan struct{})
	m := monitor(t, configure(t, pgtest.URL(t), webhookTo(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		keepWaiting(t, answer)
	})))
	waittest.Receive(t, arrived, "the receiver is called")
	status, text := m.get("/healthz")
	require.Equal(t, http.StatusOK, status, text)
	m.stop()
	require.Eventually(t, func() bool {
		status, text := m.get("/readyz")
		return status == http.StatusServiceUnavailable && text == "stopping\n"
	}, patience, time.Millisecond)
	require.Zero(t, m.series()["records_delivered_total"])
	close(answer)
	require.NoError(t, waittest.Receive(t, m.done, "the run ends"))
	_, err := http.Get(m.url + "/healthz")
	require.Error(t, err)
}

func TestServe_ExactRoutesToBeReadOnly(t *testing.T) {
	t.Parallel()
	database(t)
	m := monitor(t, configure(t, pgtest.URL(t), stdoutProcess))
	for _, c := range []struct {
		method, path, host string
		want               int
	}{
		{"GET", "/metrics", "", 200},
		{"HEAD", "/metrics", "", 200},
		{"GET", "/healthz", "", 200},
		{"GET", "/healthz?verbose", "", 200},
		{"POST", "/metrics", "", 405},
		{"DELETE", "/healthz", "", 405},
		{"OPTIONS", "/readyz", "", 405},
		{"GET", "/healthz/", "", 404},
		{"GET", "/metrics/x", "", 404},
		{"GET", "/", "", 404},
		{"GET", "/debug/pprof/", "", 404},
		{"GET", "/healthz", "localhost", 200},
		{"GET", "/healthz", "[::1]:9", 200},
		{"GET", "/healthz", "rebound.example:80", 421},
		{"GET", "/metrics", "rebound.example", 421},
	} {
		request, err := http.NewRequest(c.method, m.url+c.path, nil)
		require.NoError(t, err)
		request.Host = c.host
		response, err := http.DefaultTransport.RoundTrip(request)
		require.NoError(t, err)
		response.Body.Close()
		require.Equal(t, c.want, response.StatusCode, c)
		require.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
		require.Equal(t, "no-store", response.Header.Get("Cache-Control"))
	}
}

func TestServe_HealthIsAnsweredWhateverElseIsConnected(t *testing.T) {
	t.Parallel()
	database(t)
	m := monitor(t, configure(t, pgtest.URL(t), stdoutProcess))
	address := strings.TrimPrefix(m.url, "http://")
	var open []net.Conn
	for range 512 {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 1))
		require.NoError(t, err, "it is answered")
		open = append(open, c)
	}
	for range 10 {
		response, err := http.Get(m.url + "/healthz")
		require.NoError(t, err, "health is answered whatever else is connected")
		require.Equal(t, http.StatusOK, response.StatusCode)
		response.Body.Close()
		http.DefaultClient.CloseIdleConnections()
	}
	require.NoError(t, open[0].SetReadDeadline(time.Now().Add(patience)))
	_, err := io.Copy(io.Discard, open[0])
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the oldest one made room")
}

func TestListen_RefusesWhatItCannotOpen(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for address, want := range map[string]string{
		taken.Addr().String(): "address already in use; choose an address of this machine and a port that is free",
		"9090":                "write host:port, or :port for this machine only",
		"localhost":           "write host:port, or :port for this machine only",
		"127.0.0.1:port":      "choose an address of this machine and a port that is free",
		"192.0.2.1:9090":      "choose an address of this machine and a port that is free",
	} {
		err := daemon.Run(t.Context(), daemon.RunConfig{
			Config: daemon.Config{Database: "postgres://127.0.0.1:1/x"}, Listen: address, Stdout: io.Discard, Logger: slog.New(slog.DiscardHandler),
		})
		require.ErrorContains(t, err, want, address)
		require.Equal(t, daemon.ExitUsage, daemon.ExitCode(err))
	}
}
