package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// shown is what an answer has: the ids of its records, the actions by which others were passed, and its end.
type shown struct {
	ids     []string
	lines   []map[string]any
	omitted []string
	end     map[string]any
}

// parseShown reads the lines of an answer.
func parseShown(t testing.TB, text string) (s shown) {
	t.Helper()
	for line := range strings.Lines(text) {
		var one map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &one), line)
		require.Nil(t, s.end, "the end is last")
		switch {
		case one["end"] != nil:
			s.end = one["end"].(map[string]any)
		case one["omitted"] != nil:
			s.omitted = append(s.omitted, one["omitted"].(map[string]any)["action"].(string))
			s.ids = append(s.ids, "-")
		default:
			var row struct{ ID json.Number }
			require.NoError(t, json.Unmarshal([]byte(one["body"].(string)), &row))
			s.ids, s.lines = append(s.ids, row.ID.String()), append(s.lines, one)
		}
	}
	return s
}

func show(t testing.TB, config daemon.Config, ask daemon.Ask) shown {
	t.Helper()
	var out bytes.Buffer
	if ask.Limit == 0 {
		ask.Limit = 100
	}
	require.NoError(t, daemon.ShowRecords(t.Context(), config, "a", ask, &out))
	s := parseShown(t, out.String())
	require.NotNil(t, s.end)
	return s
}

// ids is where the answer's records begin and end.
func (s shown) text() string { return strings.Join(s.ids, " ") }

func TestShow_RecordsAfterANumberComeAgainPageByPage(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	before, err := newStore(t, pool).Look(t.Context(), "a")
	require.NoError(t, err)
	insert(t, pool, 3)                                           // not delivered yet
	begin(t, pool, "INSERT INTO public.bookings DEFAULT VALUES") // a writer holds back what is new, and nothing that was delivered

	all := show(t, config, daemon.Ask{After: 2})
	require.Equal(t, "3 4 5", all.text())
	require.Equal(t, map[string]any{"sequence": "5", "epoch": fmt.Sprint(before.Epoch), "origin": before.Origin, "position": string(before.Position)}, all.end)
	require.Equal(t, "true", all.lines[0]["ordered-replay"])
	require.Equal(t, "a", all.lines[0]["ordered-process"])
	require.Equal(t, before.Origin, all.lines[0]["ordered-origin"])
	require.Equal(t, fmt.Sprint(before.Epoch), all.lines[0]["ordered-epoch"])
	require.Equal(t, pgtest.Value[string](t, pool, `SELECT 'public.bookings/3/' || (extract(epoch FROM created_at) * 1000000)::bigint FROM public.bookings WHERE id = 3`), all.lines[0]["ordered-dedup-key"])
	require.Equal(t, pgtest.Value[string](t, pool, `SELECT row_to_json(b)::text FROM public.bookings b WHERE id = 3`), all.lines[0]["body"], "byte for byte")

	one := show(t, config, daemon.Ask{After: 2, Limit: 2})
	require.Equal(t, "3 4", one.text())
	require.NotContains(t, one.end, "sequence", "a receiver must not take this for all")
	two := show(t, config, daemon.Ask{After: 2, Limit: 2, From: daemon.Place{Position: cursor.Position(one.end["from"].(string))}})
	require.Equal(t, "5", two.text())
	require.Equal(t, all.end, two.end)
	require.Empty(t, show(t, config, daemon.Ask{After: 5}).text())
	require.Empty(t, show(t, config, daemon.Ask{After: 99}).text())
	require.Equal(t, "1 2 3 4 5", show(t, config, daemon.Ask{After: 0}).text())

	after, err := newStore(t, pool).Look(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, before, after, "nothing of the cursor changes")

	err = daemon.ShowRecords(t.Context(), config, "b", daemon.Ask{Limit: 1}, &bytes.Buffer{})
	require.ErrorContains(t, err, `there is no process "b"`)
	require.Equal(t, daemon.ExitUsage, daemon.ExitCode(err))
}

// refusing delivers to a receiver that refuses some sequences for good.
func refusing(t testing.TB, more string, sequences ...string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, sequence := range sequences {
			if r.Header.Get("Ordered-Sequence") == sequence {
				http.Error(w, "no", http.StatusUnprocessableEntity)
			}
		}
	}))
	t.Cleanup(server.Close)
	return "  a: {source: {table: public.bookings}, sink: {webhook: {url: '" + server.URL + "'}}, poll: 20ms" + more + "}\n"
}

