package route_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

func TestTokens_AValueOfARecordIsOneToken(t *testing.T) {
	t.Parallel()
	d := processor.Delivery{Process: "sms.eu", Record: processor.Record{
		Table: "app.Bookings", ID: "7", Key: "c 1", Type: "Booking.Made", Headers: map[string]string{"to": "$JS.API.>", "any": "*"}}}
	for text, want := range map[string]string{
		"bookings":                            "bookings",
		"a.{{lower .Type}}":                   "a.booking%2Emade",
		"a.{{tokens .Type}}":                  "a.Booking.Made",
		"a.{{tokens (lower .Type)}}":          "a.booking.made",
		"a.{{.Type | lower | tokens}}":        "a.booking.made",
		"{{.Process}}.{{lower .Table}}":       "sms.eu.app.bookings",
		"{{.Headers.to}}":                     "%24JS%2EAPI%2E%3E",
		"{{tokens .Headers.to}}":              "%24JS.API.%3E",
		"a.{{.Headers.any}}.{{.Key}}":         "a.%2A.c%201",
		`{{printf "%s.%s" .Table .Key}}`:      "app%2EBookings%2Ec%201",
		`{{replace "." "_" .Table}}`:          "app_Bookings",
		`{{"a.b"}}`:                           "a%2Eb",
		`{{if eq .Process "sms.eu"}}x{{end}}`: "x",
		"{{.DedupKey}}":                       "app%2EBookings%2F7",
		"{{len .Key}}":                        "3",
	} {
		r, err := route.Tokens(text)
		require.NoError(t, err, text)
		got, err := r.Of(d)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestTokens_NoRecordAddsATokenOrAWildcard(t *testing.T) {
	t.Parallel()
	r, err := route.Tokens("orders.{{.Type}}.{{lower .Key}}.{{.Headers.h}}")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[$*>. \x00-\x20.a-z]*`), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		d := processor.Delivery{Record: processor.Record{
			Type: text.Draw(t, "type"), Key: text.Draw(t, "key"), Headers: map[string]string{"h": text.Draw(t, "header")}}}
		got, err := r.Of(d)
		require.NoError(t, err)
		tokens := strings.Split(got, ".")
		require.Len(t, tokens, 4)
		require.NotContains(t, got, "*")
		require.NotContains(t, got, ">")
		require.NotContains(t, got, "$")
		require.NotContains(t, got, " ")
		back, err := url.PathUnescape(tokens[1])
		require.NoError(t, err)
		require.Equal(t, d.Type, back)
	})
}

func TestTokens_FindsFaultsBeforeTheFirstRecord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{{.Payload}}": "there are .Process, .Table, .ID, .Key, .Type, .Headers and .DedupKey",
		"{{env .Key}}": `function "env" not defined`,
		`{{define "a"}}{{.Key}}{{end}}{{template "a" .}}`: "no place",
	} {
		_, err := route.Tokens(text)
		require.ErrorContains(t, err, want, text)
	}
	_, err := route.New("{{tokens .Type}}")
	require.ErrorContains(t, err, `function "tokens" not defined`)
}
