package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

var quiet = slog.New(slog.DiscardHandler)

const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// post is a request that came.
type post struct {
	header http.Header
	body   []byte
}

// postbox is the receiver: a handler that loses every fifth answer, and remembers each request.
type postbox struct {
	handler http.Handler

	mu    sync.Mutex
	posts []post
}

func (p *postbox) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.posts = append(p.posts, post{req.Header.Clone(), body})
	lost := len(p.posts)%5 == 0
	p.mu.Unlock()
	req.Body = io.NopCloser(bytes.NewReader(body))
	if !lost {
		p.handler.ServeHTTP(w, req)
		return
	}
	p.handler.ServeHTTP(httptest.NewRecorder(), req)
	panic(http.ErrAbortHandler)
}

func (p *postbox) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.posts)
}

// again sends a request once more, as a network that kept it does.
func (p *postbox) again(i int) int {
	p.mu.Lock()
	one := p.posts[i]
	p.mu.Unlock()
	req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(one.body))
	req.Header = one.header
	answer := httptest.NewRecorder()
	p.handler.ServeHTTP(answer, req)
	return answer.Code
}

// Producers commit and roll back, workers take over from each other, answers are lost, and old requests come again. Each
// committed record has its effect once, in order.
func TestBothEnds_EachCommittedRecordHasItsEffectOnceInOrder(t *testing.T) {
	t.Parallel()
	const producers, transactions, workers = 4, 25, 6
	address, target := pgtest.URL(t), made(t)
	pool := pgtest.Pool(t, address, pgtest.PoolConfig{})
	box := box(t, false)
	o, err := outbox.New(outbox.Config{})
	require.NoError(t, err)
	pgtest.Exec(t, pool, o.SQL())
	_, err = migrations.Up(t.Context(), migrations.Config{ConnString: address})
	require.NoError(t, err)
	handler, err := box.Handler(target, inbox.HandlerConfig{Secret: secret, Logger: quiet}, func(ctx context.Context, tx pgx.Tx, r inbox.Request) error {
		_, err := tx.Exec(ctx, "INSERT INTO public.effect (key) VALUES ($1)", r.Type+" "+r.Key+" "+string(r.Body))
		return err
	})
	require.NoError(t, err)
	receiver := &postbox{handler: handler}
	server := httptest.NewServer(receiver)
	t.Cleanup(server.Close)

	var group sync.WaitGroup
	for p := range producers {
		group.Go(func() { produce(t, pool, p, transactions) })
	}
	for i := range workers - 1 {
		before := receiver.count()
		work(t, pool, server.URL, i, func() bool { return receiver.count() >= before+10 })
	}
	group.Wait()
	const wantSQL = `SELECT string_agg(type || ' ' || key || ' ' || payload::text, E'\n' ORDER BY created_at, id) FROM public.outbox`
	const gotSQL = `SELECT coalesce(string_agg(key, E'\n' ORDER BY n), '') FROM public.effect`
	want := pgtest.Value[string](t, pool, wantSQL)
	work(t, pool, server.URL, workers, func() bool { return pgtest.Value[string](t, target, gotSQL) == want })
	require.Equal(t, http.StatusOK, receiver.again(0), "a duplicate, although its worker has been superseded")
	require.Equal(t, http.StatusOK, receiver.again(receiver.count()-1), "a duplicate")
	require.Equal(t, want, pgtest.Value[string](t, target, gotSQL))
	require.Equal(t, producers*transactions*2, pgtest.Value[int](t, target, "SELECT count(*) FROM public.effect"))
	require.Greater(t, receiver.count(), producers*transactions*2, "some came more than once")
}

// produce commits transactions of two records each, and rolls back one more of each.
func produce(t *testing.T, pool *pgxpool.Pool, producer, transactions int) {
	undone := errors.New("undone")
	for i := range transactions {
		for _, end := range []error{nil, undone} {
			err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				aggregate := fmt.Sprintf("%d-%d", producer, i)
				return errors.Join(end, outbox.Add(t.Context(), tx,
					outbox.Record{Type: "made", AggregateID: aggregate, Payload: map[string]bool{"undone": end != nil}},
					outbox.Record{Type: "paid", AggregateID: aggregate, Payload: 12.5}))
			})
			if !errors.Is(err, end) || end == nil && err != nil {
				t.Errorf("produce: %v", err)
			}
		}
	}
}

// work runs a worker until done says so.
func work(t *testing.T, pool *pgxpool.Pool, url string, number int, done func() bool) {
	t.Helper()
	store, err := cursor.NewStore(pool, cursor.Config{Worker: fmt.Sprint("worker-", number)})
	require.NoError(t, err)
	source, err := table.New(pool, table.Config{Table: "public.outbox", Preset: table.Outbox, Logger: quiet})
	require.NoError(t, err)
	sink, err := webhook.New(webhook.Config{URL: url, Secret: secret})
	require.NoError(t, err)
	process, err := processor.New(processor.Config{
		Process: "bookings", Store: store, Source: source, Start: processor.Beginning, Logger: quiet,
		Dispatch: processor.Each(sink), Retry: processor.Retry{Initial: 10 * time.Millisecond},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() { _ = process.Run(ctx) })
	require.Eventually(t, done, time.Minute, 20*time.Millisecond)
	cancel()
	group.Wait()
}
