package main_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// Every secret and every datum of a record has this in it.
const canary = "CANARY"

// canaryProcesses meet every way in which a delivery ends. {{…}} are receivers, which
// all send back whatever they were sent.
const canaryProcesses = `
processes:
  fine:     {source: &source {table: public.bookings, columns: {key: customer, headers: headers, payload: payload}}, sink: {webhook: &hook {url: "{{accepts}}", secret: "${SECRET}", headers: {X-Api-Key: "${HEADER}"}, timeout: 1s}}, start: beginning, poll: 20ms}
  retrying: {source: *source, sink: {webhook: {<<: *hook, url: "{{later}}"}}, retry: {initial: 5ms, max: 50ms}, start: beginning, poll: 20ms}
  halting:  {source: *source, sink: {webhook: {<<: *hook, url: "{{refuses}}"}}, start: beginning, poll: 20ms}
  aside:    {source: *source, sink: {webhook: {<<: *hook, url: "{{refuses}}"}}, on_poison: dead_letter, start: beginning, poll: 20ms}
  slow:     {source: *source, sink: {webhook: {<<: *hook, url: "{{never}}", timeout: 50ms}}, on_timeout: halt, start: beginning, poll: 20ms}
  torn:     {source: *source, sink: {webhook: {<<: *hook, url: "{{torn}}"}}, retry: {attempts: 2, initial: 5ms}, start: beginning, poll: 20ms}
  nowhere:  {source: *source, sink: {webhook: {<<: *hook, url: "{{nowhere}}"}}, retry: {attempts: 2, initial: 5ms}, start: beginning, poll: 20ms}
  sql:      {source: *source, sink: {sql: {statement: "INSERT INTO public.applied VALUES ((@payload::jsonb->>'customer')::int)"}}, start: beginning, poll: 20ms}
  raising:  {source: *source, sink: {sql: {statement: "SELECT public.refuse(@payload, @headers, @key)"}}, start: beginning, poll: 20ms}
  argued:   {source: *source, sink: {sql: {statement: "SELECT public.refuse('${file:{{secrets}}}', @headers, @key)"}}, start: beginning, poll: 20ms}
  speaks:   {source: *source, sink: {exec: {command: [sh, -c, 'read -r line; echo "no such customer: $0 $TOKEN $line" >&2; exit 1', "--token=${file:{{secrets}}}"], env: {TOKEN: "${file:{{secrets}}}"}}}, retry: {attempts: 2, initial: 5ms}, start: beginning, poll: 20ms}
  answers:  {source: *source, sink: {exec: {command: [sh, -c, 'read -r line; echo "$line" | sed "s/.*,.dedup_key.:\(.*\)}/{\"dedup_key\": \1, \"attempt\": 1, \"permanent\": true, \"error\": \"no such customer: $0 CANARYpayload17 CANARYkey\"}/"; cat', "--token=${file:{{secrets}}}"]}}, start: beginning, poll: 20ms}
  stumbles: {source: {table: public.bookings, columns: {payload: payload}, where: "customer::int > 0"}, sink: {stdout: {}}, start: beginning, poll: 20ms}
`

// canaryReceiver sends back what it is sent, letter by letter, and as JSON and HTML
// would have it.
func canaryReceiver(t testing.TB) *httptest.Server {
	t.Helper()
	echo := func(w io.Writer, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		all := []string{string(body), r.URL.String(), fmt.Sprint(r.Header), fmt.Sprintf("<b>%q</b>", body), `customer CANARY\u0070ayload17, CANARYpayl`}
		attempt, _ := strconv.Atoi(r.Header.Get("Ordered-Attempt"))
		first := all[attempt%len(all)] // since a long answer is cut off
		fmt.Fprintln(w, "no such customer:", first, all)
	}
	mux := http.NewServeMux()
	answer := func(path string, status int) {
		mux.HandleFunc("/CANARYpath7/"+path, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			echo(w, r)
		})
	}
	answer("accepts", http.StatusOK)
	answer("later", http.StatusServiceUnavailable)
	answer("refuses", http.StatusUnprocessableEntity)
	mux.HandleFunc("/CANARYpath7/never", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	})
	mux.HandleFunc("/CANARYpath7/torn", func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			echo(conn, r) // not HTTP
			_ = conn.Close()
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server
}

