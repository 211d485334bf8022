package main_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeadLetter_FromTheListToTheReceiver(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 3)
	var mended atomic.Bool
	var last atomic.Pointer[http.Request]
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last.Store(r)
		if r.Header.Get("Ordered-Sequence") != "3" && !mended.Load() {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	}))
	t.Cleanup(receiver.Close)
	config := file(t, `processes: {a: {start: beginning, source: {table: public.bookings}, sink: {webhook: {url: "`+receiver.URL+`"}}, on_poison: dead_letter}}`)
	code, _, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Zero(t, code, stderr)

	code, stdout, _ := do(t, address, "dead-letter", "list")
	require.Zero(t, code)
	require.Regexp(t, `1 +a +1 +at\.int:\S+ .* 1 +permanent +open +.*422 Unprocessable`, stdout)
	require.Regexp(t, `2 +a +2 `, stdout)
	_, stdout, _ = do(t, address, "dead-letter", "show", "1")
	require.Contains(t, stdout, `"record_id": "1"`)
	_, stdout, _ = do(t, address, "dead-letter", "show", "1", "--payload")
	require.Contains(t, stdout, `{"id":1,`)

	code, _, stderr = do(t, address, "dead-letter", "replay", "1", "-c", config)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "the dead letter stays open: mend the cause and replay it again, or discard it")
	mended.Store(true)
	code, stdout, _ = do(t, address, "dead-letter", "replay", "1", "-c", config, "--dry-run")
	require.Zero(t, code)
	require.Regexp(t, `^dry run, nothing is changed\. Without --dry-run: record 1 of a, put aside at position (at\.int:\S+) after 1 attempt, is delivered once more\n`+
		`to do this if it is still open by then: --expect='at\.int:\S+' instead of --dry-run\n$`, stdout)
	expect := regexp.MustCompile(`--expect='(\S+)'`).FindStringSubmatch(stdout)[1]
	code, _, stderr = do(t, address, "dead-letter", "replay", "2", "-c", config, "--expect", expect)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "nothing was changed: `ordered-dispatcher dead-letter list` shows the positions")
	code, _, stderr = do(t, address, "dead-letter", "replay", "1", "-c", config, "--expect", expect, "--reason=the receiver is mended")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "record 1 of a, dead letter 1, is delivered")
	require.Equal(t, []string{"1", "2"}, []string{last.Load().Header.Get("Ordered-Sequence"), last.Load().Header.Get("Ordered-Attempt")})

	code, _, stderr = do(t, address, "dead-letter", "discard", "2")
	require.Equal(t, 2, code, "without a reason")
	require.Contains(t, stderr, "--reason")
	code, stdout, _ = do(t, address, "dead-letter", "discard", "2", "--reason=a test", "--actor=me")
	require.Zero(t, code)
	require.Contains(t, stdout, "record 2 of a, dead letter 2, is discarded: it is never delivered")
	code, _, stderr = do(t, address, "dead-letter", "discard", "2", "--reason=again")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no such open dead letter: it was discarded by me at ")
	require.Contains(t, stderr, "; `ordered-dispatcher dead-letter list` shows the open ones")

	_, stdout, _ = do(t, address, "dead-letter", "list")
	require.Equal(t, "no open dead letters; --all lists those that were replayed or discarded too\n", stdout)
	_, stdout, _ = do(t, address, "dead-letter", "list", "--all", "--json", "a")
	require.Contains(t, stdout, `"resolution":"discarded"`)
	require.Contains(t, stdout, `"resolution":"replayed"`)
}
