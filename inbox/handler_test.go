package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/signature"
)

// nothing is an effect without a trace.
func nothing(context.Context, pgx.Tx, inbox.Request) error { return nil }

// signed returns a request of a sink with the secret of these tests.
func signed(t testing.TB, m inbox.Message, body string) *http.Request {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	for name, value := range map[string]string{
		"ordered-version": "1", "ordered-process": m.Process, "ordered-origin": m.Origin, "ordered-dedup-key": m.DedupKey, "webhook-id": m.DedupKey,
		"ordered-sequence": strconv.FormatInt(m.Sequence, 10), "ordered-epoch": strconv.FormatInt(m.Epoch, 10),
		"webhook-timestamp": strconv.FormatInt(time.Now().Unix(), 10),
	} {
		req.Header.Set(name, value)
	}
	if m.Replay {
		req.Header.Set("ordered-replay", "true")
	}
	keys, err := signature.Parse(secret)
	require.NoError(t, err)
	req.Header.Set("ordered-signature", keys.Ordered(signature.Message{Header: req.Header, Body: []byte(body)}))
	return req
}

func answerOf(h http.Handler, req *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, req)
	return answer
}

func handler(t testing.TB, db inbox.Beginner, config inbox.HandlerConfig, effect inbox.Effect) *inbox.Handler {
	t.Helper()
	i, err := inbox.New(inbox.Config{Receiver: "c"})
	require.NoError(t, err)
	if config.Logger == nil {
		config.Logger = quiet
	}
	h, err := i.Handler(db, config, effect)
	require.NoError(t, err)
	return h
}

// db is a database that no request may reach.
type db struct{}

func (db) BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error) {
	return nil, errors.New("a request has reached the database")
}

