package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/admin"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/admin/visitor"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/stdout"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

const (
	schema   = "od"
	patience = time.Minute
)

// The tokens of the tests.
const (
	readToken    = "read-5f0d1c0f9a7e4b7b8b1f0c9d"
	operateToken = "operate-2c8e7d1f4a9b4c6d8e0f1a2b"
)

// logins are settings that most tests have.
const logins = "{read_tokens: {grafana: " + readToken + "}, operate_tokens: {alice: " + operateToken + "}}"

// database is migrated, and has a table of bookings with keys and payloads.
func database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Database(t)
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: pgtest.URL(t), Schema: schema})
	require.NoError(t, err)
	pgtest.Exec(t, pool, `
		CREATE TABLE public.bookings (
			id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
			customer text NOT NULL DEFAULT 'c',
			payload jsonb NOT NULL DEFAULT '{}'
		);
		CREATE UNIQUE INDEX ON public.bookings (created_at, id);
		CREATE INDEX ON public.bookings (customer);`)
	return pool
}

// insert adds n bookings of a customer. What they hold is a secret of the customer's.
func insert(t testing.TB, pool *pgxpool.Pool, customer string, n int) {
	t.Helper()
	pgtest.Exec(t, pool, `INSERT INTO public.bookings (customer, payload) SELECT $1, '{"card": "`+card+`"}' FROM generate_series(1, $2)`, customer, n)
}

const card = "4111-1111-canary"

const processA = "  a: {source: {table: public.bookings, columns: {key: customer, payload: payload}}, sink: {stdout: {}}, poll: 20ms, start: beginning}\n"

// site is a daemon with its console.
type site struct {
	t      testing.TB
	url    string
	log    *buffer
	out    *buffer
	config daemon.Config
	pool   *pgxpool.Pool
	stop   context.CancelFunc
	done   chan error
}

// open runs a daemon with settings of the console, until the test ends.
func open(t testing.TB, settings, processes string) *site {
	return openAt(t, "127.0.0.1:0", settings, processes)
}

func openAt(t testing.TB, listen, settings, processes string) *site {
	t.Helper()
	pool := database(t)
	return openWith(t, pool, listen, configure(t, settings, processes))
}

func openWith(t testing.TB, pool *pgxpool.Pool, listen string, config daemon.Config) *site {
	t.Helper()
	return openPages(t, pool, listen, config, pages)
}

// openStill is openAt with a clock that stands still: what counts within a minute counts on a busy machine, too.
func openStill(t testing.TB, listen, settings, processes string) *site {
	t.Helper()
	at := time.Now()
	return openServing(t, database(t), listen, configure(t, settings, processes), admin.ServeAt(pages, func() time.Time { return at }))
}

// openPages is openWith with pages of the caller's.
func openPages(t testing.TB, pool *pgxpool.Pool, listen string, config daemon.Config, pages func(*desk.Desk) http.Handler) *site {
	t.Helper()
	return openServing(t, pool, listen, config, admin.Serve(pages))
}

func openServing(t testing.TB, pool *pgxpool.Pool, listen string, config daemon.Config, serve daemon.Serve) *site {
	t.Helper()
	s := &site{t: t, log: &buffer{}, out: &buffer{}, pool: pool, config: config, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s.stop = cancel
	go func() {
		s.done <- daemon.Run(ctx, daemon.RunConfig{
			Config: s.config, Grace: time.Second, Listen: listen, Stdout: s.out, Logger: daemon.NewLogger(s.log, slog.LevelInfo), Serve: serve})
	}()
	t.Cleanup(func() {
		s.stop()
		require.NoError(t, <-s.done)
		if t.Failed() {
			t.Log(s.log.String())
		}
	})
	require.Eventually(t, func() bool { s.url = s.address(); return s.url != "" }, patience, time.Millisecond)
	require.Eventually(t, func() bool { return pgtest.Value[bool](t, s.pool, "SELECT EXISTS (SELECT FROM od.cursor)") }, patience, 5*time.Millisecond)
	return s
}

func configure(t testing.TB, settings, processes string) daemon.Config {
	t.Helper()
	text := "schema: " + schema + "\nadmin: " + settings + "\nprocesses:\n" + processes
	config, err := daemon.Parse("f.yaml", []byte(text), func(string) (string, bool) { return "", false }, kinds)
	require.NoError(t, err)
	config.Database = pgtest.URL(t)
	for name, hash := range config.Admin.Users {
		config.Admin.Users[name] = strings.Replace(hash, costOfTheFile, costOfTests, 1)
	}
	return config
}

var kinds = daemon.Kinds{Sinks: []sinks.Spec{stdout.Spec(), webhook.Spec()}}

// pages are those of the tests: one that any visitor who may look gets, and the form to log in.
func pages(*desk.Desk) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", page)
	mux.HandleFunc("/login", page)
	mux.HandleFunc("/live", live)
	mux.HandleFunc("POST /processes/a/decide", page)
	mux.HandleFunc("POST /find", page)
	mux.HandleFunc("GET /assets/app.js", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "0") })
	return mux
}

// address is in the log.
func (s *site) address() string {
	for line := range strings.Lines(s.log.String()) {
		var entry struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &entry) == nil && strings.HasPrefix(entry.Msg, "serving") {
			_, port, _ := strings.Cut(strings.TrimPrefix(entry.Address, "[::]"), ":")
			return "http://127.0.0.1:" + port
		}
	}
	return ""
}

// request is one that a test sends.
type request struct {
	method, path, body string
	header             map[string]string
	host               string
}

// answered is what came back.
type answered struct {
	status  int
	header  http.Header
	body    string
	cookies []*http.Cookie
}

func (s *site) send(q request) answered {
	s.t.Helper()
	if q.method == "" {
		q.method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(s.t.Context(), q.method, s.url+q.path, strings.NewReader(q.body))
	require.NoError(s.t, err)
	r.Host = q.host
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	require.NoError(s.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	a := answered{response.StatusCode, response.Header, string(body), response.Cookies()}
	check(s.t, r, a)
	return a
}

// as is a request with a token.
func as(token, method, path, body string) request {
	q := request{method: method, path: path, body: body, header: map[string]string{"Authorization": "Bearer " + token}}
	if body != "" {
		q.header["Content-Type"] = "application/json"
	}
	return q
}

// api returns what a route of the API answers to somebody with a token.
func api[T any](s *site, token, method, path string, body any) (result T) {
	s.t.Helper()
	var text []byte
	if body != nil {
		var err error
		text, err = json.Marshal(body)
		require.NoError(s.t, err)
	}
	a := s.send(as(token, method, path, string(text)))
	require.Equal(s.t, http.StatusOK, a.status, a.body)
	require.NoError(s.t, json.Unmarshal([]byte(a.body), &result))
	return result
}

// order is a decision from its preview to its end.
func (s *site) order(o desk.Order, reason string) desk.Decided {
	s.t.Helper()
	p := api[desk.Preview](s, operateToken, http.MethodPost, "/api/v1/preview", o)
	return api[desk.Decided](s, operateToken, http.MethodPost, "/api/v1/decide", map[string]any{"order": o, "reason": reason, "expect": p.Expect})
}

// buffer is written by one goroutine and read by another.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// page shows who the gate says is there.
func page(w http.ResponseWriter, r *http.Request) {
	v := visitor.Of(r.Context())
	_, _ = io.WriteString(w, v.Name+"\n"+v.CSRF+"\n"+v.LoginFailed)
}

// live is a stream that goes on until its context ends.
func live(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}
