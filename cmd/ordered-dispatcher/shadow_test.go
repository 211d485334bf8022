package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
)

// listener is a receiver that takes everything, and keeps it.
type listener struct {
	url string

	mu    sync.Mutex
	calls []received
}

type received struct {
	uri    string
	header http.Header
	body   string
}

func newListener(t *testing.T) *listener {
	t.Helper()
	l := &listener{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.calls = append(l.calls, received{r.RequestURI, r.Header, string(body)})
	}))
	t.Cleanup(server.Close)
	l.url = server.URL
	return l
}

func (l *listener) got() []received {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]received(nil), l.calls...)
}

// shadowed is an outbox, with a table of calls.
func shadowed(t *testing.T) (string, *pgxpool.Pool) {
	t.Helper()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, must(t, address, "migrate", "outbox"))
	require.Contains(t, must(t, address, "migrate", "shadow", "--apply"), "public.shadow_calls made")
	return address, pool
}

// read returns a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

const (
	liveSecret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	liveToken   = "token-of-the-live-process"
	shadowToken = "token-of-the-new-version"
)

// sms is a file with a live process and a shadow of it. more is added to the shadow.
func (l *listener) sms(t *testing.T, more string) string {
	t.Helper()
	return file(t, fmt.Sprintf(`processes:
  sms:
    source: {table: public.outbox, preset: outbox}
    sink: {webhook: {url: '%s/send/{{.Key}}', secret: %s, bearer: %s}}
    start: beginning
  sms@shadow:
    source: {table: public.outbox, preset: outbox}
    sink: {webhook: {url: '%[1]s/send/{{.Key}}', secret: %[2]s, bearer: %[3]s}}
    start: beginning
    shadow: {of: sms, table: public.shadow_calls}
%[4]s`, l.url, liveSecret, liveToken, more))
}

// recorded is a row of the table of calls.
type recorded struct {
	Sequence    int64
	Target      string
	Headers     map[string]string
	Body        []byte
	OtherTarget *string
	OtherBody   []byte
	Differs     []string
}

func callsOf(t *testing.T, pool *pgxpool.Pool, process string) []recorded {
	t.Helper()
	rows, _ := pool.Query(t.Context(), "SELECT sequence, target, headers, body, other_target, other_body, differs FROM public.shadow_calls WHERE process = $1 ORDER BY position", process)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[recorded])
	require.NoError(t, err)
	return all
}

func booking(typ, key, text string) outbox.Record {
	return outbox.Record{Type: typ, Key: key, Payload: map[string]any{"text": text, "seats": 2}}
}

func TestShadow_RecordsWhatTheLiveProcessSendsAndNamesWhatANewVersionChanges(t *testing.T) {
	t.Parallel()
	address, pool := shadowed(t)
	receiver := newListener(t)
	config := receiver.sms(t, "    upcast: {late@1: '.text += \" (late)\"'}\n")
	addAll(t, pool, outbox.Config{}, booking("made", "ann", "one"), booking("late", "bob", "two"), booking("made", "cy", "three"))
	require.Contains(t, must(t, address, "check", "-c", config), "the file is valid")
	must(t, address, "run", "--drain", "-c", config)

	sent := receiver.got()
	require.Len(t, sent, 3, "the shadow sends nothing")
	calls := callsOf(t, pool, "sms@shadow")
	require.Len(t, calls, 3)
	for i, call := range calls {
		require.Equal(t, "sms", sent[i].header.Get("Ordered-Process"))
		require.Equal(t, int64(i+1), call.Sequence)
		require.Equal(t, "POST "+receiver.url+sent[i].uri, call.Target)
		if i == 1 {
			require.Equal(t, []string{"header Ordered-Type", "body.text"}, call.Differs)
			require.Equal(t, sent[i].body, string(call.OtherBody), "the call of the live process")
			require.JSONEq(t, `{"text": "two (late)", "seats": 2}`, string(call.Body))
			continue
		}
		require.Empty(t, call.Differs)
		require.NotNil(t, call.Differs)
		require.Nil(t, call.OtherTarget)
		require.Equal(t, sent[i].body, string(call.Body))
		for name, value := range call.Headers {
			if name != "Ordered-Origin" { // each cursor has its own
				require.Equal(t, sent[i].header.Get(name), value, name)
			}
		}
		for _, name := range []string{"Ordered-Process", "Ordered-Key", "Ordered-Dedup-Key", "Idempotency-Key", "Webhook-Id", "Content-Type"} {
			require.NotEmpty(t, call.Headers[name], name)
		}
	}
	row := pgtest.Value[string](t, pool, "SELECT string_agg(c::text, ' ') FROM public.shadow_calls c")
	for _, secret := range []string{liveToken, liveSecret, "Signature", "Authorization", "Timestamp"} {
		require.NotContains(t, row, secret)
	}

	code, stdout, _ := do(t, address, "process", "compare", "sms", "sms@shadow", "-c", config)
	require.Equal(t, 1, code)
	require.Regexp(t, `^sequence 2, public\.outbox/2/\d+: header Ordered-Type, body\.text\n1 of 3 calls differ, up to at\.int:`, stdout)
}