// What the receiver never got, by an operator's decision or because it was put aside, does not come now. It is named.
func TestShow_NamesWhatWasSkippedSoughtPastOrPutAside(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, refusing(t, "", "3"))
	insert(t, pool, 4)
	require.Error(t, drain(t, config))
	o := operatorOf(t, config)
	_, err := o.Skip(t.Context(), cursor.Decision{Actor: "alice", Reason: "x"})
	require.NoError(t, err)
	require.NoError(t, drain(t, config))
	insert(t, pool, 3)
	_, err = o.Seek(t.Context(), daemon.ToRecord("7"), cursor.Decision{Actor: "alice", Reason: "x"}) // passes 5 and 6
	require.NoError(t, err)
	require.NoError(t, drain(t, config))
	s := show(t, config, daemon.Ask{After: 1})
	require.Equal(t, "2 - 4 - 7", s.text())
	require.Equal(t, []string{"skip", "seek"}, s.omitted)
	require.Equal(t, "- 7", show(t, config, daemon.Ask{After: 4}).text())
	require.Equal(t, "7", show(t, config, daemon.Ask{After: 4 + cursor.SeekGap}).text(), "a number after the leap")

	_, err = o.Seek(t.Context(), daemon.ToRecord("5"), cursor.Decision{Actor: "alice", Reason: "x"}) // back
	require.NoError(t, err)
	require.Equal(t, "2 - 4", show(t, config, daemon.Ask{After: 1}).text(), "the others come by themselves")
	require.NoError(t, drain(t, config))
	require.Equal(t, "2 - 4 5 6 7", show(t, config, daemon.Ask{After: 1}).text())
	require.Equal(t, "5 6 7", show(t, config, daemon.Ask{After: 4 + cursor.SeekGap}).text(), "a receiver that was after 6 then got 5 and 6 since")
}

func TestShow_ADeadLetterComesOnceItWasReplayed(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, refusing(t, ", on_poison: dead_letter, dead_letter_run: 10", "2", "3"))
	insert(t, pool, 4)
	require.NoError(t, drain(t, config))
	s := show(t, config, daemon.Ask{After: 0})
	require.Equal(t, "1 - - 4", s.text())
	require.Equal(t, []string{"dead_letter", "dead_letter"}, s.omitted)

	config.Processes = configure(t, config.Database, refusing(t, "")).Processes // it takes all now
	replay(t, config, 1)
	require.Equal(t, "1 - 4 2", show(t, config, daemon.Ask{After: 0}).text())
}

