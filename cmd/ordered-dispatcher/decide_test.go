package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// picky refuses the record of one sequence for good, until it is mended.
type picky struct {
	*httptest.Server
	refuses atomic.Value // the sequence
}

func newPicky(t testing.TB, sequence string) *picky {
	t.Helper()
	p := &picky{}
	p.refuses.Store(sequence)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Ordered-Sequence") == p.refuses.Load() {
			http.Error(w, "no such\x1b[31m booking", http.StatusUnprocessableEntity)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func TestDecide_WrongUse(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 1)
	config := processes(t, map[string]string{"a": "stdout: {}"})
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"skip", "a"}, 2, "--reason"},
		{[]string{"skip", "a", "--reason", " "}, 2, "--reason is missing or empty"},
		{[]string{"skip", "a", "--dry-run"}, 2, `process "a" has no cursor`}, // a rehearsal needs no reason
		{[]string{"pause"}, 2, "<process>"},
		{[]string{"seek", "a", "--to-end", "-c", config}, 2, "--reason"},
		{[]string{"seek", "a", "--to-end", "--reason=x"}, 2, "name the configuration with -c"},
		{[]string{"seek", "a", "--reason=x", "-c", config}, 2, "--to-id=ID or --to-time=TIME"},
		{[]string{"seek", "a", "--reason=x", "-c", config, "--to-start", "--to-end"}, 2, "can't be used together"},
		{[]string{"seek", "a", "--reason=x", "-c", config, "--to-time=noon"}, 2, "is not a time with a zone"},
		{[]string{"seek", "a", "--reason=x", "-c", config, "--to-time=2026-01-01T12:00:00"}, 2, "is not a time with a zone"},
		{[]string{"seek", "a", "--reason=x", "-c", config, "--to-position=int:00000000000000000008"}, 2, "does not belong to this source"},
		{[]string{"seek", "a", "--reason=x", "-c", config, "--to-id=7"}, 2, `no such record with id "7"`},
		{[]string{"seek", "a", "--reason=x", "-c", config, "--to-time=2999-01-01T12:00:00Z"}, 2, "the database's clock"},
		{[]string{"pause", "a", "--timeout=0s"}, 2, "--timeout"},
		{[]string{"history", "a", "--limit=0"}, 2, "--limit"},
		{[]string{"pause", "b"}, 2, `process "b" has no cursor, and no other process has one`},
		{[]string{"pause", "a"}, 2, `process "a" has no cursor`},
		{[]string{"pause", "b", "-c", config}, 2, `there is no process "b": there are a`},
		{[]string{"restored", "--all"}, 2, "--reason is missing"},
		{[]string{"restored", "--reason=x"}, 2, "name processes or give --all"},
		{[]string{"restored", "a", "--all", "--reason=x"}, 2, "name processes or give --all"},
		{[]string{"restored", "a", "--reason=x"}, 2, `process "a" has no cursor`},
		{[]string{"history", "a"}, 2, `process "a" has no cursor`},
	} {
		code, stdout, stderr := do(t, address, c.args...)
		require.Equal(t, c.code, code, c.args)
		require.Contains(t, stderr, c.stderr)
		require.Empty(t, stdout)
	}
	code, _, stderr := do(t, nowhere, "pause", "a")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "start the server, or correct host and port")
	require.NotContains(t, stderr, "CANARY")
}

func TestStatus_EndsWithThreeIfAProcessIsHalted(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 5)
	receiver := newPicky(t, "3")
	config := processes(t, map[string]string{"a": "webhook: {url: '" + receiver.URL + "'}", "b": "stdout: {}"})
	code, _, _ := do(t, address, "run", "--drain", "-c", config)
	require.Equal(t, 3, code)
	for _, args := range [][]string{{"status", "-c", config}, {"status", "--json"}, {"status", "a"}} {
		code, stdout, stderr := do(t, address, args...)
		require.Equal(t, 3, code)
		require.Contains(t, stdout, "halted")
		require.Contains(t, stderr, "a process is halted")
	}
	code, _, stderr := do(t, address, "status", "b", "-c", config)
	require.Zero(t, code, stderr)
}

