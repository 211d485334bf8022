package daemon_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// seldom and always are how often files are looked at without a failure.
const (
	seldom = time.Hour
	always = time.Nanosecond
)

// secretFile is one that a reference names. It is replaced as Kubernetes and Vault do: at once.
type secretFile struct{ path string }

func newSecretFile(t testing.TB, text string) secretFile {
	t.Helper()
	f := secretFile{filepath.Join(t.TempDir(), "secret")}
	f.hold(t, text)
	return f
}

func (f secretFile) hold(t testing.TB, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(f.path+".new", []byte(text+"\n"), 0o600))
	require.NoError(t, os.Rename(f.path+".new", f.path))
}

func (f secretFile) String() string { return "${file:" + f.path + "}" }

// running is a daemon that runs until the test ends.
type running struct {
	config daemon.Config
	log    *buffer
	ended  chan error
}

// runDaemon runs what a file says, which names the database or not, until the test ends.
func runDaemon(t testing.TB, text string, change func(daemon.RunConfig) daemon.RunConfig) *running {
	t.Helper()
	config, err := daemon.Parse("f.yaml", []byte(text), environment(nil), kinds)
	require.NoError(t, err)
	if config.Database == "" {
		config.Database = pgtest.URL(t)
	}
	r := &running{config: config, log: &buffer{}, ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	run := change(daemon.RunConfig{Config: config, Grace: time.Second, Stdout: io.Discard, Logger: daemon.NewLogger(r.log, slog.LevelInfo)})
	go func() { r.ended <- daemon.Run(ctx, run) }()
	t.Cleanup(func() {
		cancel()
		waittest.Receive(t, r.ended, "the run ends")
		if t.Failed() {
			text := r.log.String()
			t.Log(text[:min(len(text), 4000)])
		}
	})
	return r
}

func lookEvery(d time.Duration) func(daemon.RunConfig) daemon.RunConfig {
	return func(c daemon.RunConfig) daemon.RunConfig { return c.RenewEvery(d) }
}

// of is a file with one process and its sink. It is called what the test needs to wait for.
func of(sink string) string {
	return "schema: " + schema + "\nprocesses:\n  a: {source: {table: public.bookings}, start: beginning, poll: 20ms, retry: {initial: 10ms, max: 20ms}, sink: " + sink + "}\n"
}

func eventually(t testing.TB, condition func() bool, args ...any) {
	t.Helper()
	require.Eventually(t, condition, 30*time.Second, 5*time.Millisecond, args...)
}

func (r *running) says(t testing.TB, text string) {
	t.Helper()
	eventually(t, func() bool { return strings.Contains(r.log.String(), text) }, text)
}

// passed waits until the cursor has passed so many records.
func passed(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	untilTrue(t, pool, "SELECT sequence >= $1 FROM od.cursor WHERE process_name = 'a'", n)
}

// door is a receiver that lets in who has the key, and notes what came: the token, the record's
// number and the attempt.
type door struct {
	*httptest.Server
	mu     sync.Mutex
	keys   []string
	came   []string
	before func(w http.ResponseWriter) bool // whether it has answered
}

func newDoor(t testing.TB, keys ...string) *door {
	d := &door{keys: keys}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		_, _ = io.Copy(io.Discard, r.Body)
		d.came = append(d.came, fmt.Sprintf("%s %s/%s", token, r.Header.Get("Ordered-Sequence"), r.Header.Get("Ordered-Attempt")))
		if d.before != nil && d.before(w) {
			return
		}
		for _, key := range d.keys {
			if key == token {
				return
			}
		}
		http.Error(w, "not "+token, http.StatusUnauthorized)
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *door) letIn(keys ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys = keys
}

func (d *door) notes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.came...)
}

func (d *door) sink(token secretFile) string {
	return fmt.Sprintf("{webhook: {url: %q, bearer: '%s'}}", d.URL, token)
}

// atADoor is a daemon that has delivered a record to a receiver which lets in these keys, with the first token.
func atADoor(t testing.TB, look time.Duration, keys ...string) (pool *pgxpool.Pool, receiver *door, token secretFile, r *running) {
	t.Helper()
	pool = database(t)
	insert(t, pool, 1)
	receiver, token = newDoor(t, keys...), newSecretFile(t, "first-token")
	r = runDaemon(t, of(receiver.sink(token)), lookEvery(look))
	passed(t, pool, 1)
	return pool, receiver, token, r
}