// replay has dead letters delivered.
func replay(t testing.TB, config daemon.Config, ids ...int64) {
	t.Helper()
	letters, err := daemon.NewDeadLetters(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(letters.Close)
	selected, err := letters.Select(t.Context(), daemon.Selection{IDs: ids}, cursor.Decision{Actor: "alice"}, cursor.Replayed)
	require.NoError(t, err)
	require.NoError(t, letters.Replay(t.Context(), selected, cursor.Decision{Actor: "alice", Timeout: patience}, daemon.Output{Stdout: &bytes.Buffer{}}, func(cursor.DeadLetter) error { return nil }))
}

// withReplays is a process that has delivered 1, 4, 5, 6, the dead letters 2 and 3, and 7.
func withReplays(t testing.TB) (*pgxpool.Pool, daemon.Config) {
	t.Helper()
	pool, config := fixture(t, refusing(t, ", on_poison: dead_letter, dead_letter_run: 10", "2", "3"))
	insert(t, pool, 4)
	require.NoError(t, drain(t, config))
	config.Processes = configure(t, config.Database, refusing(t, "")).Processes
	insert(t, pool, 2)
	require.NoError(t, drain(t, config))
	replay(t, config, 1, 2)
	insert(t, pool, 1)
	require.NoError(t, drain(t, config))
	return pool, config
}

// A receiver whose database was put back lacks the replays that came since, whichever record they were of.
func TestShow_AReplayComesWhereItCame(t *testing.T) {
	t.Parallel()
	pool, config := withReplays(t)
	require.Equal(t, "1 4 5 6 2 3 7", show(t, config, daemon.Ask{After: 0}).text())
	all := show(t, config, daemon.Ask{After: 5})
	require.Equal(t, "6 2 3 7", all.text(), "their own numbers are below")
	for i, want := range []string{"7", "2", "3", "7"} {
		require.Equal(t, want, all.lines[i]["ordered-sequence"])
		require.Equal(t, "true", all.lines[i]["ordered-replay"])
	}
	require.Equal(t, "2 3 7", show(t, config, daemon.Ask{After: 6}).text())
	require.Equal(t, "2 3", show(t, config, daemon.Ask{After: 7}).text(), "a worker that died may have sent 7 before")

	var pages []string
	for from, last := (daemon.Place{}), map[string]any(nil); last["sequence"] == nil; {
		page := show(t, config, daemon.Ask{After: 5, Limit: 1, From: from})
		pages, last = append(pages, page.text()), page.end
		if last["from"] != nil {
			var err error
			from, err = daemon.ParsePlace(last["from"].(string))
			require.NoError(t, err)
		}
	}
	require.Equal(t, []string{"6", "2", "3", "7"}, pages)

	exec(t, pool, "DELETE FROM public.bookings WHERE id = 2; UPDATE public.bookings SET customer = 'other' WHERE id = 3")
	require.Equal(t, all.lines, show(t, config, daemon.Ask{After: 5}).lines, "as the replay sent them")
}

// Where a replay cannot be shown, the answer says that there was one.
func TestShow_NamesAReplayThatItDoesNotHave(t *testing.T) {
	t.Parallel()
	pool, config := withReplays(t)
	exec(t, pool, "UPDATE od.dead_letter SET key = '', headers = '{}', payload = NULL, error = 'erased' WHERE id = 1; DELETE FROM od.dead_letter WHERE id = 2")
	s := show(t, config, daemon.Ask{After: 5})
	require.Equal(t, "6 - - 7", s.text())
	require.Equal(t, []string{"dead_letter_replayed", "dead_letter_replayed"}, s.omitted)

	exec(t, pool, "UPDATE od.cursor_event SET detail = detail - 'sequence' - 'position'") // by an older version: it may have come before
	s = show(t, config, daemon.Ask{After: 5})
	require.Equal(t, "- - 6 7", s.text())
	require.Equal(t, []string{"dead_letter_replayed", "dead_letter_replayed"}, s.omitted)
}

// A receiver gets the body that the sink posts.
func TestShow_ABodyIsTheOneOfTheSink(t *testing.T) {
	t.Parallel()
	type request struct{ contentType, body string }
	posted := make(chan request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posted <- request{r.Header.Get("Content-Type"), string(body)}
	}))
	t.Cleanup(server.Close)
	for _, format := range []string{"cloudevents", "cloudevents_structured"} {
		t.Run(format, func(t *testing.T) {
			pool, config := fixture(t, "  a: {source: {table: public.bookings}, sink: {webhook: {url: '"+server.URL+"', format: "+format+"}}, poll: 20ms}\n")
			insert(t, pool, 1)
			require.NoError(t, drain(t, config))
			var out bytes.Buffer
			require.NoError(t, daemon.ShowRecords(t.Context(), config, "a", daemon.Ask{Limit: 1}, &out))
			var line map[string]any
			require.NoError(t, json.NewDecoder(&out).Decode(&line))
			require.Equal(t, waittest.Receive(t, posted, "the receiver has the call"), request{line["content-type"].(string), line["body"].(string)})
		})
	}
}

func TestShow_SaysWhatRetentionRemoved(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "mode: delete, keep: 24h", 4)
	_, err := prune(t, config)
	require.NoError(t, err)
	require.Equal(t, 3, count(t, pool, "SELECT count(*) FROM public.bookings"))
	require.Equal(t, "5 6 7", show(t, config, daemon.Ask{After: 4}).text())
	err = daemon.ShowRecords(t.Context(), config, "a", daemon.Ask{After: 3, Limit: 10}, &bytes.Buffer{})
	require.ErrorIs(t, err, daemon.ErrRemoved)
	require.ErrorContains(t, err, "records of public.bookings up to position "+string(oldAt(4))+" were removed (retention, mode delete)")
	require.Equal(t, daemon.ExitFailed, daemon.ExitCode(err))
	require.Equal(t, "5 6 7", show(t, config, daemon.Ask{After: 3, Pruned: true}).text())
}

// during calls f before the first write.
type during struct {
	io.Writer
	f func()
}

func (d *during) Write(b []byte) (int, error) {
	if d.f != nil {
		d.f()
		d.f = nil
	}
	return d.Writer.Write(b)
}

// twoReads is as many records as take two reads of the table.
const twoReads = 130