func TestShadow_ComparesTheSameCallsAsEqualAndHiddenPartsAsDifferent(t *testing.T) {
	t.Parallel()
	address, pool := shadowed(t)
	receiver := newListener(t)
	config := receiver.sms(t, "")
	code, _, unborn := do(t, address, "process", "compare", "sms", "sms@shadow", "-c", config)
	require.Equal(t, 1, code)
	require.Contains(t, unborn, "sms@shadow has not run yet: start `ordered-dispatcher run`, and wait until it has caught up")
	addAll(t, pool, outbox.Config{}, booking("made", "ann", "one"))
	must(t, address, "run", "--drain", "-c", config)
	require.Regexp(t, `^0 of 1 calls differ, up to at\.int:`, must(t, address, "process", "compare", "sms", "sms@shadow", "-c", config))

	text := read(t, config)
	at := strings.LastIndex(text, liveToken)
	other := file(t, text[:at]+shadowToken+text[at+len(liveToken):])
	addAll(t, pool, outbox.Config{}, booking("made", "bob", "two"))
	must(t, address, "run", "--drain", "-c", other)
	code, stdout, stderr := do(t, address, "process", "compare", "sms", "sms@shadow", "-c", other)
	require.Equal(t, 1, code)
	require.Equal(t, "ordered-dispatcher: the two versions differ\n", stderr)
	require.Contains(t, stdout, "sequence 2, ")
	require.Contains(t, stdout, ": something that is not stored\n1 of 2 calls differ")
	require.Contains(t, stdout, "\nNot stored are credentials, signatures, headers from the file and the full address\n")
	require.NotContains(t, stdout, "token-of")

	sought := must(t, address, "seek", "sms@shadow", "-c", other, "--to-beginning", "--reason=with the other token")
	require.Contains(t, sought, "2 records are recorded again")
	must(t, address, "run", "--drain", "-c", other)
	_, stdout, _ = do(t, address, "process", "compare", "sms", "sms@shadow", "-c", other)
	require.Contains(t, stdout, "2 of 2 calls differ", "a record that is recorded again has one row")
	require.Len(t, receiver.got(), 2)
}

// TestShadow_ARestartRecordsEachCallOnce: the worker is killed again and again. A row that was written twice would fire the
// trigger, and the process would never catch up.
func TestShadow_ARestartRecordsEachCallOnce(t *testing.T) {
	t.Parallel()
	const n = 3000
	address, pool := database(t, 0)
	must(t, address, "migrate", "shadow", "--apply")
	pgtest.Exec(t, pool, `
		CREATE FUNCTION public.twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'recorded twice'; END $$;
		CREATE TRIGGER twice BEFORE UPDATE ON public.shadow_calls FOR EACH ROW EXECUTE FUNCTION public.twice()`)
	insert(t, pool, n)
	receiver := newListener(t)
	config := file(t, fmt.Sprintf(`processes: {sms@shadow: {source: {table: public.bookings}, start: beginning, checkpoint: 7,
		sink: {webhook: {url: '%s'}}, shadow: {table: public.shadow_calls}}}`, receiver.url))
	count := func() int {
		return pgtest.Value[int](t, pool, "SELECT count(*) FROM public.shadow_calls")
	}
	for _, until := range []int{1, 300, 900} {
		p := start(t, address, "run", "-c", config)
		require.Eventually(t, func() bool { return count() >= until }, patience, tick)
		require.NoError(t, p.cmd.Process.Kill())
		p.wait()
	}
	must(t, address, "run", "--drain", "-c", config)
	require.Equal(t, n, count())
	require.Zero(t, pgtest.Value[int](t, pool, `SELECT count(*) FROM (
		SELECT sequence, row_number() OVER (ORDER BY position) AS n, headers->>'Ordered-Process' AS process FROM public.shadow_calls) c
		WHERE sequence <> n OR process <> 'sms'`), "each call once, in order, under the name without @shadow")
	require.Empty(t, receiver.got())
}

