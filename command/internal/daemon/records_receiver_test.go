package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

const receiverSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// receiver is a program that applies records by its inbox, refuses gaps, and can ask the daemon at url for what it lacks.
type receiver struct {
	pool *pgxpool.Pool
	box  *inbox.Inbox
	*inbox.Handler
	url    func() string // of the daemon
	refuse atomic.Bool   // the booking of "poison"
}

func newReceiver(t testing.TB, pool *pgxpool.Pool) *receiver {
	t.Helper()
	box, err := inbox.New(inbox.Config{Receiver: "billing", RefuseGaps: true})
	require.NoError(t, err)
	exec(t, pool, box.SQL()+"; CREATE TABLE public.effect (n bigint GENERATED ALWAYS AS IDENTITY, body text NOT NULL)")
	r := &receiver{pool: pool, box: box}
	r.Handler, err = box.Handler(pool, inbox.HandlerConfig{Secret: receiverSecret, Logger: slog.New(slog.DiscardHandler)},
		func(ctx context.Context, tx pgx.Tx, q inbox.Request) error { return r.effect(ctx, tx, q.Body) })
	require.NoError(t, err)
	return r
}

func (r *receiver) effect(ctx context.Context, tx pgx.Tx, body []byte) error {
	if r.refuse.Load() && bytes.Contains(body, []byte(`"poison"`)) {
		return inbox.ErrPoison
	}
	_, err := tx.Exec(ctx, "INSERT INTO public.effect (body) VALUES ($1)", string(body))
	return err
}

// fill asks for everything after a number, applies it, and notes that it has it: docs/wire.md describes this.
func (r *receiver) fill(ctx context.Context, process string, after int64) error {
	for from := ""; ; {
		query := url.Values{"after": {strconv.FormatInt(after, 10)}, "from": {from}, "limit": {"2"}}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url()+"/records/"+url.PathEscape(process)+"?"+query.Encode(), nil)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+listenToken)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		end, err := r.apply(ctx, response)
		if err != nil {
			return err
		}
		if end.From != "" {
			from = end.From
			continue
		}
		return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error { return r.note(ctx, tx, process, end) })
	}
}

// note notes where an answer ended: what comes next has the number after it, in that epoch or a later one.
func (r *receiver) note(ctx context.Context, tx pgx.Tx, process string, end lastLine) error {
	next := inbox.Message{Process: process, Origin: end.Origin, Epoch: end.Epoch, Sequence: end.Sequence + 1, DedupKey: "the next one"}
	if err := r.box.NoteEpoch(ctx, tx, next); err != nil {
		return err
	}
	return r.box.AcceptGap(ctx, tx, process, "", end.Sequence)
}

// lastLine is where an answer ends.
type lastLine struct {
	From, Origin    string
	Epoch, Sequence int64 `json:",string"`
}

// apply applies the records of an answer, one transaction for each.
func (r *receiver) apply(ctx context.Context, response *http.Response) (end lastLine, err error) {
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return end, errors.New(response.Status)
	}
	lines := bufio.NewReader(response.Body)
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return end, fmt.Errorf("the answer has no end: %w", err)
		}
		var line map[string]json.RawMessage
		if err := json.Unmarshal(text, &line); err != nil {
			return end, err
		}
		get := func(name string) (value string) {
			_ = json.Unmarshal(line[name], &value)
			return value
		}
		switch {
		case line["end"] != nil:
			return end, json.Unmarshal(line["end"], &end)
		case line["ordered-dedup-key"] == nil: // omitted: not sent to anybody
			continue
		}
		body := []byte(get("body"))
		if line["body_base64"] != nil {
			if body, err = base64.StdEncoding.DecodeString(get("body_base64")); err != nil {
				return end, err
			}
		}
		m, err := inbox.FromHeaders("", get)
		if err != nil {
			return end, err
		}
		err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
			_, err := r.box.Handle(ctx, tx, m, func(ctx context.Context, tx pgx.Tx) error { return r.effect(ctx, tx, body) })
			return err
		})
		if err != nil {
			return end, err
		}
	}
}

