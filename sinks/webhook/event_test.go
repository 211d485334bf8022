package webhook

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// readEvent is a request as a receiver of CloudEvents reads it. That the SDK of CloudEvents reads the same is a test of
// proof/cloudevents: the library does not require the SDK, not even for its tests.
func readEvent(t *testing.T, r received) read {
	t.Helper()
	if strings.HasPrefix(r.header.Get("Content-Type"), "application/cloudevents+json") {
		return readStructured(t, r.body)
	}
	value := func(name string) string { return r.header.Get("ce-" + name) }
	return read{
		event: event{
			SpecVersion: value("specversion"), ID: value("id"), Source: value("source"), Type: value("type"), Time: value("time"),
			DataContentType: r.header.Get("Content-Type"),
		},
		data: string(r.body),
	}
}

// read is an event, and its data.
type read struct {
	event
	data string
}

func readStructured(t *testing.T, body []byte) read {
	t.Helper()
	var e struct {
		event
		Data   json.RawMessage `json:"data"`
		Base64 []byte          `json:"data_base64"`
	}
	require.NoError(t, json.Unmarshal(body, &e), "%s", body)
	return read{e.event, string(e.Data) + string(e.Base64)}
}

// validate checks what CloudEvents 1.0.2 requires of each event.
func (e read) validate(t *testing.T) {
	t.Helper()
	require.Equal(t, "1.0", e.SpecVersion)
	require.NotEmpty(t, e.ID)
	require.NotEmpty(t, e.Type)
	_, err := url.Parse(e.Source)
	require.NoError(t, err)
	require.NotEmpty(t, e.Source)
	if e.Time != "" {
		_, err := time.Parse(time.RFC3339, e.Time)
		require.NoError(t, err)
	}
}

func unescape(t *testing.T, value string) string {
	t.Helper()
	back, err := url.PathUnescape(value)
	require.NoError(t, err)
	return back
}

func TestDeliver_EventsHaveTheAttributesOfTheContract(t *testing.T) {
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
			e.validate(t)
			require.Equal(t, requests()[i].header.Get("Idempotency-Key"), e.ID, format)
			source, typ := e.Source, e.Type
			if format == CloudEvents { // the binding asks for the decoding
				source, typ = unescape(t, source), unescape(t, typ)
			}
			require.Equal(t, eventSource(d), source, format)
			require.Equal(t, eventType(d), typ, format)
			require.Equal(t, eventTime(d), e.Time, format)
			require.Equal(t, "application/json", e.DataContentType, format)
			require.Equal(t, string(d.Payload), e.data, format)
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
		require.Equal(t, deliveryKey, e.ID)
		require.Equal(t, payload, e.data)
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
		e := readStructured(t, body)
		e.validate(t)
		require.Equal(t, d.DedupKey(), unescape(t, e.ID))
		require.Equal(t, eventText(eventType(d)), e.Type)
		if json.Valid([]byte(payload)) {
			const space = " \t\r\n"
			require.Equal(t, strings.Trim(payload, space), strings.Trim(e.data, space), "white space around a value is none of it")
		}
	})
}
