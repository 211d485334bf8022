package webhook

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// echoes are the forms in which a receiver sends back what it was sent.
var echoes = map[string]func(string) string{
	"JSON":          func(s string) string { text, _ := json.Marshal(s); return string(text) },
	"JSON in ASCII": func(s string) string { return bytewise(s, `\u%04x`) },
	"query":         url.QueryEscape,
	"percent":       func(s string) string { return bytewise(s, "%%%02x") },
	"HTML":          html.EscapeString,
	"HTML numbers":  func(s string) string { return bytewise(s, "&#%d;") },
	"base64":        func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64, URL":   func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("x" + s + "yz")) },
	"hex":           func(s string) string { return hex.EncodeToString([]byte(s)) },
}

func bytewise(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

func TestDeliver_NoFormOfASecretComesBack(t *testing.T) {
	t.Parallel()
	for name, echo := range echoes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, value := range []string{`a"token<of/mine>&9+?`, "another-token-77"} {
				server := serve(t, func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(http.StatusUnprocessableEntity)
					_, _ = fmt.Fprintf(w, "bad: %s", echo(strings.TrimPrefix(r.Header.Get("X-Api-Key"), "Key ")))
				})
				s := newSink(t, Config{URL: server.URL, Headers: map[string]string{"X-Api-Key": "Key " + value}})
				err := s.Deliver(t.Context(), delivery())
				require.ErrorContains(t, err, "[secret]")
				require.NotContains(t, err.Error(), echo(value))
				require.NotContains(t, err.Error(), value[2:8])
			}
		})
	}
}

// A process and the path of its receiver often have the same name.
func TestDeliver_AWordThatIsTheWholePathStays(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/bookings": "record of process 'bookings'", "/bookings/": "record of process 'bookings'", "/": "record of process 'bookings'",
		"/booking_sms": "record of process 'booking_sms'", "/Tk-xyz": "record of process '[secret]'",
		"/bookings7": "record of process '[secret]'", "/abcdefghijklmnop": "record of process '[secret]'", "/api/bookings": "record of process '[secret]'",
	} {
		server := answer(t, http.StatusUnprocessableEntity, nil, "record of process '"+cmp.Or(strings.Trim(path, "/"), "bookings")+"'")
		err := newSink(t, Config{URL: server.URL + path}).Deliver(t.Context(), delivery())
		require.ErrorContains(t, err, want, path)
	}
}

func TestDeliver_HideAnswersQuotesNothing(t *testing.T) {
	t.Parallel()
	server := answer(t, http.StatusUnprocessableEntity, nil, "the receiver's words")
	err := newSink(t, Config{URL: server.URL, HideAnswers: true}).Deliver(t.Context(), delivery())
	require.ErrorContains(t, err, "answered 422 Unprocessable Entity")
	require.NotContains(t, err.Error(), "words")
}