func TestShadow_APoisonRecordOfTheNewVersionIsNamedAndTheLiveProcessGoesOn(t *testing.T) {
	t.Parallel()
	address, pool := shadowed(t)
	receiver := newListener(t)
	config := file(t, strings.Replace(read(t, receiver.sms(t, "")), "/send/{{.Key}}", "/send", 1)) // only the live one takes records without a key
	addAll(t, pool, outbox.Config{}, booking("made", "ann", "one"), booking("made", "", "two"), booking("made", "cy", "three"))
	code, _, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Equal(t, 3, code)
	require.Contains(t, stderr, "a value in its path is empty")
	_, status, _ := do(t, address, "status", "-c", config)
	require.Regexp(t, `(?s)sms@shadow +halted.*make the url: a value in its path is empty`, status)
	require.Len(t, receiver.got(), 3)
	require.Len(t, callsOf(t, pool, "sms@shadow"), 1)

	must(t, address, "skip", "sms@shadow", "-c", config, "--reason=the new version needs a key")
	must(t, address, "run", "--drain", "-c", config)
	calls := callsOf(t, pool, "sms@shadow")
	require.Len(t, calls, 2)
	require.Equal(t, int64(3), calls[1].Sequence)
	require.Equal(t, []string{"target"}, calls[1].Differs[:1])
}

// TestShadow_ACompareOfAShadowThatStandsStillFails: what comes after a halt is not compared, so it is not equal.
func TestShadow_ACompareOfAShadowThatStandsStillFails(t *testing.T) {
	t.Parallel()
	address, pool := shadowed(t)
	config := newListener(t).sms(t, "    upcast: {late@1: 'error(\"no\")'}\n")
	compare := []string{"process", "compare", "sms", "sms@shadow", "-c", config}
	addAll(t, pool, outbox.Config{}, booking("late", "ann", "one"))
	code, _, _ := do(t, address, "run", "--drain", "-c", config)
	require.Equal(t, 3, code)
	code, _, stderr := do(t, address, compare...)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "sms@shadow is halted at record 1: 1 record is not compared")
	must(t, address, "skip", "sms@shadow", "-c", config, "--reason=no")

	addAll(t, pool, outbox.Config{}, booking("made", "bob", "two"), booking("late", "cy", "three"), booking("made", "dan", "four"))
	code, _, _ = do(t, address, "run", "--drain", "-c", config)
	require.Equal(t, 3, code)
	code, stdout, stderr := do(t, address, compare...)
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "0 of 1 calls differ, up to at.int:")
	require.Contains(t, stderr, "sms@shadow is halted at record 3: 2 records are not compared")

	must(t, address, "skip", "sms@shadow", "-c", config, "--reason=no")
	require.Regexp(t, `^0 of 1 calls differ, up to at\.int:\S+; 1 record is not compared yet\n$`, must(t, address, compare...), "one that runs comes to them")
	must(t, address, "pause", "sms@shadow", "-c", config)
	code, _, stderr = do(t, address, compare...)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "sms@shadow is paused: 1 record is not compared")

	code, _, stderr = do(t, address, "process", "compare", "sms@shadow", "sms", "-c", config)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "the shadow comes second: `ordered-dispatcher process compare sms sms@shadow -c FILE`")
}

