package route_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

func TestOf(t *testing.T) {
	t.Parallel()
	d := processor.Delivery{Process: "sms", Record: processor.Record{
		Table: "app.bookings", ID: "7", Key: "c 1", Type: "Booking.Made", Headers: map[string]string{"region": "eu", "x-y": "z"}}}
	for text, want := range map[string]string{
		"":                                   "",
		"bookings":                           "bookings",
		"{{lower .Type}}":                    "booking.made",
		"{{.Process}}.{{.Table}}.{{.ID}}":    "sms.app.bookings.7",
		`{{.Headers.region}}.{{.Key}}`:       "eu.c 1",
		`{{index .Headers "x-y"}}`:           "z",
		`{{.Headers.absent}}`:                "",
		`{{replace " " "_" .Key | upper}}`:   "C_1",
		`{{.DedupKey}}`:                      "app.bookings/7",
		`{{if .Key}}keyed{{else}}not{{end}}`: "keyed",
	} {
		r, err := route.New(text)
		require.NoError(t, err, text)
		got, err := r.Of(d)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestNew_FindsFaultsBeforeTheFirstRecord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{{.Payload}}": "there are .Process, .Table, .ID, .Key, .Type, .Headers and .DedupKey",
		"{{lower .Key": "unclosed action",
		"{{env .Key}}": `function "env" not defined`,
	} {
		_, err := route.New(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestShown_NamesNoKeyAndNoHeader(t *testing.T) {
	t.Parallel()
	for text, shown := range map[string]string{
		"fixed":                             "A",
		"orders.{{.Type}}":                  "A",
		`{{replace "." "_" .Type}}.{{.ID}}`: "A",
		"orders.{{.Key}}":                   "orders.{{.Key}}",
		"{{index .Headers `tenant`}}":       "{{index .Headers `tenant`}}",
		"{{with .Type}}{{$.Key}}{{end}}":    "{{with .Type}}{{$.Key}}{{end}}",
		`{{printf "%v" .}}`:                 `{{printf "%v" .}}`,
		`{{printf "%v" $}}`:                 `{{printf "%v" $}}`,
		"{{.}}":                             "{{.}}",
		"{{$}}":                             "{{$}}",
	} {
		for _, parsed := range []func(string) (*route.Template, error){route.New, route.Tokens} {
			r, err := parsed(text)
			require.NoError(t, err, text)
			require.Equal(t, shown, r.Shown("A"))
		}
	}
}