func TestShow_APruneBetweenTwoReadsEndsTheAnswer(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]daemon.Ask{"refused": {Limit: 200}, "one page": {Limit: 120}, "pruned": {Limit: 200, Pruned: true}} {
		t.Run(name, func(t *testing.T) {
			pool, config := aged(t, stdoutProcess, "mode: delete, keep: 24h", twoReads)
			var out bytes.Buffer
			err := daemon.ShowRecords(t.Context(), config, "a", ask, &during{&out, func() { pruned(t, config) }})
			require.Equal(t, 3, staying(t, pool))
			s := parseShown(t, out.String())
			if ask.Pruned {
				require.NoError(t, err)
				require.Equal(t, "133", s.end["sequence"])
				require.Len(t, s.ids, 103)
				return
			}
			require.ErrorIs(t, err, daemon.ErrRemoved)
			require.ErrorContains(t, err, "--pruned")
			require.Equal(t, daemon.ExitFailed, daemon.ExitCode(err))
			require.Nil(t, s.end, "it is not complete")
			require.Len(t, s.ids, 100)
		})
	}
}

// The buffers of the connection hold some of the records, and the server writes no more while the client does not read.
// So it reads the last ones from the table after the prune.
func TestRecords_APruneBetweenTwoReadsEndsTheAnswer(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "mode: delete, keep: 24h", twoReads)
	exec(t, pool, "UPDATE public.bookings SET customer = repeat('x', 120000)")
	worker := config
	worker.Rules = nil
	m := asking(t, worker)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.url+"/records/a?after=0&limit=1000", nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+listenToken)
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(128 << 10)
		}
		return conn, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	response, err := transport.RoundTrip(request)
	require.NoError(t, err)
	defer response.Body.Close()
	pruned(t, config)
	require.Equal(t, 3, staying(t, pool))
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	last := len(lines) - 1
	require.JSONEq(t, `{"error": "the answer is not complete: see the worker's log, and ask again"}`, lines[last])
	s := parseShown(t, strings.Join(lines[:last], "\n"))
	require.Nil(t, s.end)
	require.NotEmpty(t, s.lines)
	require.Less(t, len(s.lines), twoReads)
	again, said := m.ask("Bearer "+listenToken, "/records/a?after=0")
	require.Equal(t, http.StatusGone, again.StatusCode, said)
}

// What a read has found may go after it.
func TestShow_APruneAfterTheLastReadOfItsRowsIsNoLoss(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "mode: delete, keep: 24h", 4)
	var out bytes.Buffer
	require.NoError(t, daemon.ShowRecords(t.Context(), config, "a", daemon.Ask{Limit: 100}, &during{&out, func() { pruned(t, config) }}))
	require.Equal(t, 3, staying(t, pool))
	s := parseShown(t, out.String())
	require.Equal(t, "1 2 3 4 5 6 7", s.text())
	require.Equal(t, "7", s.end["sequence"])
}

// An erased row that is still there comes as it is now, under its old key.
func TestShow_ABlankedRowComesAsItIsNow(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "ALTER TABLE public.bookings ADD note text DEFAULT 'personal'")
	config := ruled(t, stdoutProcess, "public.bookings", "keep: 24h")
	insert(t, pool, 2)
	deliver(t, config)
	before := show(t, config, daemon.Ask{})
	require.Contains(t, before.lines[0]["body"], "personal")
	_, err := daemon.Erase(t.Context(), config, "public.bookings", table.Erase{By: "id", Key: "1", Blank: []string{"note"}}, byAnn)
	require.NoError(t, err)
	after := show(t, config, daemon.Ask{})
	require.Equal(t, "1 2", after.text())
	require.Contains(t, after.lines[0]["body"], `"note":null`)
	require.Equal(t, before.lines[0]["ordered-dedup-key"], after.lines[0]["ordered-dedup-key"])
	require.Equal(t, before.lines[1], after.lines[1])
}

// A record that is deleted after it was sent has no row. The answer then begins earlier, and lacks none of the others.
func TestShow_ADeletedRowMakesItBeginEarlier(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	exec(t, pool, "DELETE FROM public.bookings WHERE id = 4")
	require.Equal(t, "2 3 5", show(t, config, daemon.Ask{After: 2}).text())
	require.Equal(t, "1 2 3 5", show(t, config, daemon.Ask{After: 0}).text(), "not before the cursor began")
}