func TestRenew_AWebhookGoesOnWithTheTokenThatItsFileHoldsByNow(t *testing.T) {
	t.Parallel()
	pool, receiver, token, r := atADoor(t, seldom, "first-token")

	token.hold(t, "second-token")
	receiver.letIn("second-token")
	insert(t, pool, 2)
	passed(t, pool, 3)
	require.Equal(t, []string{"first-token 1/1", "first-token 2/1", "second-token 2/1", "second-token 3/1"}, receiver.notes(),
		"it is no attempt of the record's")
	r.says(t, "the file of a secret has changed")
	require.NotContains(t, r.log.String(), "-token")
}

// The receiver knows the new token first, and the file after an operator has looked.
func TestRenew_ARefusalHaltsUntilTheFileIsThere(t *testing.T) {
	t.Parallel()
	pool, receiver, token, r := atADoor(t, seldom, "first-token")

	receiver.letIn("second-token")
	insert(t, pool, 2)
	halted(t, pool, "refused")
	require.Equal(t, []string{"first-token 1/1", "first-token 2/1"}, receiver.notes(), "at once")
	token.hold(t, "second-token")
	store := newStore(t, pool)
	_, err := operator.New(store).Retry(t.Context(), "a", cursor.Decision{Actor: "me"})
	require.NoError(t, err)
	passed(t, pool, 3)
	require.NotContains(t, r.log.String(), "-token")
}

// halted waits until the process has halted over an error of a class.
func halted(t testing.TB, pool *pgxpool.Pool, class string) {
	t.Helper()
	untilTrue(t, pool, "SELECT failed_class = $1 FROM od.cursor WHERE process_name = 'a' AND state = 'halted'", class)
}

// What the receiver may have taken goes out as another attempt, as ever.
func TestRenew_WhatMayHaveArrivedIsNotSentAgainWithinTheCall(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	receiver, token := newDoor(t, "first-token", "second-token"), newSecretFile(t, "first-token")
	receiver.before = func(w http.ResponseWriter) bool {
		if len(receiver.came) > 1 {
			return false
		}
		token.hold(t, "second-token")
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
		return true
	}
	runDaemon(t, of(receiver.sink(token)), lookEvery(seldom))
	passed(t, pool, 1)
	require.Equal(t, []string{"first-token 1/1", "second-token 1/2"}, receiver.notes())
}

func TestRenew_FilesAreLookedAtWithoutAFailureToo(t *testing.T) {
	t.Parallel()
	pool, receiver, token, _ := atADoor(t, always, "first-token", "second-token")
	token.hold(t, "second-token")
	insert(t, pool, 1)
	passed(t, pool, 2)
	require.Equal(t, []string{"first-token 1/1", "second-token 2/1"}, receiver.notes())
}

func TestRenew_NoFileIsReadForEachRecord(t *testing.T) {
	t.Parallel()
	pool, _, token, r := atADoor(t, seldom, "first-token")
	require.NoError(t, os.Remove(token.path))
	insert(t, pool, 20)
	passed(t, pool, 21)
	require.NotContains(t, r.log.String(), "cannot be read again")
}

func TestRenew_AFileThatCannotBeReadKeepsItsFormerValue(t *testing.T) {
	t.Parallel()
	pool, receiver, token, r := atADoor(t, always, "first-token", "second-token")
	require.NoError(t, os.Remove(token.path))
	insert(t, pool, 5)
	passed(t, pool, 6)
	require.Equal(t, 1, strings.Count(r.log.String(), "the file of a secret cannot be read again"), "it is said once")
	require.Contains(t, r.log.String(), token.path)
	token.hold(t, "bad token") // a space: no header takes it
	insert(t, pool, 1)
	passed(t, pool, 7)
	r.says(t, "is not valid")
	require.NotContains(t, r.log.String(), "bad token")
	token.hold(t, "second-token")
	insert(t, pool, 1)
	passed(t, pool, 8)
	require.Equal(t, "second-token 8/1", receiver.notes()[7])
}

// Where records go is changed by a restart alone.
func TestRenew_AnotherAddressNeedsARestart(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	receiver, other := newDoor(t, ""), newDoor(t, "")
	address := newSecretFile(t, receiver.URL)
	r := runDaemon(t, of(fmt.Sprintf("{webhook: {url: '%s'}}", address)), lookEvery(always))
	passed(t, pool, 1)
	address.hold(t, other.URL)
	insert(t, pool, 2)
	passed(t, pool, 3)
	require.Len(t, receiver.notes(), 3)
	require.Empty(t, other.notes())
	require.Equal(t, 1, strings.Count(r.log.String(), "needs a restart"))
	require.Contains(t, r.log.String(), "sink.webhook.url")
}