// restored puts the receiver's database back to the time when it had one record.
func (r *receiver) restored(t testing.TB) {
	t.Helper()
	exec(t, r.pool, `
		DELETE FROM public.effect WHERE n > 1;
		DELETE FROM public.inbox WHERE dedup_key NOT LIKE 'public.bookings/1/%';
		UPDATE public.inbox_process SET sequence = 1;`)
}

const (
	effectsSQL  = "SELECT coalesce(string_agg(body, E'\\n' ORDER BY n), '') FROM public.effect"
	bookingsSQL = "SELECT coalesce(string_agg(row_to_json(b)::text, E'\\n' ORDER BY id), '') FROM public.bookings b"
)

// has waits until the receiver has applied every booking, once and in order.
func (r *receiver) has(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool {
		return pgtest.Value[string](t, r.pool, effectsSQL) == pgtest.Value[string](t, r.pool, bookingsSQL)
	}, patience, 20*time.Millisecond, "the effects are not the bookings")
}

func toReceiver(url string) string {
	return "  a: {source: {table: public.bookings}, sink: {webhook: {url: '" + url + "', secret: " + receiverSecret + "}}, poll: 20ms}\n"
}

// A receiver that has lost records answers 428. It asks for them, applies them, and goes on after the operator's retry.
func TestRecords_AReceiverWithAGapAsksAppliesAndGoesOn(t *testing.T) {
	t.Parallel()
	pool := database(t)
	r := newReceiver(t, pool)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	config := configure(t, pgtest.URL(t), toReceiver(server.URL))
	m := asking(t, config)
	r.url = func() string { return m.url }
	insert(t, pool, 5)
	r.has(t)

	r.restored(t)
	insert(t, pool, 1)
	untilTrue(t, pool, "SELECT state = 'halted' FROM od.cursor")
	require.Contains(t, pgtest.Value[string](t, pool, "SELECT failed_error FROM od.cursor"), "428")
	require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM public.effect"))

	for range 2 { // the second time, all are duplicates
		require.NoError(t, r.fill(t.Context(), "a", 1))
		require.Equal(t, 5, count(t, pool, "SELECT count(*) FROM public.effect"))
	}
	_, err := operatorOf(t, config).Retry(t.Context(), cursor.Decision{Actor: "alice"})
	require.NoError(t, err)
	r.has(t)
	insert(t, pool, 2)
	r.has(t)
	require.Equal(t, 8, count(t, pool, "SELECT count(*) FROM public.effect"))
}

// A receiver whose database was put back to an earlier epoch knows the present one by the end of the answer. So it refuses
// a request of a worker that was superseded since.
func TestRecords_AfterTheEndALateRequestOfAnEarlierEpochIsRefused(t *testing.T) {
	t.Parallel()
	pool := database(t)
	r := newReceiver(t, pool)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	config := configure(t, pgtest.URL(t), toReceiver(server.URL))
	insert(t, pool, 2)
	require.NoError(t, drain(t, config))
	backup := count(t, pool, "SELECT epoch FROM public.inbox_process")
	m := asking(t, config)
	r.url = func() string { return m.url }
	insert(t, pool, 3)
	r.has(t)

	r.restored(t)
	exec(t, pool, fmt.Sprintf("UPDATE public.inbox_process SET epoch = %d", backup))
	require.NoError(t, r.fill(t.Context(), "a", 1))
	var stale *inbox.StaleError
	late := inbox.Message{Process: "a", Origin: pgtest.Value[string](t, pool, "SELECT origin::text FROM od.cursor"), Epoch: int64(backup), Sequence: 6, DedupKey: "skipped"}
	require.ErrorAs(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := r.box.Handle(t.Context(), tx, late, func(context.Context, pgx.Tx) error { return nil })
		return err
	}), &stale)
	insert(t, pool, 1)
	r.has(t)
}

// filling is a receiver that fills a gap at once, so that the process does not halt.
type filling struct {
	*receiver
	t    testing.TB
	gaps int
	mu   sync.Mutex
}

