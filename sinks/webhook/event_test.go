package webhook

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	sdk "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// readEvent is a request as the SDK of CloudEvents reads it.
func readEvent(t *testing.T, r received) *sdk.Event {
	t.Helper()
	req, err := http.NewRequest(r.method, "/", bytes.NewReader(r.body))
	require.NoError(t, err)
	req.Header = r.header
	e, err := cehttp.NewEventFromHTTPRequest(req)
	require.NoError(t, err)
	require.NoError(t, e.Validate())
	return e
}

func unescape(t *testing.T, value string) string {
	t.Helper()
	back, err := url.PathUnescape(value)
	require.NoError(t, err)
	return back
}

func TestDeliver_EventsAreThoseThatTheSDKReads(t *testing.T) {
	t.Parallel()
	plain := delivery()
	bare := processor.Delivery{Record: processor.Record{Table: "public.bookings", ID: "1", Payload: []byte(`[1,  2]`)}}
	foreign := delivery()
	foreign.Table, foreign.Type, foreign.ID = `sales."Été 1%"`, `é "%41`, "a b%20/ü"
	for _, format := range []Format{CloudEvents, CloudEventsStructured} {
		origin, requests := record(t)
		s := newSink(t, Config{URL: origin, Format: format, Secret: secret})
		for i, d := range []processor.Delivery{plain, bare, foreign} {
			require.NoError(t, s.Deliver(t.Context(), d))
			e := readEvent(t, requests()[i])
			require.Equal(t, "1.0", e.SpecVersion())
			require.Equal(t, requests()[i].header.Get("Idempotency-Key"), e.ID(), format)
			source, typ := e.Source(), e.Type()
			if format == CloudEvents { // the SDK leaves the decoding that the binding asks for to its user
				source, typ = unescape(t, source), unescape(t, typ)
			}
			require.Equal(t, eventSource(d), source, format)
			require.Equal(t, eventType(d), typ, format)
			require.Equal(t, d.CreatedAt, e.Time(), format)
			require.Equal(t, "application/json", e.DataContentType(), format)
			require.Equal(t, string(d.Payload), string(e.Data()), format)
		}
	}
}

func TestDeliver_StructuredBodyHoldsThePayloadsBytes(t *testing.T) {
	t.Parallel()
	url, requests := record(t)
	s := newSink(t, Config{URL: url, Format: CloudEventsStructured})
	require.NoError(t, s.Deliver(t.Context(), delivery()))
	r := requests()[0]
	require.Equal(t, structuredType, r.header.Get("Content-Type"))
	require.NotContains(t, r.header, "Ce-Id")
	require.Equal(t, deliveryKey, r.header.Get("Idempotency-Key"))
	require.Equal(t, `{"specversion":"1.0","id":"public.bookings/42/1767323045000006","source":"/public.bookings","type":"booking.confirmed",`+
		`"time":"2026-01-02T03:04:05.000006Z","datacontenttype":"application/json","data":`+exact+`}`, string(r.body))
}

func TestDeliver_StructuredPayloadThatIsNoJSONIsBase64(t *testing.T) {
	t.Parallel()
	url, requests := record(t)
	s := newSink(t, Config{URL: url, Format: CloudEventsStructured})
	for i, payload := range []string{"no JSON", "\"\xff\"", "{} {}", "}, \"id\": \"x\"", ""} {
		d := delivery()
		d.Payload = []byte(payload)
		require.NoError(t, s.Deliver(t.Context(), d))
		e := readEvent(t, requests()[i])
		require.Equal(t, deliveryKey, e.ID())
		require.Equal(t, payload, string(e.Data()))
	}
}

// Whatever a record holds, its structured event is one JSON object with the
// attributes of the contract.
func FuzzStructured(f *testing.F) {
	f.Add("public.bookings", "42", "made", `{"a": 1}`, int64(1))
	f.Add("a\x00b", "\xff", "\u2028\ufffe", "\xff", int64(-1)<<62)
	f.Add("", `"`, `\`, "", int64(0))
	f.Add("t", "1", " ", "0", int64(0)) // what the contract takes for empty
	f.Fuzz(func(t *testing.T, table, id, typ, payload string, at int64) {
		d := processor.Delivery{Record: processor.Record{Table: table, ID: id, Type: typ, Payload: []byte(payload), CreatedAt: time.UnixMicro(at)}}
		body := structured(d)
		var e sdk.Event
		require.NoError(t, json.Unmarshal(body, &e), "%s", body)
		require.NoError(t, e.Validate(), "%s", body)
		require.Equal(t, d.DedupKey(), unescape(t, e.ID()))
		require.Equal(t, eventText(eventType(d)), e.Type())
		if json.Valid([]byte(payload)) {
			const space = " \t\r\n"
			require.Equal(t, strings.Trim(payload, space), strings.Trim(string(e.Data()), space), "white space around a value is none of it")
		}
	})
}
