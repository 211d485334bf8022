package admin_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func (s *site) process(token string) desk.Process {
	s.t.Helper()
	return api[desk.Process](s, token, http.MethodGet, "/api/v1/processes/a", nil)
}

// until waits until process a is as wanted.
func (s *site) until(wanted func(desk.Process) bool) (p desk.Process) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		p = s.process(operateToken)
		return wanted(p)
	}, patience, 50*time.Millisecond)
	return p
}

func waits(n int64) func(desk.Process) bool {
	return func(p desk.Process) bool { return p.Waiting != nil && p.Waiting.Records == n }
}

func TestAPI_PauseSeeAndResume(t *testing.T) {
	t.Parallel()
	s := open(t, logins, processA)
	insert(t, s.pool, "ann", 3)
	s.until(func(p desk.Process) bool { return p.Sequence == 3 })

	o := desk.Order{Verb: desk.Pause, Process: "a"}
	preview := api[desk.Preview](s, operateToken, http.MethodPost, "/api/v1/preview", o)
	require.True(t, preview.Changes)
	require.Contains(t, preview.Text, "a would be paused at")
	require.Equal(t, "running", s.process(readToken).State, "a preview changes nothing")
	done := s.order(o, "a look at the table")
	require.True(t, done.Changed)

	insert(t, s.pool, "bob", 2)
	p := s.until(waits(2))
	require.Equal(t, "paused", p.State)
	require.Equal(t, desk.CausePause, p.Hold.Cause)
	require.Equal(t, "bob", p.Head.Key)
	require.Contains(t, p.Head.Payload, card)
	require.Equal(t, "alice", p.History[0].Actor)
	require.Equal(t, "a look at the table", p.History[0].Reason)
	require.Contains(t, p.Verbs, desk.Resume)

	s.order(desk.Order{Verb: desk.Resume, Process: "a"}, "")
	s.until(func(p desk.Process) bool { return p.Sequence == 5 })
}

func TestAPI_MasksPayloadsForThoseWhoMayOnlyLook(t *testing.T) {
	t.Parallel()
	s := open(t, logins, processA)
	s.until(func(p desk.Process) bool { return p.State == "running" })
	s.order(desk.Order{Verb: desk.Pause, Process: "a"}, "")
	insert(t, s.pool, "ann", 1)
	s.until(waits(1))
	for _, q := range []request{
		as(readToken, http.MethodGet, "/api/v1/processes/a", ""),
		as(readToken, http.MethodPost, "/api/v1/find", `{"by": "key", "text": "ann"}`),
		{path: "/api/v1/processes/a"},
	} {
		a := s.send(q)
		require.Equal(t, http.StatusOK, a.status, a.body)
		require.NotContains(t, a.body, card)
		require.Contains(t, a.body, `"masked":true`)
	}
	a := s.send(as(operateToken, http.MethodPost, "/api/v1/find", `{"by": "key", "text": "ann"}`))
	var found desk.Found
	require.NoError(t, json.Unmarshal([]byte(a.body), &found))
	require.Contains(t, found.Records[0].Record.Payload, card)
}

// With its digest, who may only look could guess a short payload.
func TestAPI_DigestsOfPayloadsAreHiddenLikePayloads(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnprocessableEntity) }))
	t.Cleanup(receiver.Close)
	s := open(t, logins, "  a: {source: {table: public.bookings, columns: {payload: payload}}, sink: {webhook: {url: "+receiver.URL+
		", secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}}, poll: 20ms, start: beginning}\n")
	insert(t, s.pool, "ann", 1)
	s.until(func(p desk.Process) bool { return p.State == "halted" })
	pgtest.Exec(t, s.pool, `INSERT INTO od.cursor_event (process_name, actor, action, detail) VALUES ('a', 'w', 'configure', '{"salt": "s", "sink": "exec"}'),
		('a', 'alice', 'amend', '{"original_sha256": "x", "payload_sha256": "y"}')`) // as a former version noted it
	o, err := daemon.NewOperator(t.Context(), s.config, "a")
	require.NoError(t, err)
	defer o.Close()
	_, err = o.Amend(t.Context(), []byte(`{"card": "4"}`), cursor.Decision{Actor: "alice", Reason: "a test", Timeout: patience})
	require.NoError(t, err)
	_, err = o.Unamend(t.Context(), pgtest.Value[cursor.Position](t, s.pool, "SELECT position FROM od.cursor_amended"), cursor.Decision{Actor: "alice", Reason: "a test", Timeout: patience})
	require.NoError(t, err)
	s.until(func(p desk.Process) bool {
		return slices.ContainsFunc(p.History, func(e desk.Event) bool { return e.Action == "unamend" })
	})

	kept := []string{`"original_sha256"`, `"payload_sha256"`, `"salt"`}
	for _, path := range []string{"/api/v1/audit", "/api/v1/processes/a"} {
		full := s.send(as(operateToken, http.MethodGet, path, "")).body
		for _, q := range []request{as(readToken, http.MethodGet, path, ""), {path: path}} {
			a := s.send(q)
			require.Contains(t, a.body, `"action":"amend"`)
			require.Contains(t, a.body, `"bytes":13`, "the other facts are shown")
			for _, name := range kept {
				require.NotContains(t, a.body, name)
				require.Contains(t, full, name)
			}
		}
	}
}
