package admin_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// rejecting is a process that puts every record of eve aside.
func rejecting(t testing.TB) string {
	t.Helper()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "poison") {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	}))
	t.Cleanup(receiver.Close)
	return "  a: {source: {table: public.bookings, columns: {key: customer, payload: payload}}, sink: {webhook: {url: " + receiver.URL +
		", secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}}, poll: 20ms, start: beginning, on_poison: dead_letter, limit: 1000/s}\n"
}

// Every route, asked as a client made from the description would ask. The helper that sends the requests holds the
// answers against the description, too.
func TestAPI_EveryRouteAnswersAsDescribed(t *testing.T) {
	t.Parallel()
	s := open(t, logins, rejecting(t))
	insert(t, s.pool, "ann", 2)
	pgtest.Exec(t, s.pool, `INSERT INTO public.bookings (customer, payload) VALUES ('eve', '{"poison": true}'), ('eve', '{"poison": true}')`)
	s.until(func(p desk.Process) bool { return p.Sequence == 4 && len(p.History) > 0 })
	holder := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{ApplicationName: "nightly import"})
	tx := pgtest.Begin(t, holder, "INSERT INTO public.bookings DEFAULT VALUES")
	insert(t, s.pool, "ann", 1)
	s.until(func(p desk.Process) bool { return p.Hold != nil && len(p.HeldBy) == 1 && len(p.Held) > 0 })

	seen := map[string]bool{}
	for _, q := range []request{
		as(operateToken, http.MethodGet, "/api/v1/me", ""),
		as(operateToken, http.MethodGet, "/api/v1/fleet", ""),
		as(operateToken, http.MethodGet, "/api/v1/processes/a", ""),
		as(operateToken, http.MethodPost, "/api/v1/tail", `{"process": "a", "limit": 2}`),
		as(operateToken, http.MethodPost, "/api/v1/find", `{"by": "key", "text": "eve", "process": "a"}`),
		as(operateToken, http.MethodPost, "/api/v1/dead-letters", `{"process": "a", "error": "422", "resolved": true, "limit": 10}`),
		as(operateToken, http.MethodGet, "/api/v1/dead-letters/1", ""),
		as(operateToken, http.MethodGet, "/api/v1/audit?process=a&limit=1", ""),
		as(operateToken, http.MethodGet, "/api/v1/audit?decisions=true&before=100000&action=pause&actor=alice", ""),
		as(operateToken, http.MethodGet, "/api/v1/doctor", ""),
		as(operateToken, http.MethodPost, "/api/v1/preview", `{"verb": "seek", "process": "a", "to": {"kind": "start"}}`),
		as(operateToken, http.MethodPost, "/api/v1/preview", `{"verb": "discard", "process": "a", "letters": ["1"]}`),
		as(operateToken, http.MethodPost, "/api/v1/preview", `{"verb": "replay", "process": "a", "all_letters": true}`),
		as(operateToken, http.MethodGet, "/api/v1/openapi.yaml", ""),
	} {
		asked(t, s, q)
		a := s.send(q)
		require.Equal(t, http.StatusOK, a.status, "%s %s", q.path, a.body)
		seen[q.path] = true
	}
	preview := api[desk.Preview](s, operateToken, http.MethodPost, "/api/v1/preview", desk.Order{Verb: desk.Discard, Process: "a", Letters: []desk.IDText{2}})
	decide := as(operateToken, http.MethodPost, "/api/v1/decide",
		fmt.Sprintf(`{"order": {"verb": "discard", "process": "a", "letters": ["2"]}, "reason": "a test", "expect": %q}`, preview.Expect))
	asked(t, s, decide)
	require.Equal(t, http.StatusOK, s.send(decide).status)
	seen[decide.path] = true
	again := s.send(decide)
	require.Equal(t, http.StatusNotFound, again.status, again.body)

	for _, c := range []struct {
		request
		want int
	}{
		{as(operateToken, http.MethodGet, "/api/v1/processes/b", ""), http.StatusNotFound},
		{as(operateToken, http.MethodGet, "/api/v1/dead-letters/999", ""), http.StatusNotFound},
		{as(operateToken, http.MethodGet, "/api/v1/dead-letters/x", ""), http.StatusBadRequest},
		{as(operateToken, http.MethodPost, "/api/v1/preview", `{"verb": "retry", "process": "a"}`), http.StatusUnprocessableEntity},
		{as(operateToken, http.MethodPost, "/api/v1/preview", `{"verb": "pause", "process": "b"}`), http.StatusBadRequest},
		{as(operateToken, http.MethodPost, "/api/v1/decide", `{"order": {"verb": "pause", "process": "a"}, "expect": "{\"state\":\"paused\"}"}`), http.StatusConflict},
		{as(operateToken, http.MethodPost, "/api/v1/tail", `{"process": "a", "limit": -1}`), http.StatusBadRequest},
		{as(operateToken, http.MethodGet, "/api/v1/nothing", ""), http.StatusNotFound},
	} {
		a := s.send(c.request)
		require.Equal(t, c.want, a.status, "%s %s: %s", c.path, c.body, a.body)
	}
	require.NoError(t, tx.Rollback(t.Context()))

	document, _ := described(t)
	for path := range document.Paths.Map() {
		pattern, _, _ := strings.Cut(path, "{")
		require.True(t, path == "/api/v1/events" || func() bool {
			for asked := range seen {
				if strings.HasPrefix(asked, pattern) {
					return true
				}
			}
			return false
		}(), "no test asks %s", path)
	}
}

