package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// forged begins a line only if a line break of others got through.
const forged = "FORGED"

// hostileText does to a terminal, a log and a shell what it can.
const hostileText = "a\x1b[2J\x1b]0;title\x07\r\x7f\u0085\u009b31m\u061c\u202e\u2066\u200f\u2028\u2029\t`$(touch " + forged + ")' \"\\x1b[8m\n" +
	forged + ": all is well\n{\"level\":\"" + forged + "\"}\n"

// hostileName is a name that a file may give to a process, and no shell may read.
const hostileName = "b'$(touch " + forged + "); \"`x`\""

// hostileTextConfig halts, puts aside and waits; its processes start where a test says.
func hostileTextConfig(t testing.TB, url, tries string) string {
	t.Helper()
	source := `source: {table: public.hostile, columns: {key: key, type: type, headers: headers, payload: payload}}, start: beginning, poll: 20ms`
	name := "'" + strings.ReplaceAll(hostileName, "'", "''") + "'"
	return file(t, fmt.Sprintf(`
processes:
  out: {%[1]s, sink: {stdout: {}}}
  aside: {%[1]s, sink: {webhook: {url: %[2]s}}, on_poison: dead_letter}
  tries: {%[1]s, sink: {webhook: {url: %[2]s/later}}, retry: {initial: 5ms, max: 20ms%[4]s}}
  raises: {%[1]s, sink: {sql: {statement: "SELECT public.refuse()"}}}
  speaks: {%[1]s, sink: {exec: {command: [sh, -c, 'printf "%%b" "$NOISE" >&2; exit 1'], env: {NOISE: 'a\033[2J\r\302\2332J\342\200\256x'}}}, retry: {attempts: 2, initial: 5ms}}
  %[3]s: {%[1]s, sink: {webhook: {url: %[2]s}}}
`, source, url, name, tries))
}

// hostileReceiver refuses everything, with words of its own.
func hostileReceiver(t testing.TB) string {
	t.Helper()
	mux := http.NewServeMux()
	refuse := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, "words of the receiver: "+hostileText)
		}
	}
	mux.HandleFunc("/", refuse(http.StatusUnprocessableEntity))
	mux.HandleFunc("/later", refuse(http.StatusServiceUnavailable))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// hostileRows are records and, for processes of a program with the library, cursors, audit and dead letters whose every text is hostile.
func hostileRows(t testing.TB) (address string) {
	t.Helper()
	address, pool := database(t, 0)
	literal := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
	h := literal(hostileText)
	execute(t, pool, strings.NewReplacer("HOSTILE", h, "NAME", literal(hostileName), "JSON", literal(mustJSON(t, map[string]string{hostileText: hostileText}))).Replace(`
		CREATE TABLE public.hostile (id text PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
			key text, type text, headers jsonb, payload jsonb);
		CREATE UNIQUE INDEX ON public.hostile (created_at, id);
		CREATE FUNCTION public.refuse() RETURNS void LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'words of the database: %', HOSTILE USING ERRCODE = '22000', DETAIL = HOSTILE, HINT = HOSTILE; END $$;
		INSERT INTO public.hostile (id, key, type, headers, payload) SELECT HOSTILE || i, HOSTILE, HOSTILE, '{"x-tenant": "t"}', JSON FROM generate_series(1, 3) i;
		INSERT INTO public.cursor (process_name, position, holder, state, failed_position, failed_record_id, failed_attempts, first_failed_at, last_failed_at, failed_error, failed_class)
			SELECT HOSTILE || class, HOSTILE, HOSTILE, 'halted', HOSTILE || 'z', HOSTILE, 3, now(), now(), HOSTILE, class FROM unnest('{permanent,unknown,restored}'::text[]) class;
		INSERT INTO public.cursor (process_name, position, holder, state) VALUES (HOSTILE, HOSTILE, HOSTILE, 'paused');
		INSERT INTO public.cursor_event (process_name, actor, action, reason, from_position, to_position, detail)
			SELECT name, HOSTILE, action, HOSTILE, HOSTILE, HOSTILE, jsonb_build_object('record_id', HOSTILE, HOSTILE, HOSTILE)
			FROM unnest(ARRAY[HOSTILE, 'out', NAME]) name, unnest(ARRAY['pause', HOSTILE]) action;
		INSERT INTO public.dead_letter (process_name, position, sequence, table_name, record_id, key, type, headers, payload, attempts, first_failed_at, error, class)
			SELECT name, HOSTILE, 1, HOSTILE, HOSTILE, HOSTILE, HOSTILE, JSON::json, convert_to(JSON, 'UTF8'), 1, now(), HOSTILE, HOSTILE FROM unnest(ARRAY[HOSTILE, 'aside']) name;`))
	return address
}