func TestRenew_AnotherStatementOrCommandNeedsARestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sink, setting string }{
		"a statement":        {"{sql: {statement: \"INSERT INTO public.model VALUES (@id, '%s')\"}}", "sink.sql.statement"},
		"a statement's word": {"{sql: {statement: \"INSERT INTO public.model VALUES (@id, '%s')\", url: '{url}', schema: public}}", "sink.sql.statement"},
		"a command":          {"{exec: {command: [sh, -c, '" + answers + "', '%s']}}", "sink.exec.command"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			exec(t, pool, "CREATE TABLE public.model (id bigint, word text)")
			if strings.Contains(c.sink, "{url}") {
				exec(t, pool, remoteTables(t))
				c.sink = strings.ReplaceAll(c.sink, "{url}", pgtest.URL(t))
			}
			insert(t, pool, 1)
			word := newSecretFile(t, "first-word")
			r := runDaemon(t, of(fmt.Sprintf(c.sink, word)), lookEvery(always))
			passed(t, pool, 1)
			word.hold(t, "second-word")
			insert(t, pool, 2)
			passed(t, pool, 3)
			require.Equal(t, 1, strings.Count(r.log.String(), "needs a restart"))
			require.Contains(t, r.log.String(), c.setting)
			require.NotContains(t, r.log.String(), "-word")
		})
	}
}

// answers is a child in sh that says ok to each line.
const answers = `while read -r line; do echo "$line" | sed "s/.*,.dedup_key.:\(.*\)}/{\"dedup_key\": \1, \"attempt\": 1, \"ok\": true}/"; done`

// Two that send at once could change the order.
func TestRenew_TheOldSinkIsClosedBeforeTheNewOneSends(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	word, noted := newSecretFile(t, "first-word"), filepath.Join(t.TempDir(), "noted")
	script := `trap "" TERM; echo "begin $WORD" >> "$NOTED"; ` + answers + `; sleep 0.2; echo "end $WORD" >> "$NOTED"`
	r := runDaemon(t, of(fmt.Sprintf("{exec: {command: [sh, -c, '%s'], env: {NOTED: %q, WORD: '%s'}}}", script, noted, word)), lookEvery(always))
	passed(t, pool, 1)
	word.hold(t, "second-word")
	insert(t, pool, 2)
	passed(t, pool, 3)
	text, err := os.ReadFile(noted)
	require.NoError(t, err)
	require.Equal(t, "begin first-word\nend first-word\nbegin second-word\n", string(text))
	require.NotContains(t, r.log.String(), "-word")
}

// held is a sink with something on its way between two calls, as one to RabbitMQ under an alarm.
type held struct {
	token   string
	pending *bool
	calls   *[]string
}

func (h held) Pending() bool { return *h.pending }

func (h held) Close() error {
	*h.calls = append(*h.calls, "close "+h.token)
	return nil
}

func (h held) DeliverBatch(context.Context, []processor.Delivery) (int, error) {
	*h.calls = append(*h.calls, h.token)
	return 0, nil
}

// The broker publishes what it has of the old connection, and the new one would send it again.
func TestRenew_ASinkIsKeptWhileSomethingIsOnItsWay(t *testing.T) {
	t.Parallel()
	token := newSecretFile(t, "first-token")
	config, err := daemon.Parse("f.yaml", []byte(of(fmt.Sprintf("{webhook: {url: 'http://h', bearer: '%s'}}", token))), environment(nil), kinds)
	require.NoError(t, err)
	var calls []string
	pending := true
	call := daemon.Renewed(config, func(token string) held { return held{token, &pending, &calls} })
	token.hold(t, "second-token")
	require.NoError(t, call(t.Context()))
	pending = false
	require.NoError(t, call(t.Context()))
	require.Equal(t, []string{"first-token", "close first-token", "second-token"}, calls)
}

// rotatedLogin is a role of a server of the test's own, which asks for its password.
type rotatedLogin struct {
	server *pgxpool.Pool
	url    string
	name   string
}

func newLogin(t testing.TB) rotatedLogin {
	t.Helper()
	server := pgtest.Server(t, nil)
	l := rotatedLogin{server: pgtest.Pool(t, server.URL(), pgtest.PoolConfig{}), url: server.URL(), name: "rotated"}
	exec(t, l.server, "CREATE ROLE rotated LOGIN SUPERUSER PASSWORD 'first-password'")
	return l
}

// with is its address with a password.
func (l rotatedLogin) with(t testing.TB, password string) string {
	t.Helper()
	_, rest, found := strings.Cut(l.url, "@")
	require.True(t, found)
	return "postgres://" + l.name + ":" + password + "@" + rest
}