func TestHandler_NeedsASecretADatabaseAndAnEffect(t *testing.T) {
	t.Parallel()
	i := box(t, false)
	for name, c := range map[string]struct {
		db     inbox.Beginner
		config inbox.HandlerConfig
		effect inbox.Effect
		want   string
	}{
		"no secret":   {db{}, inbox.HandlerConfig{}, nothing, "Secret is missing: is its environment variable unset?"},
		"blank":       {db{}, inbox.HandlerConfig{Secret: " "}, nothing, "Secret is blank"},
		"both":        {db{}, inbox.HandlerConfig{Secret: secret, Unsigned: true}, nothing, "exclude each other"},
		"tolerance":   {db{}, inbox.HandlerConfig{Secret: secret, Tolerance: -time.Second}, nothing, "Tolerance is negative: -1s"},
		"bytes":       {db{}, inbox.HandlerConfig{Secret: secret, MaxBytes: -1}, nothing, "MaxBytes is negative: -1"},
		"no database": {nil, inbox.HandlerConfig{Secret: secret}, nothing, "the database is nil"},
		"no effect":   {db{}, inbox.HandlerConfig{Secret: secret}, nil, "the effect is nil"},
	} {
		_, err := i.Handler(c.db, c.config, c.effect)
		require.ErrorContains(t, err, c.want, name)
	}
	_, err := i.Handler(db{}, inbox.HandlerConfig{Unsigned: true}, nothing)
	require.NoError(t, err)
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestHandler_ReadsNoBodyOfARequestWithoutAFreshSignature(t *testing.T) {
	t.Parallel()
	h := handler(t, db{}, inbox.HandlerConfig{Secret: secret}, nothing)
	for want, change := range map[int]func(*http.Request){
		http.StatusUnauthorized:     func(r *http.Request) { r.Header.Del("ordered-signature") },
		http.StatusBadRequest:       func(r *http.Request) { r.Header.Add("ordered-epoch", "1") },
		http.StatusMethodNotAllowed: func(r *http.Request) { r.Method = http.MethodGet },
	} {
		req := signed(t, message(1, 1, "a"), "")
		change(req)
		req.Body = io.NopCloser(unread{t})
		require.Equal(t, want, answerOf(h, req).Code)
	}
	req := signed(t, message(1, 1, "a"), "")
	req.Header.Set("webhook-timestamp", "1")
	req.Body = io.NopCloser(unread{t})
	require.Equal(t, http.StatusUnauthorized, answerOf(h, req).Code)
}

func TestHandler_ShowsThatAPayloadIsNotWhole(t *testing.T) {
	t.Parallel()
	var got inbox.Request
	h := handler(t, made(t), inbox.HandlerConfig{Unsigned: true}, func(_ context.Context, _ pgx.Tx, r inbox.Request) error {
		got = r
		return nil
	})
	req := signed(t, message(1, 1, "a"), "{}")
	req.Header.Set("ordered-claim-check", "true")
	req.Header.Set("ordered-content-encoding", "zstd")
	require.Equal(t, http.StatusOK, answerOf(h, req).Code)
	require.True(t, got.ClaimCheck)
	require.Equal(t, "zstd", got.ContentEncoding)
}

// A probe or a health check is no record.
func TestHandler_TakesOnlyPOST(t *testing.T) {
	t.Parallel()
	h := handler(t, db{}, inbox.HandlerConfig{Secret: secret}, nothing)
	answer := answerOf(h, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?key=a", nil))
	require.Equal(t, http.StatusMethodNotAllowed, answer.Code)
	require.Equal(t, "POST", answer.Header().Get("Allow"))
}

func TestHandler_ABodyThatIsTooLargeIsTheRecordsFault(t *testing.T) {
	t.Parallel()
	h := handler(t, db{}, inbox.HandlerConfig{Secret: secret, MaxBytes: 5}, nothing)
	answer := answerOf(h, signed(t, message(1, 1, "a"), "123456"))
	require.Equal(t, http.StatusRequestEntityTooLarge, answer.Code)
	require.Equal(t, "inbox: the body is too large: it may have 5 bytes\n", answer.Body.String())
}

// With 400 it would become a dead letter, although nothing is wrong with it.
func TestHandler_ABodyThatDoesNotComeInWholeMayComeAgain(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(handler(t, db{}, inbox.HandlerConfig{Secret: secret}, nothing))
	server.Config.ReadTimeout = 300 * time.Millisecond
	server.Start()
	t.Cleanup(server.Close)
	for name, end := range map[string]func(*net.TCPConn) error{
		"cut off": (*net.TCPConn).CloseWrite,
		"slow":    func(*net.TCPConn) error { return nil },
	} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		req := signed(t, message(1, 1, "a"), `{"half":`)
		var head bytes.Buffer
		require.NoError(t, req.Header.Write(&head))
		_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n%s\r\n{\"half\":", &head)
		require.NoError(t, err)
		require.NoError(t, end(conn.(*net.TCPConn)))
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		line := make([]byte, len("HTTP/1.1 408"))
		_, err = io.ReadFull(conn, line)
		require.NoError(t, err, name)
		require.Equal(t, "HTTP/1.1 408", string(line), name)
	}
}

func TestHandler_LogsARecordThatWasNotApplied(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for _, c := range []struct {
		m      inbox.Message
		err    error
		status int
		log    string
	}{
		{message(1, 2, "a"), nil, 200, ""},
		{message(2, 2, "b"), errors.New("relation does not exist"), 503, `level=ERROR msg="the record was not applied" process=p sequence=2 epoch=2 dedup_key=b err="relation does not exist"`},
		{message(2, 2, "b"), fmt.Errorf("no account: %w", inbox.ErrPoison), 422, `level=ERROR msg="the record was not applied" process=p sequence=2 epoch=2 dedup_key=b err="no account: the record can never be applied"`},
		{message(2, 1, "b"), nil, 409, `level=WARN msg="the record was refused" process=p sequence=2 epoch=1 dedup_key=b err=`},
	} {
		var log bytes.Buffer
		config := inbox.HandlerConfig{Secret: secret, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		h := handler(t, pool, config, func(context.Context, pgx.Tx, inbox.Request) error { return c.err })
		answer := answerOf(h, signed(t, c.m, "{}"))
		require.Equal(t, c.status, answer.Code)
		require.Contains(t, log.String(), c.log)
		require.Equal(t, c.log == "", log.Len() == 0)
		require.NotContains(t, answer.Body.String(), "relation", "what failed here is not the sender's business")
	}
}

// A wrong secret is seen at the receiver, too. A health check is not logged.
func TestHandler_LogsARequestThatItRefuses(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*http.Request){
		`status=401 err="inbox: the signature is missing, wrong, or too far from the clock"`: func(r *http.Request) { r.Header.Set("ordered-epoch", "2") },
		`status=400 err="inbox: the request is no record: `:                                  func(r *http.Request) { r.Header.Add("ordered-epoch", "1") },
		`status=413 err="inbox: the body is too large`:                                       func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("123456")) },
		"": func(r *http.Request) { r.Method = http.MethodGet },
	} {
		var log bytes.Buffer
		h := handler(t, db{}, inbox.HandlerConfig{Secret: secret, MaxBytes: 5, Logger: slog.New(slog.NewTextHandler(&log, nil))}, nothing)
		req := signed(t, message(1, 1, "a"), "12345")
		change(req)
		require.NotEqual(t, http.StatusOK, answerOf(h, req).Code)
		if want == "" {
			require.Empty(t, log.String())
			continue
		}
		require.Contains(t, log.String(), `level=WARN msg="the request was refused" remote=192.0.2.1:1234 `+want)
		require.Equal(t, 1, strings.Count(log.String(), "\n"))
	}
}