func mustJSON(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

// hostileTextCommands are all commands, on all that is hostile.
func hostileTextCommands(config string) [][]string {
	var all [][]string
	for _, process := range []string{hostileText, hostileName, "aside", "raises"} {
		all = append(all,
			[]string{"status", process}, []string{"history", process}, []string{"history", process, "--json"},
			[]string{"dead-letter", "list", process}, []string{"dead-letter", "list", process, "--json", "--all"},
			[]string{"pause", process, "--dry-run"}, []string{"pause", process, "--timeout=100ms", "--actor", hostileText, "--reason", hostileText},
			[]string{"resume", process, "--actor", hostileText}, []string{"retry", process, "--dry-run"}, []string{"retry", process, "-c", config, "--dry-run"},
			[]string{"skip", process, "--dry-run", "--reason", hostileText}, []string{"skip", process, "-c", config, "--reason", hostileText},
			[]string{"seek", process, "-c", config, "--to-start", "--dry-run", "--reason=x"}, []string{"seek", process, "-c", config, "--to-end", "--reason=x"},
			[]string{"seek", process, "-c", config, "--to-id", hostileText, "--reason=x"}, []string{"seek", process, "-c", config, "--to-position", hostileText, "--reason=x"},
			[]string{"pause", process, "--expect", hostileText + "x"}, []string{"retry", process}, []string{"resume", process},
			[]string{"process", "rename", process, "out"}, []string{"process", "rename", process, hostileText, "--dry-run"},
			[]string{"process", "forget", process, "--reason=x", "--dry-run"})
	}
	for _, process := range []string{hostileText, "aside"} {
		all = append(all, []string{"dead-letter", "replay", "-c", config, "--process", process, "--all", "--dry-run"},
			[]string{"dead-letter", "discard", "--process", process, "--error", hostileText, "--reason=x", "--dry-run"},
			[]string{"dead-letter", "discard", "--process", process, "--error", "no such " + hostileText, "--reason=x"})
	}
	for _, id := range []string{"1", "2"} {
		all = append(all, []string{"dead-letter", "show", id},
			[]string{"dead-letter", "replay", id, "-c", config, "--dry-run"}, []string{"dead-letter", "replay", id, "-c", config, "--timeout=5s"},
			[]string{"dead-letter", "discard", id, "--reason", hostileText, "--dry-run"}, []string{"dead-letter", "discard", id, "--reason", hostileText, "--actor", hostileText})
	}
	for _, process := range []string{hostileName, "out"} {
		all = append(all, []string{"prove", "-c", config, process, "--for=1ms", "--every=1ms"}, []string{"prove", "-c", config, process, "--for=1ms", "--every=1ms", "--json"},
			[]string{"adopt", "-c", config, process, "--dispatched-at=payload", "--watch=0s"}, []string{"adopt", "-c", config, process, "--dispatched-at=payload", "--watch=0s", "--json"},
			[]string{"adopt", "-c", config, process, "--dispatched-at", hostileText}, []string{"adopt", "-c", config, process, "--watermill", hostileText, "--watermill-offsets", hostileText})
	}
	return append(all,
		[]string{"prove", "--table", hostileText}, []string{"adopt", "-c", config, "no such " + hostileText, "--after", hostileText},
		[]string{"check", "-c", config}, []string{"doctor", "-c", config}, []string{"partitions", "-c", config}, []string{"partitions", "-c", config, hostileText}, []string{"partitions", "-c", config, "--json"}, []string{"grants", "-c", config, "--role", hostileText, "--operator", hostileName},
		[]string{"status"}, []string{"status", "--json"}, []string{"status", "-c", config}, []string{"status", "-c", config, "--json"},
		[]string{"dead-letter", "list"}, []string{"dead-letter", "list", "--all", "--json"}, []string{"migrate", "status"},
		[]string{"check", "-c", hostileText}, []string{"status", "no such " + hostileText}, []string{hostileText})
}

// requireVisible: no character moves a terminal, and no line is one of others.
func requireVisible(t testing.TB, text string, of ...any) {
	t.Helper()
	for line := range strings.Lines(text) {
		for _, r := range strings.TrimSuffix(line, "\n") {
			require.False(t, visible.Hidden(r) && r != '\t', "%q of %q", line, of)
		}
		require.False(t, strings.HasPrefix(line, forged) || strings.HasPrefix(line, `{"level":"`+forged), "%q of %q", line, of)
	}
}

// TestHostileText_NoCommandPassesItOn: not to a terminal, not to a log, and not to a shell.
func TestHostileText_NoCommandPassesItOn(t *testing.T) {
	t.Parallel()
	address := hostileRows(t)
	receiver := hostileReceiver(t)
	config := hostileTextConfig(t, receiver, "")
	p := start(t, address, "--log-level=debug", "run", "-c", config)
	p.stderr.until(t, 3, `"msg":"halted`)
	p.stderr.until(t, 3, "kept as a dead letter")
	p.stderr.until(t, 1, `"attempt":4`)
	for _, args := range hostileTextCommands(config) {
		_, stdout, stderr := do(t, address, args...)
		requireVisible(t, stdout+stderr, args)
		require.NotEmpty(t, stdout+stderr, args)
		requireShellSafe(t, stdout+stderr)
	}
	p.stop()
	_, stdout, stderr := do(t, address, "run", "--drain", "-c", hostileTextConfig(t, receiver, ", attempts: 1"))
	for what, text := range map[string]string{"log": p.stderr.String(), "the stdout sink": p.stdout.String(), "a drain": stderr, "its stdout": stdout} {
		if what != "the stdout sink" && what != "its stdout" { // for programs, token by token
			requireVisible(t, text, what)
		}
		for line := range strings.Lines(text) {
			var document map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &document), "%s: %s", what, line)
			require.NotEqual(t, forged, document["level"])
		}
	}
	require.Contains(t, p.stderr.String(), "words of the receiver: ", "the words themselves are there")
	require.Contains(t, p.stderr.String(), "words of the database: ")
	require.Contains(t, stderr, `"msg":"ended"`)
	require.Equal(t, 3, sequence(t, pgtest.Database(t), "out")%cursor.HistoryGap, "its numbers begin past others: a cursor is halted as restored")
}

// bare is a proposed command that names one of the processes as it is.
var bare = regexp.MustCompile("`ordered-dispatcher (?:[a-z-]+ ){1,2}(?:b'\\$|a\\\\u|a )")

// requireShellSafe: a proposed command names its process in quotes.
func requireShellSafe(t testing.TB, text string) {
	t.Helper()
	require.NotRegexp(t, bare, text)
}