func (l rotatedLogin) rotate(t testing.TB, password string) {
	t.Helper()
	exec(t, l.server, "ALTER ROLE rotated PASSWORD '"+password+"'")
}

// run is a daemon that logs in with a connection string, and has delivered a record.
func (l rotatedLogin) run(t testing.TB, connection string) *running {
	t.Helper()
	migrate(t, l.server, l.url)
	insert(t, l.server, 1)
	r := runDaemon(t, "database: '"+connection+"'\n"+of("{stdout: {}}"), lookEvery(seldom))
	passed(t, l.server, 1)
	return r
}

// endUntil ends the connections that are there, as a failover does, until the log has a text: a pool
// may have made one at that moment.
func (l rotatedLogin) endUntil(t testing.TB, r *running, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		exec(t, l.server, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'rotated'")
		return strings.Contains(r.log.String(), text)
	}, 30*time.Second, 50*time.Millisecond, text)
}

func TestRenew_NewConnectionsToTheDatabaseUseThePasswordOfTheFile(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"file first", "role first"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			l := newLogin(t)
			password := newSecretFile(t, "first-password")
			r := l.run(t, l.with(t, password.String()))
			if order == "file first" {
				password.hold(t, "second-password")
				l.rotate(t, "second-password")
				l.endUntil(t, r, "a file of the database's login has changed")
			} else {
				l.rotate(t, "second-password")
				l.endUntil(t, r, "28P01")
				password.hold(t, "second-password")
			}
			insert(t, l.server, 2)
			passed(t, l.server, 3)
			r.says(t, "a file of the database's login has changed")
			require.Equal(t, "[secret] and [secret]", r.config.Secrets().Replace("first-password and second-password"))
			require.NotContains(t, r.log.String(), "-password")
		})
	}
}

// TestRenew_StatusSeesAWorkerWhoseLoginIsAnotherUserByNow: workers are known by their user, and status said that no worker
// runs the process, for good.
func TestRenew_StatusSeesAWorkerWhoseLoginIsAnotherUserByNow(t *testing.T) {
	t.Parallel()
	l := newLogin(t)
	exec(t, l.server, "CREATE ROLE rotated_b LOGIN SUPERUSER PASSWORD 'first-password'")
	user := newSecretFile(t, "rotated")
	l.name = user.String()
	r := l.run(t, l.with(t, "first-password"))
	asked := configure(t, l.url, stdoutProcess)
	untilTrue(t, l.server, "SELECT count(*) = 1 FROM od.cursor_event WHERE action = 'watch'")
	user.hold(t, "rotated_b")
	l.endUntil(t, r, "a file of the database's login has changed")
	insert(t, l.server, 1)
	passed(t, l.server, 2)
	untilTrue(t, l.server, "SELECT count(DISTINCT db_user) = 2 FROM od.cursor_event WHERE action = 'watch'")
	for range 3 {
		_, text, document := status(t, asked, "")
		require.Equal(t, "running", document["state"], text)
	}
}

// TestRenew_AUserThatCannotLogInIsGivenUp: its connection was looked for without an end, connections that worked were closed for it,
// and the user that came after it was never announced.
func TestRenew_AUserThatCannotLogInIsGivenUp(t *testing.T) {
	t.Parallel()
	l := newLogin(t)
	exec(t, l.server, "CREATE ROLE rotated_b NOLOGIN SUPERUSER PASSWORD 'first-password'; CREATE ROLE rotated_c LOGIN SUPERUSER PASSWORD 'first-password'")
	user := newSecretFile(t, "rotated")
	l.name = user.String()
	r := l.run(t, l.with(t, "first-password"))
	user.hold(t, "rotated_b")
	l.endUntil(t, r, "is not permitted to log in")
	user.hold(t, "rotated_c")
	insert(t, l.server, 1)
	passed(t, l.server, 2)
	untilTrue(t, l.server, "SELECT count(*) = 1 FROM od.cursor_event WHERE action = 'watch' AND db_user = 'rotated_c'")
	require.Zero(t, count(t, l.server, "SELECT count(*) FROM od.cursor_event WHERE action = 'watch' AND db_user = 'rotated_b'"))
}

func TestRenew_ALoginThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	l := newLogin(t)
	password := newSecretFile(t, "first-password")
	r := l.run(t, l.with(t, password.String()))
	require.NoError(t, os.Remove(password.path))
	l.endUntil(t, r, "read the login for the database anew: the file "+password.path+" cannot be read")
	password.hold(t, "first-password")
	insert(t, l.server, 1)
	passed(t, l.server, 2)
}

