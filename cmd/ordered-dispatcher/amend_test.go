package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// strict is a receiver that takes only amounts above 0, and keeps what it took.
type strict struct {
	*httptest.Server
	mu   sync.Mutex
	took []string // "dedup key: body", with a mark where the payload was amended
}

func newStrict(t testing.TB) *strict {
	t.Helper()
	s := &strict{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var order struct{ Amount int }
		if err := json.Unmarshal(body, &order); err != nil || order.Amount <= 0 {
			http.Error(w, "the amount is wrong", http.StatusUnprocessableEntity)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.took = append(s.took, strings.Split(r.Header.Get("Ordered-Dedup-Key"), "/")[1]+r.Header.Get("Ordered-Amended")+": "+string(body))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *strict) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.took...)
}

// amounts makes a table of amounts, the second of them below 0, and a configuration that delivers it.
func amounts(t testing.TB, policy string) (address, config string, receiver *strict) {
	t.Helper()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, `
		CREATE TABLE public.amounts (
			id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
			payload json NOT NULL);
		CREATE INDEX ON public.amounts (created_at, id);
		INSERT INTO public.amounts (payload) VALUES ('{"amount":1}'), ('{"amount":-2}'), ('{"amount":3}')`)
	receiver = newStrict(t)
	config = file(t, `
processes:
  a:
    source: {table: public.amounts, columns: {payload: payload}}
    sink: {webhook: {url: '`+receiver.URL+`'}}
    start: beginning
    on_poison: `+policy+"\n")
	return address, config, receiver
}

func TestAmend_DeliversAnotherPayloadOfAPoisonRecord(t *testing.T) {
	t.Parallel()
	address, config, receiver := amounts(t, "halt")
	run := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := do(t, address, args...)
		require.Equal(t, want, code, "%v: %s%s", args, stdout, stderr)
		return stdout + stderr
	}
	better := file(t, "{\"amount\":2}\n")
	require.Contains(t, run(1, "amend", "a", "-c", config, "--payload", better, "--dry-run"), "a has not run yet")
	run(3, "run", "--drain", "-c", config)
	require.Contains(t, run(2, "amend", "a", "-c", config, "--payload", better), "--reason is missing")
	require.Contains(t, run(2, "amend", "a", "--payload", better, "--reason=x"), "name the file with -c")
	require.Contains(t, run(2, "amend", "a", "-c", config, "--payload", file(t, "amount: 2"), "--reason=x"), "is JSON, and the new one is not")
	require.Contains(t, run(1, "amend", "a", "-c", config, "--payload", better, "--reason=x", "--expect=at.int:x"), "nothing was changed")
	require.Contains(t, run(1, "amend", "a", "-c", config, "--clear", "--reason=x"), "was not amended")
	rehearsed := run(0, "amend", "a", "-c", config, "--payload", better, "--dry-run")
	require.Contains(t, rehearsed, "dry run, nothing is changed. Without --dry-run: record 2 of a would be delivered with the given payload")
	_, expect, _ := strings.Cut(rehearsed, "--expect=")
	expect, _, _ = strings.Cut(expect, " --reason=TEXT instead")
	run(3, "run", "--drain", "-c", config)

	done := run(0, "amend", "a", "-c", config, "--payload", better, "--reason=a typing error", "--expect="+strings.Trim(expect, "'"))
	require.Contains(t, done, "record 2 of a is delivered with the given payload (12 bytes, ")
	run(0, "run", "--drain", "-c", config)
	require.Equal(t, []string{`1: {"amount":1}`, `2true: {"amount":2}`, `3: {"amount":3}`}, receiver.all())

	// A replay delivers it again, and so does an answer to a receiver that lacks the record.
	run(0, "seek", "a", "--to-start", "-c", config, "--reason=again")
	run(0, "run", "--drain", "-c", config)
	require.Equal(t, `2true: {"amount":2}`, receiver.all()[4])
	require.Contains(t, run(0, "show", "a", "--after=1", "-c", config), `"body":"{\"amount\":2}"`)

	shown := run(0, "show", "a", "--id=2", "-c", config, "--payload")
	require.Contains(t, shown, "another payload is sent instead of that of the row")
	require.Regexp(t, `(?m)^  sent +\{"amount":2\}\n  of the row +\{"amount":-2\}$`, shown)
	require.Contains(t, run(0, "show", "a", "--id=2", "-c", config, "--payload", "--json"), `"amended_payload":"{\"amount\":2}"`)

	tailed := run(0, "tail", "a", "-c", config, "--once", "--payload")
	require.Regexp(t, `(?m)delivered  record 2, created [^,]+, amended by [^:]+: \{"amount":2\}$`, tailed)
	require.Regexp(t, `(?m)delivered  record 3, created [^,]+: \{"amount":3\}$`, tailed)
	require.Contains(t, run(0, "tail", "a", "-c", config, "--once", "--payload", "--json"), `"payload":"{\"amount\":-2}","amended_payload":"{\"amount\":2}"`)

	history := run(0, "history", "a", "--json")
	require.Contains(t, history, `"action":"amend"`)
	require.Contains(t, history, "a typing error")
	require.NotContains(t, history, "sha256", "a short payload could be guessed")
	require.NotContains(t, history, `\"amount\":2`)

	// Taken back, the row counts again.
	var events struct {
		Events []struct {
			Action string
			Detail struct{ Record_position string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(history), &events))
	at := ""
	for _, e := range events.Events {
		if e.Action == "amend" {
			at = e.Detail.Record_position
		}
	}
	require.Contains(t, run(0, "amend", "a", "--clear", "--at="+at, "--reason=wrong"), "is delivered as its row is")
	run(0, "seek", "a", "--to-start", "-c", config, "--reason=again")
	run(3, "run", "--drain", "-c", config)
}

// A dead letter of an amended record has the payload that was sent, and its replay sends that again.
func TestAmend_ADeadLetterHasTheAmendedPayload(t *testing.T) {
	t.Parallel()
	address, config, receiver := amounts(t, "halt")
	run := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := do(t, address, args...)
		require.Equal(t, want, code, "%v: %s%s", args, stdout, stderr)
		return stdout + stderr
	}
	run(3, "run", "--drain", "-c", config)
	run(0, "amend", "a", "-c", config, "--payload", file(t, `{"amount":0}`), "--reason=worse")
	letters := file(t, "processes: {a: {source: {table: public.amounts, columns: {payload: payload}}, sink: {webhook: {url: '"+receiver.URL+"'}}, on_poison: dead_letter}}\n")
	run(0, "run", "--drain", "-c", letters)
	shown := run(0, "dead-letter", "show", "1")
	require.Contains(t, shown, `"amended": true`)
	require.Equal(t, `{"amount":0}`, strings.TrimSpace(run(0, "dead-letter", "show", "1", "--payload")))
	require.Equal(t, []string{`1: {"amount":1}`, `3: {"amount":3}`}, receiver.all())
}