// The worker before may still have a request on the wire.
func TestHandler_AFailedEffectLeavesALargerEpochNoted(t *testing.T) {
	t.Parallel()
	pool := made(t)
	var failure error
	h := handler(t, pool, inbox.HandlerConfig{Secret: secret}, func(ctx context.Context, tx pgx.Tx, r inbox.Request) error {
		_, err := tx.Exec(ctx, "INSERT INTO public.effect (key) VALUES ($1)", r.DedupKey)
		return errors.Join(err, failure)
	})
	require.Equal(t, 200, answerOf(h, signed(t, message(1, 1, "a"), "")).Code)
	failure = errors.New("busy")
	require.Equal(t, 503, answerOf(h, signed(t, message(2, 2, "c"), "")).Code)
	failure = nil
	require.Equal(t, 409, answerOf(h, signed(t, message(2, 1, "b"), "")).Code, "an operator skipped it")
	require.Equal(t, 200, answerOf(h, signed(t, message(2, 2, "c"), "")).Code)
	require.Equal(t, "a c", effects(t, pool))
}

// An effect that ignores an error of SQL leaves a transaction that cannot commit. A replay notes nothing after it.
func TestHandler_AnEffectThatHidesAnErrorIsNotAcknowledgedAndLeavesALargerEpochNoted(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for m, epoch := range map[inbox.Message]int{message(2, 2, "b"): 2, replay(2, 2, "b"): 1} {
		pgtest.Exec(t, pool, "TRUNCATE public.inbox, public.inbox_process")
		hides := false
		h := handler(t, pool, inbox.HandlerConfig{Secret: secret}, func(ctx context.Context, tx pgx.Tx, _ inbox.Request) error {
			if hides {
				_, _ = tx.Exec(ctx, "SELECT 1/0")
			}
			return nil
		})
		require.Equal(t, 200, answerOf(h, signed(t, message(1, 1, "a"), "")).Code)
		hides = true
		require.Equal(t, 503, answerOf(h, signed(t, m, "")).Code)
		require.Equal(t, 1, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.inbox"))
		require.Equal(t, epoch, pgtest.Value[int](t, pool, "SELECT epoch FROM public.inbox_process"))
	}
}

// The default of the role may be another one. Then two requests at once would end with a serialization failure.
func TestHandler_ItsTransactionsAreReadCommitted(t *testing.T) {
	t.Parallel()
	pool := made(t)
	pgtest.Exec(t, pool, "ALTER DATABASE "+pgtest.Value[string](t, pool, "SELECT quote_ident(current_database())")+" SET default_transaction_isolation = 'serializable'")
	pool.Reset() // a new session gets the default
	require.Equal(t, "serializable", pgtest.Value[string](t, pool, "SHOW transaction_isolation"))
	var level string
	h := handler(t, pool, inbox.HandlerConfig{Secret: secret}, func(ctx context.Context, tx pgx.Tx, _ inbox.Request) error {
		return tx.QueryRow(ctx, "SHOW transaction_isolation").Scan(&level)
	})
	require.Equal(t, 200, answerOf(h, signed(t, message(1, 1, "a"), "")).Code)
	require.Equal(t, "read committed", level)
}

// uncommitted is a database whose COMMIT fails.
type uncommitted struct{ *pgxpool.Pool }

func (u uncommitted) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	tx, err := u.Pool.BeginTx(ctx, options)
	return failing{tx}, err
}

type failing struct{ pgx.Tx }

func (f failing) Commit(ctx context.Context) error {
	return errors.Join(errors.New("the server is gone"), f.Rollback(ctx))
}

// What was refused was not noted either.
func TestHandler_ACommitThatFailsIsNoWordAboutTheRecord(t *testing.T) {
	t.Parallel()
	pool := made(t)
	require.Equal(t, 200, answerOf(handler(t, pool, inbox.HandlerConfig{Secret: secret}, nothing), signed(t, message(1, 2, "a"), "")).Code)
	h := handler(t, uncommitted{pool}, inbox.HandlerConfig{Secret: secret}, nothing)
	require.Equal(t, 503, answerOf(h, signed(t, message(2, 1, "b"), "")).Code)
	require.Equal(t, 409, answerOf(handler(t, pool, inbox.HandlerConfig{Secret: secret}, nothing), signed(t, message(2, 1, "b"), "")).Code)
}

