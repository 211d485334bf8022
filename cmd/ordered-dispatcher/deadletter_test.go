package main_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
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

	code, stdout, _ := do(t, address, "dead-letter", "list", "--wide")
	require.Zero(t, code)
	require.Regexp(t, `1 +a +1 +\S+Z +1 +permanent +open +at\.int:\S+ +.*422 Unprocessable`, stdout)
	require.Regexp(t, `2 +a +2 `, stdout)
	_, stdout, _ = do(t, address, "dead-letter", "show", "1")
	require.Contains(t, stdout, `"record_id": "1"`)
	_, stdout, _ = do(t, address, "dead-letter", "show", "1", "--payload")
	require.Contains(t, stdout, `{"id":1,`)

	code, _, stderr = do(t, address, "dead-letter", "replay", "1", "-c", config)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "the dead letter stays open: fix the cause and replay it again, or discard it")
	mended.Store(true)
	code, stdout, _ = do(t, address, "dead-letter", "replay", "1", "-c", config, "--dry-run")
	require.Zero(t, code)
	require.Regexp(t, `^dry run, nothing is changed\. Without --dry-run: record 1 of a, put aside at position (at\.int:\S+) after 1 attempt, would be delivered once more\n`+
		`to do it only if it is still open: --expect='at\.int:\S+' instead of --dry-run\n$`, stdout)
	expect := regexp.MustCompile(`--expect='(\S+)'`).FindStringSubmatch(stdout)[1]
	code, _, stderr = do(t, address, "pause", "a", "--reason=a test")
	require.Zero(t, code, stderr)
	for _, more := range [][]string{{"--dry-run"}, {"--reason=the receiver is mended"}} {
		code, stdout, stderr = do(t, address, append([]string{"dead-letter", "replay", "1", "-c", config}, more...)...)
		require.Equal(t, 1, code, "a rehearsal refuses what the replay would: %s", stdout)
		require.Contains(t, stderr, "the process is paused; let it run first")
	}
	code, _, stderr = do(t, address, "resume", "a")
	require.Zero(t, code, stderr)
	code, _, stderr = do(t, address, "dead-letter", "replay", "2", "-c", config, "--expect", expect)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "nothing was changed: `ordered-dispatcher dead-letter list --wide` shows the positions")
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
	require.Equal(t, "no open dead letters; --all also lists the replayed and discarded ones\n", stdout)
	_, stdout, _ = do(t, address, "dead-letter", "list", "--all", "--json", "a")
	require.Contains(t, stdout, `"resolution":"discarded"`)
	require.Contains(t, stdout, `"resolution":"replayed"`)
}

// refused is a file whose receiver refuses every record, all of which became dead
// letters. The receiver notes the sequences of what it takes once it is changed.
func refused(t *testing.T, records int) (address, config string, pool *pgxpool.Pool, takes *atomic.Pointer[string], taken func() []string) {
	t.Helper()
	address, pool = database(t, records)
	takes = &atomic.Pointer[string]{}
	var mu sync.Mutex
	var sequences []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sequence := r.Header.Get("Ordered-Sequence")
		if takes := takes.Load(); takes == nil || !strings.Contains(*takes, sequence) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		sequences = append(sequences, sequence)
	}))
	t.Cleanup(receiver.Close)
	config = file(t, `processes: {a: {start: beginning, source: {table: public.bookings}, sink: {webhook: {url: "`+receiver.URL+`"}}, on_poison: dead_letter}}`)
	code, _, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Zero(t, code, stderr)
	return address, config, pool, takes, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(sequences)
	}
}