func TestAPI_ADeadLetterHasNoTimeAndNoSizeThatIsNotSo(t *testing.T) {
	t.Parallel()
	s := open(t, logins, rejecting(t))
	pgtest.Exec(t, s.pool, `INSERT INTO public.bookings (customer, payload) VALUES ('eve', '{"poison": true}')`)
	s.until(func(p desk.Process) bool { return p.Sequence == 1 })
	one := api[desk.Letter](s, readToken, http.MethodGet, "/api/v1/dead-letters/1", nil)
	list := api[desk.Letters](s, readToken, http.MethodPost, "/api/v1/dead-letters", map[string]any{})
	found := api[desk.Found](s, readToken, http.MethodPost, "/api/v1/find", map[string]any{"by": "key", "text": "eve"})
	for _, l := range []desk.Letter{one, list.Letters[0], *found.Records[0].Letter} {
		require.Equal(t, l.At, l.Failure.Last)
		require.False(t, l.Failure.First.After(l.Failure.Last))
	}
	require.Equal(t, found.Records[0].Letter.Failure, *found.Records[0].Failure)
	require.EqualValues(t, len(`{"poison": true}`), *one.Record.PayloadBytes)
	require.Nil(t, list.Letters[0].Record.PayloadBytes, "a list does not read payloads")
}

func TestAPI_ATextReachesTheGroupsThatAListLeavesOut(t *testing.T) {
	t.Parallel()
	s := open(t, logins, rejecting(t))
	pgtest.Exec(t, s.pool, `INSERT INTO public.bookings (customer, payload) VALUES ('eve', '{"poison": true}')`)
	s.until(func(p desk.Process) bool { return p.Sequence == 1 && p.DeadLetters != nil && *p.DeadLetters == 1 })
	pgtest.Exec(t, s.pool, `INSERT INTO od.dead_letter (process_name, position, sequence, table_name, record_id, attempts, first_failed_at, error, class)
		SELECT process_name, position, sequence, table_name, record_id, attempts, first_failed_at, 'cause ' || repeat('x', i), class
		FROM od.dead_letter, generate_series(1, $1) i`, desk.MaxGroups+5)
	list := api[desk.Letters](s, readToken, http.MethodPost, "/api/v1/dead-letters", map[string]any{})
	require.Len(t, list.Groups, desk.MaxGroups)
	require.Equal(t, 6, list.MoreGroups)
	require.Equal(t, 6, list.MoreGrouped)
	last := "cause " + strings.Repeat("x", desk.MaxGroups+5)
	found := api[desk.Letters](s, readToken, http.MethodPost, "/api/v1/dead-letters", map[string]any{"process": "a", "error": last, "resolved": true})
	require.Len(t, found.Letters, 1)
	require.Len(t, found.Groups, 1)
	require.Zero(t, found.MoreGroups)
}

// The role of a daemon whose console decides has what grants prints for it, and nothing else.
func TestAPI_NeedsOnlyTheRightsThatGrantsPrints(t *testing.T) {
	t.Parallel()
	pool := database(t)
	role := pgtest.Role(t, pool, "od_", "")
	config := configure(t, logins, rejecting(t))
	var sql strings.Builder
	require.NoError(t, daemon.Grants(t.Context(), &sql, daemon.GrantsConfig{Config: config, Role: role}))
	pgtest.Exec(t, pool, sql.String())
	config.Database = pgtest.With(t, config.Database, "role", role)
	s := openWith(t, pool, "127.0.0.1:0", config)
	pgtest.Exec(t, pool, `INSERT INTO public.bookings (customer, payload) VALUES ('eve', '{"poison": true}'), ('ann', '{}')`)
	s.until(func(p desk.Process) bool {
		return p.Sequence == 2 && p.DeadLetters != nil && *p.DeadLetters == 1 && p.HeadProblem == ""
	})
	s.order(desk.Order{Verb: desk.Pause, Process: "a"}, "")
	insert(t, pool, "bob", 1)
	require.Contains(t, s.until(waits(1)).Head.Payload, card)
	s.order(desk.Order{Verb: desk.Seek, Process: "a", To: &desk.Target{Kind: desk.ToEnd}}, "a test")
	s.order(desk.Order{Verb: desk.Discard, Process: "a", Letters: []desk.IDText{1}}, "a test")
	letter := api[desk.Letter](s, operateToken, http.MethodGet, "/api/v1/dead-letters/1", nil)
	require.JSONEq(t, `{"poison": true}`, letter.Record.Payload)
	audit := api[desk.Audit](s, readToken, http.MethodGet, "/api/v1/audit?decisions=true", nil)
	require.Len(t, audit.Events, 3)
}