func TestShadow_ARecordThatOnlyTheLiveProcessRefusesIsADifference(t *testing.T) {
	t.Parallel()
	address, pool := shadowed(t)
	receiver := newListener(t)
	text := read(t, receiver.sms(t, ""))
	at := strings.LastIndex(text, "/send/{{.Key}}")
	config := file(t, text[:at]+"/send"+text[at+len("/send/{{.Key}}"):])
	addAll(t, pool, outbox.Config{}, booking("made", "", "one"))
	code, _, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Equal(t, 3, code, stderr)
	calls := callsOf(t, pool, "sms@shadow")
	require.Len(t, calls, 1)
	require.Equal(t, []string{"no call: the other process cannot send this record"}, calls[0].Differs)
	require.Empty(t, receiver.got())
}

// TestShadow_ThePageRecordsAndCompares runs what docs/read-models.md has, with a receiver that is there.
func TestShadow_ThePageRecordsAndCompares(t *testing.T) {
	t.Parallel()
	const page = "../../docs/read-models.md"
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, must(t, address, "migrate", "outbox"))
	receiver := newListener(t)
	text := strings.NewReplacer("https://sms.example", receiver.url, "${SMS_TOKEN}", liveToken, "start: end", "start: beginning").Replace(blocks(t, page, "yaml")[1])
	config := file(t, strings.Replace(text, "  sms@shadow:", "    start: beginning\n  sms@shadow:", 1))
	console := blocks(t, page, "console")
	args := func(block string) []string {
		line, _, _ := strings.Cut(block, "\n")
		_, line, found := strings.Cut(line, "$ ordered-dispatcher ")
		require.True(t, found)
		return strings.Fields(strings.Replace(line, "dispatcher.yaml", config, 1))
	}
	require.Contains(t, must(t, address, args(console[2])...), "public.shadow_calls made")
	addAll(t, pool, outbox.Config{}, booking("made", "ann", "one"))
	must(t, address, "run", "--drain", "-c", config)
	code, stdout, _ := do(t, address, args(console[3])...)
	require.Equal(t, 1, code)
	require.Contains(t, stdout, ": target\n1 of 1 calls differ")
	require.Len(t, receiver.got(), 1)
}

// TestShadow_NoEditOfTheFileLetsItSend: neither without `shadow` nor under another name.
func TestShadow_NoEditOfTheFileLetsItSend(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 3)
	must(t, address, "migrate", "shadow", "--apply")
	receiver, elsewhere := newListener(t), newListener(t)
	version := func(name, url, more string) string {
		return file(t, fmt.Sprintf("processes: {%s: {source: {table: public.bookings}, sink: {webhook: {url: '%s'}}%s}}", name, url, more))
	}
	const recording, begins = ", shadow: {table: public.shadow_calls}", ", start: beginning"
	must(t, address, "run", "--drain", "-c", version("sms@shadow", receiver.url, begins+recording))

	edited := version("sms@shadow", receiver.url, begins)
	for _, verb := range []string{"check", "run"} {
		code, _, stderr := do(t, address, verb, "-c", edited)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "`ordered-dispatcher process rename sms@shadow NEW --reason …`")
	}
	code, _, stderr := do(t, address, "check", "-c", version("sms", receiver.url, recording))
	require.Equal(t, 2, code)
	require.Contains(t, stderr, `call it "sms@shadow"`)

	for _, url := range []string{receiver.url, elsewhere.url} {
		renamed := version("sms", url, begins)
		code, _, stderr = do(t, address, "run", "--drain", "-c", renamed)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "the cursor sms@shadow, which has recorded calls and sent none")
		require.Contains(t, stderr, "`ordered-dispatcher process rename sms@shadow sms -c FILE --reason …`")
		code, stdout, _ := do(t, address, "doctor", "-c", renamed)
		require.Equal(t, 1, code)
		require.Contains(t, stdout, "which has recorded calls and sent none")
	}
	code, _, stderr = do(t, address, "run", "--drain", "-c", version("text", receiver.url, begins))
	require.Equal(t, 2, code, "any other name, with the same sink")
	require.Contains(t, stderr, "process rename sms@shadow text")
	require.Empty(t, append(receiver.got(), elsewhere.got()...))

	live := version("sms", receiver.url, "")
	require.Contains(t, must(t, address, "process", "rename", "sms@shadow", "sms", "-c", live, "--reason=its calls are right"), "Those before it were recorded, and never sent")
	insert(t, pool, 1)
	must(t, address, "run", "--drain", "-c", live)
	sent := receiver.got()
	require.Len(t, sent, 1)
	require.Equal(t, "4", sent[0].header.Get("Ordered-Sequence"))

	code, _, stderr = do(t, address, "run", "--drain", "-c", version("sms@shadow", receiver.url, begins+recording))
	require.NotZero(t, code, "a worker with the old file records nothing any more")
	require.Contains(t, stderr, "the cursor was renamed")
	require.Len(t, callsOf(t, pool, "sms@shadow"), 3)
}