func TestRenew_AnotherAddressOfTheDatabaseNeedsARestart(t *testing.T) {
	t.Parallel()
	l := newLogin(t)
	address := newSecretFile(t, l.with(t, "first-password"))
	r := l.run(t, address.String())
	address.hold(t, "postgres://rotated:first-password@127.0.0.1:1/nowhere")
	l.endUntil(t, r, "has changed the address, which needs a restart")
	insert(t, l.server, 1)
	passed(t, l.server, 2)
}

// remoteTables are those of a sql sink with a url, in public.
func remoteTables(t testing.TB) string {
	t.Helper()
	var text bytes.Buffer
	config, err := daemon.Parse("f.yaml", []byte("schema: "+schema+"\nprocesses: {a: {source: {table: public.bookings}, sink: {sql: {statement: SELECT 1, url: '"+pgtest.URL(t)+"', schema: public}}}}"), environment(nil), kinds)
	require.NoError(t, err)
	config.Database = pgtest.URL(t)
	require.NoError(t, daemon.Grants(t.Context(), &text, daemon.GrantsConfig{Config: config, Role: "worker"}))
	_, sql, found := strings.Cut(text.String(), "-- CREATE TABLE")
	require.True(t, found, text.String())
	sql, _, _ = strings.Cut("CREATE TABLE"+strings.ReplaceAll(sql, "\n-- ", "\n"), "GRANT")
	return sql
}

func TestRenew_ASQLTargetGoesOnWithTheLoginThatItsFileHoldsByNow(t *testing.T) {
	t.Parallel()
	pool, l := database(t), newLogin(t)
	exec(t, l.server, remoteTables(t)+"; CREATE TABLE public.model (n bigserial, id bigint)")
	insert(t, pool, 1)
	password := newSecretFile(t, "first-password")
	r := runDaemon(t, of(fmt.Sprintf("{sql: {statement: 'INSERT INTO public.model (id) VALUES (@id)', url: '%s'}}", l.with(t, password.String()))), lookEvery(seldom))
	passed(t, pool, 1)
	password.hold(t, "second-password")
	l.rotate(t, "second-password")
	exec(t, l.server, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'rotated'") // idle: its one connection
	insert(t, pool, 2)
	passed(t, pool, 3)
	require.Equal(t, "1 2 3", pgtest.Value[string](t, l.server, "SELECT string_agg(id::text, ' ' ORDER BY n) FROM public.model"))
	require.NotContains(t, r.log.String(), "-password")
}

func TestRenew_RabbitMQGoesOnWithThePasswordThatItsFileHoldsByNow(t *testing.T) {
	t.Parallel()
	pool, rabbit := database(t), brokertest.SharedRabbitMQ(t)
	control := func(args ...string) {
		_, err := rabbit.Control(t.Context(), args...)
		require.NoError(t, err)
	}
	user := "rotated-" + strings.ToLower(rand.Text())
	control("add_user", user, "first-password")
	control("set_permissions", user, ".*", ".*", ".*")
	t.Cleanup(func() { _, _ = rabbit.Control(context.Background(), "delete_user", user) })
	cable := tcptest.Link(t, rabbit.Addr())

	insert(t, pool, 1)
	password := newSecretFile(t, "first-password")
	r := runDaemon(t, of(fmt.Sprintf("{rabbitmq: {url: 'amqp://%s:%s@%s/', exchange: %s, type: fanout, routing_key: k}}", user, password, cable.Addr(), user)), lookEvery(seldom))
	r.says(t, "bind a queue")
	queue, ids := bound(t, rabbit.URL(rabbit.Addr()), user)
	passed(t, pool, 1)
	password.hold(t, "second-password")
	control("change_password", user, "second-password")
	cable.Cut()
	insert(t, pool, 2)
	passed(t, pool, 3)
	require.Equal(t, []string{"1", "2", "3"}, ids(queue))
	require.NotContains(t, r.log.String(), "-password")
}

// bound is a queue that gets what an exchange takes, and how to read the records' ids in it.
func bound(t testing.TB, address, exchange string) (queue string, ids func(queue string) []string) {
	t.Helper()
	connection, err := amqp.Dial(address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	channel, err := connection.Channel()
	require.NoError(t, err)
	q, err := channel.QueueDeclare("", false, true, true, false, nil)
	require.NoError(t, err)
	require.NoError(t, channel.QueueBind(q.Name, "k", exchange, false, nil))
	return q.Name, func(queue string) (all []string) {
		for {
			m, ok, err := channel.Get(queue, true)
			require.NoError(t, err)
			if !ok {
				return all
			}
			all = append(all, fmt.Sprint(m.Headers["ordered-sequence"]))
		}
	}
}
