package cloudevents_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	sdk "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

// deliver sends a record in a format and returns the event that the SDK reads.
func deliver(t testing.TB, format webhook.Format, r processor.Record) (*sdk.Event, error) {
	t.Helper()
	var event *sdk.Event
	var failed error
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		event, failed = cehttp.NewEventFromHTTPRequest(req)
	}))
	defer receiver.Close()
	sink, err := webhook.New(webhook.Config{URL: receiver.URL, Format: format})
	require.NoError(t, err)
	require.NoError(t, sink.Deliver(t.Context(), processor.Delivery{Record: r, Process: "p", Sequence: 1, Epoch: 1, Attempt: 1}))
	return event, failed
}

func TestDeliver_EventsAreThoseThatTheSDKReads(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for _, c := range []struct {
		record       processor.Record
		source, kind string
	}{
		{processor.Record{Table: "public.bookings", ID: "42", Type: "booking.confirmed", CreatedAt: at, Payload: []byte(`{"b" : 9007199254740993}`)},
			"/public.bookings", "booking.confirmed"},
		{processor.Record{Table: "public.bookings", ID: "1", Payload: []byte(`[1,  2]`)}, "/public.bookings", "public.bookings"},
		{processor.Record{Table: `sales."Été 1%"`, ID: "a b%20/ü", Type: `é "%41`, CreatedAt: at, Payload: []byte(`1`)},
			"/" + url.PathEscape(`sales."Été 1%"`), `é "%41`},
	} {
		for _, format := range []webhook.Format{webhook.CloudEvents, webhook.CloudEventsStructured} {
			e, err := deliver(t, format, c.record)
			require.NoError(t, err)
			require.NoError(t, e.Validate())
			require.Equal(t, "1.0", e.SpecVersion())
			source, kind := e.Source(), e.Type()
			if format == webhook.CloudEvents { // the SDK leaves the decoding that the binding asks for to its user
				source, kind = unescape(t, source), unescape(t, kind)
			}
			require.Equal(t, c.source, source, format)
			require.Equal(t, c.kind, kind, format)
			require.Equal(t, c.record.CreatedAt, e.Time(), format)
			require.Equal(t, "application/json", e.DataContentType(), format)
			require.Equal(t, string(c.record.Payload), string(e.Data()), format)
		}
	}
}

func TestDeliver_ThePayloadThatIsNoJSONIsReadToTheByte(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{"no JSON", "\"\xff\"", "{} {}", "}, \"id\": \"x\"", ""} {
		e, err := deliver(t, webhook.CloudEventsStructured, processor.Record{Table: "t", ID: "1", Payload: []byte(payload)})
		require.NoError(t, err)
		require.NoError(t, e.Validate())
		require.Equal(t, payload, string(e.Data()))
	}
}

// Whatever a record holds, the SDK reads its event.
func FuzzDeliver_TheSDKReadsEveryStructuredEvent(f *testing.F) {
	f.Add("public.bookings", "42", "made", `{"a": 1}`, int64(1))
	f.Add("a\x00b", "\xff", "\u2028\ufffe", "\xff", int64(-1)<<62)
	f.Add("", `"`, `\`, "", int64(0))
	f.Add("t", "1", " ", "0", int64(0)) // what the contract takes for empty
	f.Fuzz(func(t *testing.T, table, id, kind, payload string, at int64) {
		e, err := deliver(t, webhook.CloudEventsStructured,
			processor.Record{Table: table, ID: id, Type: kind, Payload: []byte(payload), CreatedAt: time.UnixMicro(at)})
		require.NoError(t, err)
		require.NoError(t, e.Validate())
		if json.Valid([]byte(payload)) {
			const space = " \t\r\n"
			require.Equal(t, strings.Trim(payload, space), strings.Trim(string(e.Data()), space), "white space around a value is none of it")
		}
	})
}

func unescape(t *testing.T, value string) string {
	t.Helper()
	back, err := url.PathUnescape(value)
	require.NoError(t, err)
	return back
}
