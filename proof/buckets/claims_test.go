package buckets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/claimcheck"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
)

// world is an outbox whose large payloads are in a bucket, and a receiver.
type world struct {
	t       *testing.T
	address string
	pool    *pgxpool.Pool
	store   *store
	box     *outbox.Outbox
	server  *httptest.Server

	mu  sync.Mutex
	got []string
}

func newWorld(t *testing.T) *world { return worldWith(t, newStore(t)) }

func worldWith(t *testing.T, s *store) *world {
	t.Helper()
	w := &world{t: t, address: pgtest.URL(t), store: s}
	w.pool = pgtest.Pool(t, w.address, pgtest.PoolConfig{})
	var err error
	w.box, err = outbox.New(outbox.Config{ClaimAbove: 100, Claims: claimcheck.New(w.store.open())})
	require.NoError(t, err)
	pgtest.Exec(t, w.pool, w.box.SQL())
	must(t, w.address, "migrate", "up")
	w.server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.got = append(w.got, string(body))
	}))
	t.Cleanup(w.server.Close)
	return w
}

func (w *world) received() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.got...)
}

// payload is a large one.
func payload(n int) string { return fmt.Sprintf(`{"n":%d,"x":%q}`, n, strings.Repeat("long ", 1000)) }

var errUndone = errors.New("undone")

// add commits records, or rolls them back with errUndone.
func (w *world) add(end error, payloads ...string) {
	w.t.Helper()
	err := pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		for _, p := range payloads {
			if err := w.box.Add(w.t.Context(), tx, outbox.Record{Type: "a", Payload: json.RawMessage(p)}); err != nil {
				return err
			}
		}
		return end
	})
	require.ErrorIs(w.t, err, end)
}

// object is the name of the object of a row, from 1 on.
func (w *world) object(row int) string {
	w.t.Helper()
	return pgtest.Value[string](w.t, w.pool, "SELECT headers ->> 'claim-check' FROM public.outbox WHERE id = $1", row)
}

// config is the configuration of the process a, whose claims are in a bucket.
func (w *world) config(claims, more string) string {
	return file(w.t, fmt.Sprintf("processes: {a: {source: {table: public.outbox, preset: outbox}, sink: {webhook: {url: '%s', timeout: 1s}}, "+
		"start: beginning, poll: 20ms, claims: '%s', retry: {initial: 10ms, max: 100ms}%s}}", w.server.URL, claims, more))
}

func TestClaims_APayloadInABucketReachesTheReceiver(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s *store) {
		w := worldWith(t, s)
		w.add(nil, payload(1), `{"n":2}`, payload(3))
		w.add(errUndone, payload(4))
		require.Len(t, w.store.names(), 3, "two of rows, and an orphan")
		require.NotContains(t, pgtest.Value[string](t, w.pool, "SELECT string_agg(payload::text, '') FROM public.outbox"), "long")

		config := w.config(w.store.url(), "")
		require.Contains(t, must(t, w.address, "check", "-c", config), "the file is valid")
		must(t, w.address, "doctor", "-c", config)
		must(t, w.address, "run", "--drain", "-c", config)
		got := w.received()
		require.Len(t, got, 3)
		for i, want := range []string{payload(1), `{"n":2}`, payload(3)} {
			require.JSONEq(t, want, got[i])
		}

		removed, err := claim.Collect(t.Context(), claimcheck.New(w.store.open()), -time.Minute, func(ctx context.Context, names []string) ([]string, error) {
			return pgtest.Value[[]string](t, w.pool, "SELECT array_agg(headers ->> 'claim-check') FROM public.outbox WHERE headers ->> 'claim-check' = ANY ($1)", names), nil
		})
		require.NoError(t, err)
		require.Equal(t, 1, removed.Objects)
		require.ElementsMatch(t, []string{w.object(1), w.object(3)}, w.store.names())
	})
}

// The program of docs/producers.md keeps the rules that the page has for all languages.
func TestClaims_TheDispatcherResolvesWhatTheProgramOfThePageWrote(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/producers.md")
	require.NoError(t, err)
	_, program, found := strings.Cut(string(page), "```python\nimport hashlib\n")
	require.True(t, found)
	program, _, _ = strings.Cut(program, "```")
	w := newWorld(t)
	const client = `boto3.client("s3")`
	require.Contains(t, program, client)
	program = "import hashlib\n" + strings.Replace(program, client, fmt.Sprintf(`boto3.client("s3", endpoint_url=%q, region_name="eu-central-1")`, w.store.server.URL), 1)
	for _, document := range []string{`{"id":"7","text":"` + strings.Repeat("long ", 1000) + `"}`, `{"id":"8","text":"\u00e9"}`} {
		command := exec.CommandContext(t.Context(), brokertest.Python(t, "boto3", "psycopg"), "-c", program)
		command.Stdin = strings.NewReader(document)
		noProfile := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AWS_PROFILE=") }) // boto3 looks for one named ""
		command.Env = append(noProfile, "DATABASE_URL="+w.address, "BUCKET="+bucketName)
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	require.ElementsMatch(t, []string{w.object(1), w.object(2)}, w.store.names())
	must(t, w.address, "run", "--drain", "-c", w.config(w.store.url(), ""))
	got := w.received()
	require.Len(t, got, 2)
	require.Contains(t, got[0], "long long")
	require.JSONEq(t, `{"id":"8","text":"é"}`, got[1])
}

// Each object is wrong in a way that shows, and the process halts at its record.
func TestClaims_AnObjectThatIsMissingOrAlteredIsTheRecordsFailure(t *testing.T) {
	t.Parallel()
	const altered = "the object is not the one that was stored: its size or SHA-256 differs"
	for name, c := range map[string]struct {
		change func(t *testing.T, w *world)
		want   string
	}{
		"missing":   {func(t *testing.T, w *world) { require.NoError(t, w.store.open().Delete(t.Context(), w.object(2))) }, "the object is missing from its store"},
		"other":     {func(t *testing.T, w *world) { w.overwrite(strings.Replace(payload(2), "2", "7", 1)) }, altered},
		"truncated": {func(t *testing.T, w *world) { w.overwrite(payload(2)[:100]) }, altered},
		"longer":    {func(t *testing.T, w *world) { w.overwrite(payload(2) + " ") }, altered},
		"empty":     {func(t *testing.T, w *world) { w.overwrite("") }, altered},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add(nil, payload(1), payload(2), payload(3))
			c.change(t, w)
			code, _, stderr := do(t, w.address, "run", "--drain", "-c", w.config(w.store.url(), ""))
			require.Equal(t, 3, code, stderr)
			require.Contains(t, stderr, "resolve its claim check "+w.object(2)+": "+c.want)
			require.Len(t, w.received(), 1, "nothing passes the record")
		})
	}
}