// TestDecide_AHaltedProcess: the way out of a halt, beside the running program.
func TestDecide_AHaltedProcess(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 5)
	receiver := newPicky(t, "3")
	config := processes(t, map[string]string{"a": "webhook: {url: '" + receiver.URL + "'}"})
	p := start(t, address, "run", "-c", config)
	p.stderr.until(t, 1, "failed for good: the process is halted")
	decide := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := do(t, address, args...)
		require.Equal(t, want, code, stderr)
		return stdout + stderr
	}
	require.Contains(t, decide(1, "resume", "a"), "halted at record 3")
	require.Contains(t, decide(1, "pause", "a"), "`ordered-dispatcher retry a`")
	require.Contains(t, decide(1, "skip", "a", "--reason=x", "--expect=at.int:elsewhere"), "nothing was changed")
	rehearsed := decide(0, "skip", "a", "--dry-run")
	require.Regexp(t, `(?s)dry run, nothing is changed\. Without --dry-run: record 3 of a, at at\.int:\S+, would be passed\s+over: it would not be sent again; the process would run again\n`, rehearsed)
	require.Regexp(t, `--expect='\S+' --reason=TEXT instead of --dry-run\n$`, rehearsed)
	require.NotContains(t, decide(0, "skip", "a", "--dry-run", "--reason=x"), "--reason")
	require.NotContains(t, decide(0, "retry", "a", "--dry-run"), "--reason")
	require.Equal(t, 2, sequence(t, pool, "a"))

	require.Contains(t, decide(0, "retry", "a", "-c", config, "--actor=alice", "--reason=mended, I think"), "record 3 of a is tried again")
	p.stderr.until(t, 2, "failed for good: the process is halted")
	receiver.refuses.Store("4")
	require.Contains(t, decide(0, "retry", "a"), "record 3 of a is tried again")
	p.stderr.until(t, 3, "failed for good: the process is halted")
	require.Equal(t, 3, sequence(t, pool, "a"))
	require.Contains(t, decide(0, "skip", "a", "--reason=refunded by hand", "--actor=bob"), "record 4 of a, at at.int:")
	require.Eventually(t, func() bool { return sequence(t, pool, "a") == 5 }, patience, tick)
	require.Contains(t, decide(1, "retry", "a"), "no record is failing: the process is running")
	require.Contains(t, decide(1, "skip", "a", "--reason=x"), "no record is failing")
	p.stop()

	text := decide(0, "history", "a", "--wide")
	require.Regexp(t, `(?m)^2\S+Z +bob +\S+ +skip +4 +at\.int:\S+ +at\.int:\S+ +refunded by hand$`, text)
	require.Regexp(t, `(?m)^2\S+Z +alice +\S+ +retry +3 .*mended, I think`, text)
	require.Regexp(t, `(?m)^2\S+Z +\S+ +\S+ +halt +3 +.*422.*$`, text)
	require.NotContains(t, text, "\x1b")
	var document struct {
		Events []struct {
			ID, Process, Actor, Action, Reason string
			To                                 string `json:"to_position"`
			Detail                             map[string]any
		}
	}
	require.NoError(t, json.Unmarshal([]byte(decide(0, "history", "a", "--json", "--limit=2")), &document))
	require.Len(t, document.Events, 2)
	require.Equal(t, "skip", document.Events[0].Action)
	require.Equal(t, "4", document.Events[0].Detail["record_id"])
	require.Equal(t, "a", document.Events[0].Process)
	require.Equal(t, "halt", document.Events[1].Action)
}