func (f *filling) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	require.NoError(f.t, err)
	for {
		req.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		f.receiver.ServeHTTP(answer, req)
		if answer.Code != http.StatusPreconditionRequired {
			w.WriteHeader(answer.Code)
			return
		}
		f.gaps++
		last, err := strconv.ParseInt(answer.Header().Get("Ordered-Sequence"), 10, 64)
		if err == nil {
			err = f.fill(req.Context(), req.Header.Get("Ordered-Process"), last)
		}
		if err != nil {
			http.Error(w, "a gap is to be filled first", http.StatusServiceUnavailable)
			return
		}
	}
}

func TestRecords_AReceiverFillsAGapBeforeItAnswers(t *testing.T) {
	t.Parallel()
	pool := database(t)
	f := &filling{receiver: newReceiver(t, pool), t: t}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	config := configure(t, pgtest.URL(t), toReceiver(server.URL))
	m := asking(t, config)
	f.url = func() string { return m.url }
	insert(t, pool, 5)
	f.has(t)
	f.restored(t)
	insert(t, pool, 3)
	f.has(t)
	require.Equal(t, "running", pgtest.Value[string](t, pool, "SELECT state FROM od.cursor"))
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Equal(t, 1, f.gaps)
}

// A dead letter was replayed after the backup from which the receiver's database was restored. Its effects are those that
// it had lost, in their order.
func TestRecords_AReplayAfterTheBackupIsFilledInItsOrder(t *testing.T) {
	t.Parallel()
	pool := database(t)
	f := &filling{receiver: newReceiver(t, pool), t: t}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	config := configure(t, pgtest.URL(t), strings.Replace(toReceiver(server.URL), "poll:", "on_poison: dead_letter, poll:", 1))
	m := asking(t, config)
	f.url = func() string { return m.url }
	f.refuse.Store(true)
	effects := func(ids string) {
		t.Helper()
		require.Eventually(t, func() bool {
			return pgtest.Value[string](t, pool, "SELECT coalesce(string_agg(body::json->>'id', ' ' ORDER BY n), '') FROM public.effect") == ids
		}, patience, 20*time.Millisecond, ids)
	}
	insert(t, pool, 1)
	exec(t, pool, "INSERT INTO public.bookings (customer) VALUES ('poison')")
	insert(t, pool, 2)
	effects("1 3 4")
	exec(t, pool, "CREATE TABLE public.backup AS SELECT * FROM public.effect; CREATE TABLE public.backup_inbox AS SELECT * FROM public.inbox; CREATE TABLE public.backup_process AS SELECT * FROM public.inbox_process")
	insert(t, pool, 1)
	effects("1 3 4 5")
	f.refuse.Store(false)
	replay(t, config, 1)
	insert(t, pool, 1)
	effects("1 3 4 5 2 6")

	exec(t, pool, `
		DELETE FROM public.effect WHERE n NOT IN (SELECT n FROM public.backup);
		TRUNCATE public.inbox, public.inbox_process;
		INSERT INTO public.inbox SELECT * FROM public.backup_inbox;
		INSERT INTO public.inbox_process SELECT * FROM public.backup_process;`)
	insert(t, pool, 1)
	effects("1 3 4 5 2 6 7")
}

// A client that does not read its answer has the one turn, for a minute at most.
func TestRecords_OneAnswerAtATimeAndBounded(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	exec(t, pool, "INSERT INTO public.bookings (customer) SELECT repeat('x', 1000000) FROM generate_series(1, 20)")
	require.NoError(t, drain(t, config))
	m := asking(t, config)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.url+"/records/a?after=0", nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+listenToken)
	first, err := (&http.Client{Transport: &http.Transport{}}).Do(request)
	require.NoError(t, err)
	response, _ := m.ask("Bearer "+listenToken, "/records/a?after=0")
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode)
	require.Equal(t, "1", response.Header.Get("Retry-After"))

	text, err := io.ReadAll(first.Body)
	require.NoError(t, err)
	require.NoError(t, first.Body.Close())
	page := parseShown(t, string(text))
	require.Len(t, page.lines, 17, "16 MiB, and one record more")
	require.NotEmpty(t, page.end["from"])
	require.Eventually(t, func() bool {
		response, text := m.ask("Bearer "+listenToken, "/records/a?after=0&from="+url.QueryEscape(page.end["from"].(string)))
		return response.StatusCode == http.StatusOK && len(parseShown(t, text).lines) == 3
	}, patience, 20*time.Millisecond)
}