// overwrite changes the object of row 2.
func (w *world) overwrite(text string) {
	w.t.Helper()
	require.NoError(w.t, w.store.open().WriteAll(w.t.Context(), w.object(2), []byte(text), nil))
}

// The process has dead letters, and makes none.
func TestClaims_AStoreThatIsAwayIsNotTheRecords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault  fault
		bucket string
		want   string
	}{
		"refuses us":   {refusing(http.StatusForbidden, "AccessDenied"), bucketName, "AccessDenied"},
		"overloaded":   {refusing(http.StatusServiceUnavailable, "SlowDown"), bucketName, "SlowDown"},
		"hangs":        {hanging, bucketName, "context deadline exceeded"},
		"breaks off":   {breaking, bucketName, "unexpected EOF"},
		"no bucket":    {nil, "other", "the bucket cannot be listed, or does not exist: "},
		"busy":         {getsBusy, bucketName, "the bucket lists the object, and does not return it"},
		"no such key?": {getsRefused, bucketName, "the bucket lists the object, and does not return it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add(nil, payload(1), payload(2))
			w.store.behave(c.fault)
			config := w.config(w.store.of(c.bucket), ", on_poison: dead_letter")
			stop := w.run(config)
			w.awaitFailure(c.want)
			require.Empty(t, w.received())

			w.store.behave(nil)
			if c.bucket != bucketName {
				stop()
				stop = w.run(w.config(w.store.url(), ", on_poison: dead_letter"))
			}
			require.Eventually(t, func() bool { return len(w.received()) == 2 }, patience, tick)
			stop()
			require.JSONEq(t, payload(1), w.received()[0])
			require.Zero(t, pgtest.Value[int](t, w.pool, "SELECT count(*) FROM public.dead_letter"))
		})
	}
}

// A server that nothing listens for, and one that comes back.
func TestClaims_AServerThatIsDownIsNotTheRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(nil, payload(1))
	config := w.config("s3://kept?region=eu-central-1&use_path_style=true&endpoint=http%3A%2F%2F127.0.0.1%3A1", "")
	stop := w.run(config)
	w.awaitFailure("connect: connection refused")
	stop()
	require.NotContains(t, must(t, w.address, "status", "a"), "halted")
	code, stdout, _ := do(t, w.address, "doctor", "-c", config)
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "the store of claim checks, s3://kept?region=eu-central-1&use_path_style=true&endpoint=http%3A%2F%2F127.0.0.1%3A1, cannot be opened, so records that have one wait")
	must(t, w.address, "run", "--drain", "-c", w.config(w.store.url(), ""))
	require.Len(t, w.received(), 1)
}

// getsBusy has no time for objects. The driver takes the number in the request's id for the status of a redirect, and
// reports that there is no bucket.
func getsBusy(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet || r.URL.Query().Has("list-type") {
		return false
	}
	refuse(w, http.StatusServiceUnavailable, "SlowDown")
	return true
}

// getsRefused answers as if there were no object, as S3 does for one in cold storage.
func getsRefused(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet || r.URL.Query().Has("list-type") {
		return false
	}
	refuse(w, http.StatusForbidden, "ObjectNotInActiveTierError")
	return true
}

// awaitFailure waits until the failure of the process has a text. It is an outage, and the process is not halted.
func (w *world) awaitFailure(text string) {
	w.t.Helper()
	const failureSQL = "SELECT coalesce((SELECT state || ' ' || coalesce(failed_class, '') || ' ' || coalesce(failed_error, '') FROM public.cursor), '')"
	failure := ""
	for end := time.Now().Add(patience); !strings.Contains(failure, text); time.Sleep(tick) {
		require.True(w.t, time.Now().Before(end), "%q is not in %q", text, failure)
		failure = pgtest.Value[string](w.t, w.pool, failureSQL)
	}
	require.True(w.t, strings.HasPrefix(failure, "running unreached resolve its claim check "+w.object(1)+": the store failed: "), failure)
	_, status, _ := do(w.t, w.address, "status", "a")
	require.Contains(w.t, status, "the store failed")
}

// run starts the daemon until the returned function is called.
func (w *world) run(config string) (stop func()) {
	w.t.Helper()
	path, err := program()
	require.NoError(w.t, err)
	cmd := exec.Command(path, "run", "-c", config)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+w.address, "COLUMNS=9999")
	var log strings.Builder
	cmd.Stderr = &log
	require.NoError(w.t, cmd.Start())
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		err := cmd.Wait()
		require.NoError(w.t, err, log.String())
		require.NotContains(w.t, log.String(), "CANARY")
	})
	w.t.Cleanup(stop)
	return stop
}