func TestDecide_PauseLetsTheCallInFlightFinishAndResumeGoesOn(t *testing.T) {
	t.Parallel()
	const all = 500
	address, pool := database(t, all)
	receiver := slow(t)
	config := processes(t, map[string]string{"a": "webhook: {url: '" + receiver.URL + "'}"})
	p := start(t, address, "run", "-c", config)
	<-receiver.arrived
	code, _, stderr := do(t, address, "pause", "a", "--timeout=100ms")
	require.Equal(t, 1, code)
	require.Regexp(t, `pid \d+ \(application "ordered-dispatcher lease a", user "\w+"\) since 2.* is delivering; wait longer`, stderr)

	pause := start(t, address, "pause", "a", "-c", config)
	require.Eventually(t, func() bool {
		return pgtest.Value[bool](t, pool, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')")
	}, patience, tick)
	close(receiver.answer)
	require.Zero(t, pause.wait())
	require.Contains(t, pause.stdout.String(), "a is paused at at.int:")
	delivered, requests := sequence(t, pool, "a"), int(receiver.requests.Load())
	require.Equal(t, requests, delivered, "nothing is in flight")
	require.Less(t, delivered, all)
	code, stdout, _ := do(t, address, "pause", "a")
	require.Zero(t, code)
	require.Contains(t, stdout, "a is paused already")
	p.stderr.until(t, 1, "paused by an operator")

	code, stdout, _ = do(t, address, "resume", "a")
	require.Zero(t, code)
	require.Contains(t, stdout, "a runs on from at.int:")
	require.Eventually(t, func() bool { return sequence(t, pool, "a") == all }, patience, tick)
	code, stdout, _ = do(t, address, "resume", "a")
	require.Zero(t, code)
	require.Contains(t, stdout, "a is running already")
	p.stop()
	require.EqualValues(t, all, receiver.requests.Load(), "none twice")

	host, err := os.Hostname()
	require.NoError(t, err)
	_, stdout, _ = do(t, address, "history", "a")
	require.Contains(t, stdout, "@"+host, "the actor is who runs the program")
}

// TestDecide_SeekShowsWhatItWouldDoAndDoesIt: each kind of target, there and back.
func TestDecide_SeekShowsWhatItWouldDoAndDoesIt(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 50)
	config := processes(t, map[string]string{"a": "stdout: {}"})
	drained := func() []string {
		t.Helper()
		code, stdout, stderr := do(t, address, "run", "--drain", "-c", config)
		require.Zero(t, code, stderr)
		return ids(t, stdout)
	}
	require.Len(t, drained(), 50)
	position := func() string { return text(t, pool, "SELECT position FROM public.cursor") }
	end := position()
	at := pgtest.Value[time.Time](t, pool, "UPDATE public.bookings SET created_at = created_at + interval '1 microsecond' WHERE id = 40 RETURNING created_at")
	seek := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := do(t, address, append([]string{"seek", "a", "-c", config, "--reason=their restore"}, args...)...)
		require.Zero(t, code, stderr)
		return stdout
	}
	text := seek("--to-id=21", "--dry-run")
	require.Contains(t, text, "dry run, nothing is changed. Without --dry-run: a would go back from "+end+" to at.int:")
	require.Contains(t, text, ": 30 records would be sent again")
	require.Regexp(t, `(?m)^21 +2\S+Z +at\.int:\S+$`, text)
	require.Regexp(t, `(?m)^40 +2\S+Z +at\.int:\S+$`, text)
	require.NotRegexp(t, `(?m)^41 `, text)
	require.Contains(t, text, "… and 10 more of 30\n")
	require.NotContains(t, text, "c21", "no payload")
	require.Contains(t, text, "--expect='"+end+"'")
	require.Equal(t, end, position())
	require.Empty(t, drained())

	require.Contains(t, seek("--to-id=21", "--expect="+end), "a goes back from "+end)
	require.Equal(t, idsFrom(21), drained())
	require.Contains(t, seek("--to-time="+at.Format(time.RFC3339Nano)), ": 11 records are sent again")
	require.Equal(t, idsFrom(40), drained())
	require.Contains(t, seek("--to-start"), "to the beginning: 50 records are sent again")
	require.Contains(t, seek("--to-position="+end), ": 50 records are passed over for good")
	require.Empty(t, drained())
	require.Contains(t, seek("--to-beginning"), "a goes back from ")
	require.Contains(t, seek("--to-start"), "a stays at the beginning")
	require.Contains(t, seek("--to-end", "--dry-run"), "a would go on from the beginning to at.int:")
	seek("--to-end")
	insert(t, pool, 1)
	require.Equal(t, []string{"51"}, drained())

	code, _, stderr := do(t, address, "seek", "a", "-c", config, "--reason=x", "--to-end", "--expect="+end)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "nothing was changed")
}

// idsFrom are the ids up to 50.
func idsFrom(first int) (all []string) {
	for i := first; i <= 50; i++ {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

// TestDecide_SkipPassesOverNoMoreThanTheRecordItNames: not even if the source has
// been changed, so that others stand before it now.
func TestDecide_SkipPassesOverNoMoreThanTheRecordItNames(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 5)
	receiver := newPicky(t, "2")
	process := "processes: {a: {start: beginning, source: {table: public.bookings%s}, sink: {webhook: {url: '" + receiver.URL + "'}}}}"
	even, all := file(t, fmt.Sprintf(process, `, where: "id % 2 = 0"`)), file(t, fmt.Sprintf(process, ""))
	code, _, _ := do(t, address, "run", "--drain", "-c", even)
	require.Equal(t, 3, code)
	code, _, stderr := do(t, address, "skip", "a", "-c", all, "--reason=x")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "2 records lie between the cursor and the failing record 4, the first of them 3")
	code, stdout, _ := do(t, address, "skip", "a", "-c", even, "--reason=x", "--dry-run")
	require.Zero(t, code)
	require.Regexp(t, `(?m)^4 +2\S+Z +at\.int:\S+$`, stdout)
	code, stdout, _ = do(t, address, "skip", "a", "--reason=x", "--dry-run")
	require.Zero(t, code)
	require.Regexp(t, `(?m)^4 +- +at\.int:\S+$`, stdout)
	code, stdout, _ = do(t, address, "skip", "a", "-c", even, "--reason=x")
	require.Zero(t, code)
	require.Contains(t, stdout, "record 4 of a")
}