// Events of older versions have no numbers. Then a place is found by its rows, or refused.
func TestShow_ANumberBeforeASeekOfAnOlderVersionIsRefused(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	_, err := operatorOf(t, config).Seek(t.Context(), daemon.ToRecord("4"), cursor.Decision{Actor: "alice", Reason: "x"})
	require.NoError(t, err)
	require.NoError(t, drain(t, config))
	exec(t, pool, "UPDATE od.cursor_event SET detail = detail - 'from_sequence' - 'to_sequence'")
	require.Equal(t, "5", show(t, config, daemon.Ask{After: 6 + cursor.SeekGap}).text())
	err = daemon.ShowRecords(t.Context(), config, "a", daemon.Ask{After: 4, Limit: 10}, &bytes.Buffer{})
	require.ErrorIs(t, err, daemon.ErrNumber)
	require.ErrorContains(t, err, "`seek`")
}

func TestShow_ARecordGoesOutAsADeliveryWould(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, "  a: {source: {table: public.bookings, columns: {type: customer}}, sink: {stdout: {}}, poll: 20ms, upcast: {c@1: '{id, new: true}'}}\n")
	insert(t, pool, 1)
	require.NoError(t, drain(t, config))
	s := show(t, config, daemon.Ask{After: 0})
	require.Equal(t, `{"id":1,"new":true}`, s.lines[0]["body"])
	require.Equal(t, "c@2", s.lines[0]["ordered-type"])

	config = configure(t, config.Database, strings.Replace("  a: {source: {table: public.bookings, columns: {type: customer}}, sink: {stdout: {}}, upcast: {c@1: 'PROGRAM'}}\n", "PROGRAM", `error("no")`, 1))
	var out bytes.Buffer
	err := daemon.ShowRecords(t.Context(), config, "a", daemon.Ask{Limit: 1}, &out)
	require.ErrorContains(t, err, "record 1 at ")
	require.ErrorContains(t, err, "cannot be shown")
	require.Empty(t, out.String(), "no end: the answer is not complete")
}

const listenToken = "0123456789abcdef0123456789abcdef"

// asking is a daemon that receivers may ask.
func asking(t testing.TB, config daemon.Config) *monitored {
	t.Helper()
	config.ListenToken = "another-token-that-is-going-away " + listenToken
	return monitor(t, config)
}

// ask returns status and text of an answer.
func (m *monitored) ask(token, path string) (*http.Response, string) {
	m.t.Helper()
	request, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet, m.url+path, nil)
	require.NoError(m.t, err)
	if token != "" {
		request.Header.Set("Authorization", token)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(m.t, err)
	defer response.Body.Close()
	var body bytes.Buffer
	_, err = body.ReadFrom(response.Body)
	require.NoError(m.t, err)
	return response, body.String()
}

func TestRecords_AnswersOnlyWhoKnowsTheToken(t *testing.T) {
	t.Parallel()
	_, config := drained(t, stdoutProcess)
	m := asking(t, config)
	for _, token := range []string{"", listenToken, "Bearer", "Bearer ", "Bearer x", "Basic " + listenToken, "Bearer " + listenToken + "x", "Bearer another-token-that-is-going-away " + listenToken} {
		response, text := m.ask(token, "/records/a?after=2")
		require.Equal(t, http.StatusUnauthorized, response.StatusCode, token)
		require.Equal(t, "Bearer", response.Header.Get("WWW-Authenticate"))
		require.NotContains(t, text, "ordered-")
	}
	response, text := m.ask("", "/records/unknown?after=2")
	require.Equal(t, http.StatusUnauthorized, response.StatusCode, "not even names are shown: "+text)
	for _, token := range []string{"Bearer " + listenToken, "bearer " + listenToken, "Bearer another-token-that-is-going-away"} {
		response, text := m.ask(token, "/records/a?after=2")
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Equal(t, "application/x-ndjson", response.Header.Get("Content-Type"))
		require.Equal(t, "no-store", response.Header.Get("Cache-Control"))
		require.Equal(t, "3 4 5", parseShown(t, text).text())
	}
	for path, want := range map[string]int{
		"/records/b?after=2":            http.StatusNotFound,
		"/records/a":                    http.StatusBadRequest,
		"/records/a?after=x":            http.StatusBadRequest,
		"/records/a?after=-1":           http.StatusBadRequest,
		"/records/a?after=1&from=x":     http.StatusBadRequest,
		"/records/a?after=1&from=int:1": http.StatusConflict,
		"/records/a?after=1&from=0%2B":  http.StatusBadRequest,
		"/records/a?after=2&after=3":    http.StatusBadRequest,
		"/records/a?after=2&limit=0":    http.StatusBadRequest,
		"/records/a?after=2&limit=1001": http.StatusBadRequest,
		"/records/a?after=2&form=1":     http.StatusBadRequest,
	} {
		response, text := m.ask("Bearer "+listenToken, path)
		require.Equal(t, want, response.StatusCode, path+" "+text)
	}
	response, text = m.ask("Bearer "+listenToken, "/records/a?after=2&limit=1")
	require.Equal(t, http.StatusOK, response.StatusCode)
	page := parseShown(t, text)
	require.Equal(t, "3", page.text())
	_, text = m.ask("Bearer "+listenToken, "/records/a?after=2&from="+url.QueryEscape(page.end["from"].(string)))
	require.Equal(t, "4 5", parseShown(t, text).text())
	require.NotContains(t, m.log.String(), listenToken)
}

