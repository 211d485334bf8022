package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// The tokens of the file.
const (
	readToken    = "read-8c1f5b7a90d24e6fb3a1c2d4"
	operateToken = "operate-4f2a9c7e1b8d4d6c9e0f1a2b"
)

// world is a database, a receiver and a daemon with its console.
type world struct {
	t        *testing.T
	pool     *pgxpool.Pool
	receiver *receiver
	url      string
	file     string
	log      *journal
}

// process is one of the file: its own table, and the settings of its YAML after the sink.
type process struct {
	name, table, rest string
}

// newWorld runs a daemon with processes.
func newWorld(t *testing.T, processes ...process) *world {
	t.Helper()
	w := &world{t: t, pool: pgtest.Database(t), receiver: newReceiver(t), log: &journal{}}
	var y strings.Builder
	fmt.Fprintf(&y, "database: ${DATABASE_URL}\nadmin:\n  read_tokens: {grace: %q}\n  operate_tokens: {ada: %q}\nprocesses:\n", readToken, operateToken)
	for _, p := range processes {
		w.table(p.table)
		name, err := json.Marshal(p.name)
		require.NoError(t, err)
		fmt.Fprintf(&y, "  %s:\n    source: {table: public.%s, columns: {key: customer, type: kind, payload: payload}}\n    sink: {webhook: {url: %q}}\n    start: beginning\n    poll: 50ms\n%s", name, p.table, w.receiver.url+"/"+p.table, p.rest)
	}
	w.file = filepath.Join(t.TempDir(), "dispatcher.yaml")
	require.NoError(t, os.WriteFile(w.file, []byte(y.String()), 0o600))
	w.command("migrate", "up")
	w.run()
	return w
}

// table makes a table to deliver from, if there is none.
func (w *world) table(name string) {
	w.t.Helper()
	pgtest.Exec(w.t, w.pool, fmt.Sprintf(`
		CREATE TABLE IF NOT EXISTS public.%[1]s (
			id         text PRIMARY KEY,
			created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
			customer   text NOT NULL,
			kind       text NOT NULL DEFAULT 'created',
			payload    jsonb NOT NULL DEFAULT '{}'
		);
		CREATE INDEX IF NOT EXISTS %[1]s_order ON public.%[1]s (created_at, id COLLATE "C");`, name))
}

// insert adds a row.
func (w *world) insert(table, id, customer, payload string) {
	w.t.Helper()
	pgtest.Exec(w.t, w.pool, fmt.Sprintf("INSERT INTO public.%s (id, customer, payload) VALUES ($1, $2, $3)", table), id, customer, payload)
}

// daemon is the program, built once for all tests.
var daemon = sync.OnceValues(func() (string, error) {
	directory, err := os.MkdirTemp("", "console")
	if err != nil {
		return "", err
	}
	atEnd = append(atEnd, func() { os.RemoveAll(directory) })
	path := filepath.Join(directory, "ordered-dispatcher")
	out, err := exec.Command("go", "build", "-o", path, "github.com/ordered-dispatcher/ordered-dispatcher/cmd/ordered-dispatcher").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the daemon: %w\n%s", err, out)
	}
	return path, nil
})

func (w *world) prepared(args ...string) *exec.Cmd {
	w.t.Helper()
	path, err := daemon()
	require.NoError(w.t, err)
	cmd := exec.Command(path, append(args, "-c", filepath.Base(w.file))...)
	cmd.Dir = filepath.Dir(w.file) // what it prints about the file has no path of this machine
	cmd.Env = append(os.Environ(), "DATABASE_URL="+pgtest.URL(w.t))
	return cmd
}

// command runs a command to its end.
func (w *world) command(args ...string) {
	w.t.Helper()
	out, err := w.prepared(args...).CombinedOutput()
	require.NoError(w.t, err, string(out))
}

// run starts the daemon, and waits until it serves its pages. It is stopped when the test ends.
func (w *world) run() {
	w.t.Helper()
	cmd := w.prepared("run", "--listen", "127.0.0.1:0", "--grace", "1s")
	cmd.Stdout, cmd.Stderr = w.log, w.log
	require.NoError(w.t, cmd.Start())
	w.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if w.t.Failed() {
			w.t.Log(w.log.String())
		}
	})
	require.Eventually(w.t, func() bool { w.url = w.log.address(); return w.url != "" }, patience, 10*time.Millisecond)
}

// journal keeps what the daemon logs.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// address is the one on which the daemon says that it serves; "" before.
func (j *journal) address() string {
	for line := range strings.Lines(j.String()) {
		var entry struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &entry) == nil && strings.HasPrefix(entry.Msg, "serving") {
			return "http://" + entry.Address
		}
	}
	return ""
}

// receiver is a web server to which the daemon delivers. It refuses what the test says.
type receiver struct {
	url string

	mu      sync.Mutex
	refused map[string]string // by a part of the body: the answer
	away    map[string]bool   // by path: it answers 503
	got     []string          // bodies that were accepted
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{refused: map[string]string{}, away: map[string]bool{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	text, err := io.ReadAll(q.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away[strings.TrimPrefix(q.URL.Path, "/")] {
		http.Error(w, "the shelf is closed for stocktaking", http.StatusServiceUnavailable)
		return
	}
	for part, answer := range r.refused {
		if strings.Contains(string(text), part) {
			http.Error(w, answer, http.StatusUnprocessableEntity)
			return
		}
	}
	r.got = append(r.got, string(text))
}

// refuse answers 422 to bodies that contain a text.
func (r *receiver) refuse(part, answer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused[part] = answer
}

// accept ends a refusal.
func (r *receiver) accept(part string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.refused, part)
}

func (r *receiver) close(table string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away[table] = true
}

// bodies are those that were accepted and contain a text, in order.
func (r *receiver) bodies(part string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, body := range r.got {
		if strings.Contains(body, part) {
			all = append(all, body)
		}
	}
	return all
}

// eventually waits for something outside of the browser.
func (w *world) eventually(holds func() bool) {
	w.t.Helper()
	require.Eventually(w.t, holds, patience, 20*time.Millisecond)
}

// anonymous opens a tab without a login.
func (w *world) anonymous() *tab { return newTab(w.t, w.url) }

// ada opens a tab, and logs in as somebody who may decide.
func (w *world) ada() *tab {
	w.t.Helper()
	p := newTab(w.t, w.url)
	p.logIn(operateToken)
	return p
}

func (p *tab) logIn(token string) {
	p.t.Helper()
	p.open("/login")
	p.enter("#token", token)
	p.leave(`form:has(#token) button`)
}

// leave clicks something that loads another page, and waits for it.
func (p *tab) leave(selector string) {
	p.t.Helper()
	p.do(mark)
	p.click(selector)
	p.do(chromedp.WaitReady(chromedp.CSS("html[data-ready]:not([data-old])")))
}