func TestDeadLetter_ReplayOfManyGoesByPositionAndStopsAtTheFirstThatFails(t *testing.T) {
	t.Parallel()
	address, config, pool, takes, taken := refused(t, 4)
	// The order in which they were put aside is another than that of their positions.
	execute(t, pool, `UPDATE public.dead_letter a SET position = b.position FROM public.dead_letter b WHERE a.id + b.id = 5`)

	code, stdout, stderr := do(t, address, "dead-letter", "replay", "-c", config, "--process", "a", "--all", "--dry-run")
	require.Zero(t, code, stderr)
	require.Regexp(t, `(?s)^dry run, nothing is changed\. Without --dry-run 4 dead letters of a would be delivered once more, in this order until one fails:\n`+
		`ID .*\n4 .*\n3 .*\n2 .*\n1 `, stdout)
	require.Empty(t, taken())

	some := "43"
	takes.Store(&some)
	code, _, stderr = do(t, address, "dead-letter", "replay", "-c", config, "--process", "a", "--all", "--reason=they take it now", "--actor=me")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "record 3 of a, dead letter 3, is delivered")
	require.Contains(t, stderr, "stopped at dead letter 2, the 3rd of 4")
	require.Equal(t, []string{"4", "3"}, taken())
	require.Equal(t, "dead_letter_replayed 4, dead_letter_replayed 3", text(t, pool, `SELECT string_agg(action || ' ' || (detail->>'dead_letter'), ', ' ORDER BY id)
		FROM public.cursor_event WHERE actor = 'me' AND reason = 'they take it now'`))

	rest := "12"
	takes.Store(&rest)
	code, _, stderr = do(t, address, "dead-letter", "replay", "-c", config, "1", "2")
	require.Zero(t, code, stderr)
	require.Equal(t, []string{"4", "3", "2", "1"}, taken())
	require.Contains(t, stderr, "2 dead letters of a are delivered")
	code, _, stderr = do(t, address, "dead-letter", "replay", "-c", config, "--process", "a", "--all")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "no open dead letters of a\n")
}

func TestDeadLetter_DiscardOfManyTakesThoseOfOneError(t *testing.T) {
	t.Parallel()
	address, config, pool, _, _ := refused(t, 4)
	execute(t, pool, `UPDATE public.dead_letter SET error = 'no such currency: ' || id WHERE id IN (2, 4)`)
	code, stdout, stderr := do(t, address, "dead-letter", "discard", "--process", "a", "--error", "such currency", "--dry-run")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "Without --dry-run 2 dead letters of a would be discarded, and never be delivered:\n")
	code, stdout, stderr = do(t, address, "dead-letter", "discard", "--process", "a", "--error", "such currency", "--reason=tests")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "2 dead letters of a are discarded")
	require.Equal(t, "1 3", text(t, pool, `SELECT string_agg(id::text, ' ' ORDER BY id) FROM public.dead_letter WHERE resolution IS NULL`))
	code, stdout, _ = do(t, address, "dead-letter", "discard", "--process", "a", "--error", "such currency", "--reason=tests")
	require.Zero(t, code)
	require.Equal(t, "no open dead letters of a have an error that contains 'such currency'\n", stdout)

	for want, args := range map[string][]string{
		"name the dead letters: give their numbers, or --process NAME with --all or --error TEXT": {"--process", "a"},
		"--all and --error need --process NAME":                                                   {"--all"},
		"give numbers of dead letters, or --all, or --error TEXT":                                 {"1", "--process", "a", "--all"},
		"--error is empty: --all means every open dead letter":                                    {"--process", "a", "--error", ""},
		"--expect needs the number of one dead letter":                                            {"1", "3", "--expect", "x"},
		`dead letter 1 belongs to process "a", not to "b"`:                                        {"1", "3", "--process", "b"},
		"can't be used together":                                                                  {"--process", "a", "--all", "--error", "x"},
	} {
		code, _, stderr := do(t, address, append([]string{"dead-letter", "discard", "--reason=tests"}, args...)...)
		require.Equal(t, 2, code, stderr)
		require.Contains(t, stderr, want)
	}
	code, _, stderr = do(t, address, "dead-letter", "replay", "-c", config, "1", "2")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no such open dead letter: it was discarded by ")
	require.Equal(t, "1 3", text(t, pool, `SELECT string_agg(id::text, ' ' ORDER BY id) FROM public.dead_letter WHERE resolution IS NULL`), "none of them was sent")
}

func TestDeadLetter_OfAProcessThatIsNotThereIsWrongUse(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 1)
	config := named(t, "bookings", ", start: beginning")
	must(t, address, "run", "--drain", "-c", config)
	for _, args := range [][]string{{"list", "boking"}, {"discard", "--process=boking", "--all", "--reason=x"}, {"replay", "--process=boking", "--all", "-c", config}} {
		code, stdout, stderr := do(t, address, append([]string{"dead-letter"}, args...)...)
		require.Equal(t, 2, code, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, `there is no process "boking": did you mean bookings? There are bookings`)
	}
	require.Contains(t, must(t, address, "dead-letter", "list", "bookings"), "no open dead letters")
	require.Contains(t, must(t, address, "dead-letter", "list", "--process", "bookings"), "no open dead letters")
}
