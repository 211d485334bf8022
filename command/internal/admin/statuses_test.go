package admin_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/admin/console"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
)

// A program that sends the forms of the pages reads the same statuses as one that asks the API.
func TestStatuses_ThePagesAnswerARefusalAsTheAPIDoes(t *testing.T) {
	t.Parallel()
	s := openPages(t, database(t), "127.0.0.1:0", configure(t, logins, processA), func(d *desk.Desk) http.Handler {
		return console.New(console.Config{Desk: d, Logger: slog.New(slog.DiscardHandler)})
	})
	form := func(path string, fields url.Values) int {
		q := as(operateToken, http.MethodPost, path, fields.Encode())
		q.header["Content-Type"] = "application/x-www-form-urlencoded"
		return s.send(q).status
	}
	for _, c := range []struct {
		page   string
		fields url.Values
		body   string
		want   int
	}{
		{"/processes/a/preview", url.Values{"verb": {"retry"}}, `{"verb": "retry", "process": "a"}`, http.StatusUnprocessableEntity},
		{"/processes/a/preview", url.Values{"verb": {"seek"}, "to": {"time"}, "at-time": {"noon"}}, `{"verb": "seek", "process": "a", "to": {"kind": "time", "value": "noon"}}`, http.StatusBadRequest},
		{"/letters/preview", url.Values{"verb": {"discard"}, "process": {"a"}, "letter": {"9"}}, `{"verb": "discard", "process": "a", "letters": ["9"]}`, http.StatusNotFound},
	} {
		require.Equal(t, c.want, s.send(as(operateToken, http.MethodPost, "/api/v1/preview", c.body)).status, c.body)
		require.Equal(t, c.want, form(c.page, c.fields), "%s %v", c.page, c.fields)
	}
	require.Equal(t, http.StatusNotFound, s.send(as(operateToken, http.MethodGet, "/processes/b/live", "")).status, "no stream of it would have news")
	decide := fmt.Sprintf(`{"order": %s, "expect": %q}`, `{"verb": "pause", "process": "a"}`, `{"state":"paused"}`)
	require.Equal(t, http.StatusConflict, s.send(as(operateToken, http.MethodPost, "/api/v1/decide", decide)).status)
	require.Equal(t, http.StatusConflict, form("/processes/a/decide", url.Values{"verb": {"pause"}, "expect": {`{"state":"paused"}`}}))
}