// TestShadow_TheSinkOfTheNewVersionGoesLiveUnderTheCursorOfTheOldOne is what docs/read-models.md recommends.
func TestShadow_TheSinkOfTheNewVersionGoesLiveUnderTheCursorOfTheOldOne(t *testing.T) {
	t.Parallel()
	address, pool := shadowed(t)
	receiver := newListener(t)
	config := receiver.sms(t, "")
	addAll(t, pool, outbox.Config{}, booking("made", "ann", "one"))
	must(t, address, "run", "--drain", "-c", config)
	addAll(t, pool, outbox.Config{}, booking("made", "bob", "two"))

	live, _, _ := strings.Cut(read(t, config), "  sms@shadow:")
	now := file(t, strings.Replace(live, "/send/", "/v2/", 1))
	must(t, address, "run", "--drain", "-c", now)
	must(t, address, "process", "forget", "sms@shadow", "--reason=its sink is live")
	sent := receiver.got()
	require.Equal(t, []string{"/send/ann", "/v2/bob"}, []string{sent[0].uri, sent[1].uri})
	require.Equal(t, "2", sent[1].header.Get("Ordered-Sequence"))
	code, _, stderr := do(t, address, "process", "switch", "sms", "sms@shadow", "-c", config, "--sql=SELECT 1", "--reason=x")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "has built nothing that readers could use")
}

func TestShadow_CheckRefusesWhatCannotBeCompared(t *testing.T) {
	t.Parallel()
	const live = "sms: {source: {table: public.bookings}, sink: {webhook: {url: 'http://localhost'}}}"
	for want, processes := range map[string]string{
		"of: it is this process itself":                 "a@shadow: {source: {table: public.bookings}, sink: {stdout: {}}, shadow: {of: a@shadow, table: public.c}}",
		"of: there is no process":                       "a@shadow: {source: {table: public.bookings}, sink: {stdout: {}}, shadow: {of: typo, table: public.c}}",
		"sends nothing, either":                         "a@shadow: {source: {table: public.bookings}, sink: {stdout: {}}, shadow: {of: b@shadow, table: public.c}}, b@shadow: {source: {table: public.bookings}, sink: {stdout: {}}, shadow: {table: public.c}}",
		"of: source.table is not":                       live + ", a@shadow: {source: {table: public.outbox}, sink: {stdout: {}}, shadow: {of: sms, table: public.c}}",
		"of: source.where is not":                       live + ", a@shadow: {source: {table: public.bookings, where: 'id > 3'}, sink: {stdout: {}}, shadow: {of: sms, table: public.c}}",
		"of: source.columns is not":                     live + ", a@shadow: {source: {table: public.bookings, columns: {key: customer}}, sink: {stdout: {}}, shadow: {of: sms, table: public.c}}",
		"table: it needs a schema":                      "a@shadow: {source: {table: public.bookings}, sink: {stdout: {}}, shadow: {table: calls}}",
		"whose calls cannot be recorded":                "a@shadow: {source: {table: public.bookings}, sink: {sql: {statement: SELECT 1}}, shadow: {table: public.c}}",
		`the sink of process "sms" is sql, whose calls`: "sms: {source: {table: public.bookings}, sink: {sql: {statement: SELECT 1}}}, a@shadow: {source: {table: public.bookings}, sink: {stdout: {}}, shadow: {of: sms, table: public.c}}",
		"its name has to show that":                     "a: {source: {table: public.bookings}, sink: {stdout: {}}, shadow: {table: public.c}}",
		"a name that ends with @shadow":                 "a@shadow: {source: {table: public.bookings}, sink: {stdout: {}}}",
	} {
		code, _, stderr := do(t, "", "check", "-c", file(t, "database: postgres://localhost/x\nprocesses: {"+processes+"}"))
		require.Equal(t, 2, code, processes)
		require.Contains(t, stderr, want)
	}
}