func TestRecords_AreNotServedWithoutAToken(t *testing.T) {
	t.Parallel()
	_, config := drained(t, stdoutProcess)
	m := monitor(t, config)
	response, _ := m.ask("Bearer ", "/records/a?after=2")
	require.Equal(t, http.StatusNotFound, response.StatusCode)
}

func TestRecords_ANumberThatIsGoneOrNotKnownIsAStatus(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "mode: delete, keep: 24h", 4)
	_, err := prune(t, config)
	require.NoError(t, err)
	m := asking(t, config)
	response, text := m.ask("Bearer "+listenToken, "/records/a?after=1")
	require.Equal(t, http.StatusGone, response.StatusCode)
	require.Contains(t, text, "retention")
	response, text = m.ask("Bearer "+listenToken, "/records/a?after=1&pruned=true")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "5 6 7", parseShown(t, text).text())
	exec(t, pool, "UPDATE od.cursor SET sequence = 200000")
	response, text = m.ask("Bearer "+listenToken, "/records/a?after=1")
	require.Equal(t, http.StatusConflict, response.StatusCode)
	require.Contains(t, text, "199999 records back")
}

// A hundred clients that hold a connection open take none of the database, and no one's turn.
func TestRecords_IdleClientsCostNothing(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	m := asking(t, config)
	held := make([]*http.Response, 0, 100)
	for range 100 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.url+"/records/a?after=2", nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+listenToken)
		client := &http.Client{Transport: &http.Transport{}}
		response, err := client.Do(request) // and its body is not read
		require.NoError(t, err)
		held = append(held, response)
	}
	t.Cleanup(func() {
		for _, response := range held {
			_ = response.Body.Close()
		}
	})
	require.LessOrEqual(t, count(t, pool, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'ordered-dispatcher%'"), 5)
	var answered atomic.Bool
	require.Eventually(t, func() bool {
		response, text := m.ask("Bearer "+listenToken, "/records/a?after=2")
		answered.Store(response.StatusCode == http.StatusOK && parseShown(t, text).text() == "3 4 5")
		return answered.Load()
	}, patience, 20*time.Millisecond)
}

// The role of the workers needs two rights more, which grants prints.
func TestGrants_LetAWorkerShowRecords(t *testing.T) {
	t.Parallel()
	pool, config := withReplays(t)
	config.ListenToken = listenToken
	name, address := role(t, pool)
	var sql bytes.Buffer
	require.NoError(t, daemon.Grants(t.Context(), &sql, daemon.GrantsConfig{Config: config, Role: name}))
	pgtest.Exec(t, pool, sql.String())
	config.Database = address
	require.Equal(t, "6 2 3 7", show(t, config, daemon.Ask{After: 5}).text())
	m := asking(t, config)
	response, text := m.ask("Bearer "+listenToken, "/records/a?after=2")
	require.Equal(t, http.StatusOK, response.StatusCode, text+m.log.String())
}

func TestParse_AListenToken(t *testing.T) {
	t.Parallel()
	const rest = "\nprocesses:\n  a: {source: {table: public.bookings}, sink: {stdout: {}}, start: beginning}\n"
	config, err := parse("listen_token: ${SMS_SECRET} " + listenToken + rest)
	require.NoError(t, err)
	require.Equal(t, secrets["SMS_SECRET"]+" "+listenToken, config.ListenToken)
	for token, want := range map[string]string{
		"''":                   "it is empty",
		"short":                "between 24 and 512 characters, and this one has 5",
		listenToken + " short": "this one has 5",
		"'äöüäöüäöüäöüäöüäöüäöüäöü'": "not printable ASCII",
		strings.Repeat("x", 513):     "this one has 513",
	} {
		_, err := parse("listen_token: " + token + rest)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), listenToken)
	}
}