func canaryConfig(t testing.TB, receiver *httptest.Server) string {
	t.Helper()
	at := func(host, path string) string {
		return "http://CANARYuser:CANARYpassword@" + host + "/CANARYpath7/" + path + "?token=CANARYquery"
	}
	host := strings.TrimPrefix(receiver.URL, "http://")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	secrets := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secrets, []byte("CANARYargument-of-a-program\n"), 0o600))
	return file(t, strings.NewReplacer("{{secrets}}", secrets, "{{accepts}}", at(host, "accepts"), "{{later}}", at(host, "later"), "{{refuses}}", at(host, "refuses"),
		"{{never}}", at(host, "never"), "{{torn}}", at(host, "torn"), "{{nowhere}}", at(closed.Addr().String(), "nowhere"),
		"${SECRET}", "CANARYsecret-of-thirty-two-bytes-x", "${HEADER}", "Bearer CANARYheader").Replace(canaryProcesses))
}

func canaryDatabase(t testing.TB) (string, *pgxpool.Pool) {
	t.Helper()
	address, pool := database(t, 0)
	execute(t, pool, `
		ALTER TABLE public.bookings ADD headers jsonb, ADD payload jsonb;
		CREATE TABLE public.applied (id int);
		CREATE FUNCTION public.refuse(payload text, headers text, key text) RETURNS void LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'refused: % % %', payload, headers, key USING ERRCODE = '22000', DETAIL = payload, HINT = payload; END $$;
		INSERT INTO public.bookings (customer, headers, payload) VALUES
			('CANARYkey', '{"x-tenant": "CANARYtenant"}', '{"customer": "CANARYpayload17", "note": "CANARYnote with \"words\"", "CANARY-name": 1}')`)
	role := pgtest.Role(t, pool, "od_", "LOGIN PASSWORD 'CANARYdatabase'")
	execute(t, pool, fmt.Sprintf("GRANT %q TO %s", pool.Config().ConnConfig.User, role))
	return pgtest.As(t, address, role, "CANARYdatabase"), pool
}

// No secret and no datum of a record stands in anything that is said of a run:
// logs, metrics, health, status, doctor, the audit, errors.
func TestRun_SaysNothingOfSecretsNorOfWhatRecordsHold(t *testing.T) {
	t.Parallel()
	address, pool := canaryDatabase(t)
	config := canaryConfig(t, canaryReceiver(t))
	p := start(t, address, "--log-level=debug", "run", "-c", config, "--listen", "127.0.0.1:0")
	p.stderr.until(t, 5, "delivery failed for good")
	p.stderr.until(t, 1, `"attempt":6`) // each part of the answer came first
	p.stderr.until(t, 1, "cannot work; trying again")
	served := regexp.MustCompile(`"address":"([^"]+)"`).FindStringSubmatch(p.stderr.String())[1]

	said := map[string]string{}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		response, err := http.Get("http://" + served + path)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		said[path] = fmt.Sprint(response.Header, string(body))
	}
	for _, args := range [][]string{{"status"}, {"status", "--json"}, {"doctor"}, {"check"}} {
		_, stdout, stderr := do(t, address, append(args, "-c", config)...)
		said[strings.Join(args, " ")] = stdout + stderr
	}
	for _, process := range []string{"halting", "aside", "sql"} {
		_, stdout, stderr := do(t, address, "history", process, "-c", config)
		said["history "+process] = stdout + stderr
	}
	_, said["a wrong password"], _ = do(t, pgtest.As(t, address, "nobody", "CANARYwrong"), "doctor", "-c", config)
	p.stop()
	said["log"] = p.stderr.String()
	code, _, stderr := do(t, address, "pause", "retrying")
	require.Zero(t, code, stderr)
	_, _, said["drain"] = do(t, address, "--log-level=debug", "run", "--drain", "-c", config)
	for _, table := range []string{"cursor", "cursor_event"} {
		said[table] = text(t, pool, "SELECT string_agg(t::text, chr(10)) FROM public."+table+" t")
	}
	said["dead_letter"] = text(t, pool, "SELECT string_agg(error, chr(10)) FROM public.dead_letter")
	for where, text := range said {
		require.NotEmpty(t, text, where)
		for line := range strings.Lines(text) {
			require.NotContains(t, line, canary, where)
		}
	}

	require.Contains(t, said["log"], "no such customer: ", "what a receiver says is there")
	require.Contains(t, said["cursor"], "no such customer: ")
	require.Contains(t, said["dead_letter"], "no such customer: ")
	require.Contains(t, said["cursor"], "ERROR: refused: ")
	require.Contains(t, said["log"], "transport connection broken")
	require.Equal(t, canary+"payload17", text(t, pool, "SELECT payload->>'customer' FROM public.bookings"), "the bird sings")
}