// TestShadow_ARoleWithWhatGrantsPrintsRecordsAndCompares: an operator sees what differs, and no call.
func TestShadow_ARoleWithWhatGrantsPrintsRecordsAndCompares(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 2)
	receiver := newListener(t)
	config := file(t, fmt.Sprintf(`processes:
  sms: {source: {table: public.bookings}, sink: {webhook: {url: '%s'}}, start: beginning}
  sms@shadow: {source: {table: public.bookings}, sink: {webhook: {url: '%[1]s', format: cloudevents}}, start: beginning, shadow: {of: sms, table: public.shadow_calls}}
`, receiver.url))
	code, stdout, _ := do(t, address, "doctor", "-c", config)
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "the table of recorded calls is not there")
	require.Contains(t, stdout, "ordered-dispatcher migrate shadow --table public.shadow_calls --apply")
	code, _, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Equal(t, 3, code, stderr)
	require.Contains(t, stderr, "make the table and grant the rights")
	must(t, address, "retry", "sms@shadow", "-c", config)
	pgtest.Exec(t, pool, must(t, address, "migrate", "shadow"))

	role := func(prefix string) string { return pgtest.Role(t, pool, prefix, "LOGIN PASSWORD 'secret'") }
	worker, operator := role("worker_"), role("operator_")
	asWorker, asOperator := pgtest.As(t, address, worker, "secret"), pgtest.As(t, address, operator, "secret")
	grants := must(t, address, "grants", "-c", config, "--role", worker, "--operator", operator)
	execute(t, pool, grants)
	execute(t, pool, fmt.Sprintf(`REVOKE UPDATE ON public.shadow_calls FROM %q`, worker))
	_, stdout, _ = do(t, asWorker, "doctor", "-c", config)
	require.Contains(t, stdout, `GRANT UPDATE ON "public"."shadow_calls"`)
	execute(t, pool, grants)
	must(t, asWorker, "run", "--drain", "-c", config)
	require.Len(t, receiver.got(), 2)

	code, stdout, stderr = do(t, asOperator, "process", "compare", "sms", "sms@shadow", "-c", config)
	require.Equal(t, 1, code, stderr)
	require.Contains(t, stdout, "header Ce-Id, header Ce-Source")
	require.Contains(t, stdout, "2 of 2 calls differ")
	_, err := pgtest.Connect(t, asOperator).Exec(t.Context(), "SELECT body FROM public.shadow_calls")
	require.ErrorContains(t, err, "permission denied")
}

// TestShadow_ExecChildrenAreNotStarted: the line is recorded, and no program runs.
func TestShadow_ExecChildrenAreNotStarted(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 2)
	must(t, address, "migrate", "shadow", "--apply")
	mark := t.TempDir() + "/started"
	config := file(t, fmt.Sprintf(`processes: {a@shadow: {source: {table: public.bookings}, start: beginning, sink: {exec: {command: [touch, %s]}}, shadow: {table: public.shadow_calls}}}`, mark))
	must(t, address, "run", "--drain", "-c", config)
	calls := callsOf(t, pool, "a@shadow")
	require.Len(t, calls, 2)
	require.Equal(t, `command "touch"`, calls[0].Target)
	require.Nil(t, calls[0].Differs)
	var line struct{ Process, Sequence, ID string }
	require.NoError(t, json.Unmarshal(calls[1].Body, &line))
	require.Equal(t, "a 2 2", line.Process+" "+line.Sequence+" "+line.ID)
	require.NoFileExists(t, mark)
}