// The inbox notes the record before it calls an effect that takes a role without rights to its tables.
func TestHandler_AnEffectMayTakeAnotherRole(t *testing.T) {
	t.Parallel()
	pool := made(t)
	role := pgtest.Role(t, pool, "tenant", "")
	pgtest.Exec(t, pool, "GRANT USAGE ON SCHEMA public TO "+role)
	pgtest.Exec(t, pool, "GRANT INSERT ON public.effect TO "+role)
	h := handler(t, pool, inbox.HandlerConfig{Secret: secret}, func(ctx context.Context, tx pgx.Tx, r inbox.Request) error {
		_, err := tx.Exec(ctx, "SET LOCAL ROLE "+role)
		require.NoError(t, err)
		_, err = tx.Exec(ctx, "INSERT INTO public.effect (key) VALUES ($1)", r.DedupKey)
		return err
	})
	for _, m := range []inbox.Message{message(1, 1, "a"), message(2, 1, "b"), message(1, 1, "a")} {
		require.Equal(t, 200, answerOf(h, signed(t, m, "")).Code)
	}
	require.Equal(t, "a b", effects(t, pool))
}

// An effect that ends the transaction takes its own work, or its own note, out of it.
func TestHandler_AnEffectThatEndsTheTransactionIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for _, m := range []inbox.Message{message(1, 1, "a"), replay(1, 1, "a")} {
		h := handler(t, pool, inbox.HandlerConfig{Secret: secret}, func(ctx context.Context, tx pgx.Tx, r inbox.Request) error {
			_, err := tx.Exec(ctx, "ROLLBACK")
			return err
		})
		require.Equal(t, 503, answerOf(h, signed(t, m, "")).Code)
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = box(t, false).Handle(t.Context(), tx, m, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "ROLLBACK")
			return err
		})
		require.ErrorContains(t, err, "or the effect ended the transaction")
		require.NoError(t, tx.Rollback(t.Context()))
	}
}

// A savepoint of the handler is before the note, which a rollback to it undoes.
func TestHandler_AnEffectThatRollsBackItsNoteIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	pool := made(t)
	h := handler(t, pool, inbox.HandlerConfig{Secret: secret}, func(ctx context.Context, tx pgx.Tx, r inbox.Request) error {
		pgtest.Exec(t, tx, "ROLLBACK TO sp_1; INSERT INTO public.effect (key) VALUES ('the rest')") // as pgx names it
		return nil
	})
	require.Equal(t, 503, answerOf(h, signed(t, message(1, 1, "a"), "")).Code)
	require.Empty(t, effects(t, pool))
	require.Equal(t, notes{Origin: "o", Epoch: 1, DedupKeys: []string{}}, noted(t, pool, "p"))
}

// The error of the COMMIT, on a connection that is gone, does not take the place of the effect's.
func TestHandler_LogsWhyTheConnectionIsGone(t *testing.T) {
	t.Parallel()
	pool := made(t)
	var log bytes.Buffer
	config := inbox.HandlerConfig{Secret: secret, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	h := handler(t, pool, config, func(ctx context.Context, tx pgx.Tx, _ inbox.Request) error {
		_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
		return err
	})
	require.Equal(t, 503, answerOf(h, signed(t, message(1, 1, "a"), "")).Code)
	require.Contains(t, log.String(), "57P01")
}

// An index of PostgreSQL takes 2,700 bytes, and a text of it no NUL.
func TestHandle_NotesALongKeyByItsDigest(t *testing.T) {
	t.Parallel()
	pool := made(t)
	long := strings.Repeat("k", 10_000)
	for _, want := range []inbox.Outcome{inbox.Applied, inbox.Duplicate} {
		got, err := handle(t, pool, in(long, message(1, 1, long)))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, pgtest.Value[string](t, pool, "SELECT dedup_key FROM public.inbox"))
	for _, m := range []inbox.Message{message(2, 1, "a\x00b"), message(2, 1, "\xff"), from("\xff", message(2, 1, "b")), in("\x00", message(2, 1, "b"))} {
		_, err := handle(t, pool, m)
		require.ErrorIs(t, err, inbox.ErrMessage)
	}
}
