package outbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

type (
	document []byte
	guest    struct {
		Name   string
		Secret string `json:"-"`
	}
	group struct {
		Guests []any
		Notes  map[string]*string
		guest
	}
	wrapped struct{ Value any }
	level   uint8
	ring    struct {
		Name string
		Next *ring
	}
)

func (r *ring) MarshalJSON() ([]byte, error) { return []byte(`{"Name": "\ufffd"}`), nil }

func (w wrapped) MarshalJSON() ([]byte, error)   { return json.Marshal(map[string]any{"value": w.Value}) }
func (d *document) MarshalJSON() ([]byte, error) { return []byte(`"a document"`), nil }
func (l *level) MarshalText() ([]byte, error)    { return []byte("high"), nil }

func pointer[T any](value T) *T { return &value }

func names(n int) map[string]string {
	headers := map[string]string{}
	for i := range n {
		headers[fmt.Sprint("h", i)] = "x"
	}
	return headers
}

var spanContext = trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})

func TestAdd_RefusesARecordBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	const holdsJSON = "and this outbox holds JSON: give a json.RawMessage, or set Config.Raw"
	o, pool := made(t, outbox.Config{})
	ctx := trace.ContextWithSpanContext(t.Context(), spanContext)
	for want, r := range map[string]outbox.Record{
		"its Type is empty": {Payload: 1},
		"its Type has a NUL (U+0000), which PostgreSQL holds in no text":                    {Type: "a\x00"},
		"its AggregateType is not UTF-8":                                                    {Type: "a", AggregateType: "\xff"},
		"its AggregateID has a NUL":                                                         {Type: "a", AggregateID: "\x00"},
		"its Key is not UTF-8":                                                              {Type: "a", Key: "\xff"},
		`its Headers["\xff"] is not UTF-8`:                                                  {Type: "a", Headers: map[string]string{"\xff": ""}},
		`its Headers["b"] has a NUL`:                                                        {Type: "a", Headers: map[string]string{"a": "", "b": "\x00"}},
		"its Headers have 1001 names, with those of the trace, and the dispatcher":          {Type: "a", Headers: names(1000)},
		"its Payload is a []byte, " + holdsJSON:                                             {Type: "a", Payload: []byte("{}")},
		"its Payload is a *[]byte, " + holdsJSON:                                            {Type: "a", Payload: pointer([]byte("{}"))},
		"its Payload is a **[]byte, " + holdsJSON:                                           {Type: "a", Payload: pointer(pointer([]byte("{}")))},
		"its Payload is a outbox_test.document, " + holdsJSON:                               {Type: "a", Payload: document("{}")},
		"encode its Payload: json: unsupported type: func()":                                {Type: "a", Payload: func() {}},
		"encode its Payload: unexpected end of JSON input":                                  {Type: "a", Payload: json.RawMessage(`{"a":`)},
		"its Payload is not UTF-8":                                                          {Type: "a", Payload: json.RawMessage("\"\xff\"")},
		"its Payload.Value has a NUL":                                                       {Type: "a", Payload: wrapped{"\x00"}},
		`its Payload.Guests[1].Name is not UTF-8`:                                           {Type: "a", Payload: &group{Guests: []any{"a", guest{Name: "x\xffy"}}}},
		`its Payload.guest.Name is not UTF-8`:                                               {Type: "a", Payload: group{guest: guest{Name: "\xff"}}},
		`its Payload.Notes["b"] is not UTF-8`:                                               {Type: "a", Payload: group{Notes: map[string]*string{"b": pointer("\xff")}}},
		`its Payload["\xff"] is not UTF-8`:                                                  {Type: "a", Payload: map[string]int{"\xff": 1}},
		`its Payload.Value.Name is not UTF-8`:                                               {Type: "a", Payload: wrapped{guest{Name: "\xff"}}},
		`its Payload["a"] has a NUL`:                                                        {Type: "a", Payload: map[string]string{"a": "\x00"}},
		"its Payload has a NUL (U+0000), which PostgreSQL holds in no text: from byte 5 of": {Type: "a", Payload: json.RawMessage(`{"a":"b\u0000"}`)},
		`its Payload has the escape \ud800, half of a surrogate pair`:                       {Type: "a", Payload: json.RawMessage(`{"a":"\ud800"}`)},
		"its Payload has a number of more digits than PostgreSQL holds: at most 131072":     {Type: "a", Payload: json.RawMessage(`1e200000`)},
		"the record is too large: it has ":                                                  {Type: "a", Key: strings.Repeat("k", outbox.DefaultMaxBytes)},
	} {
		tx := pgtest.Begin(t, pool, "SELECT 1")
		err := o.Add(ctx, tx, outbox.Record{Type: "fine"}, r)
		var refused *outbox.RecordError
		require.ErrorAs(t, err, &refused, want)
		require.Equal(t, 1, refused.Index)
		require.ErrorContains(t, err, "outbox: record 1: "+want)
		require.Equal(t, strings.HasPrefix(want, "the record is too large"), errors.Is(err, outbox.ErrTooLarge))
		require.NoError(t, o.Add(t.Context(), tx, outbox.Record{Type: "fine"}), "the transaction goes on")
		require.NoError(t, tx.Rollback(t.Context()))
	}
	require.NoError(t, o.Add(t.Context(), nil), "nothing to add")
}

// U+FFFD and its escape may be what somebody means, and so may a type that makes its own JSON of its bytes.
func TestAdd_RefusesNoPayloadThatIsAsItWasGiven(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{})
	cycle := &ring{Name: "a"}
	cycle.Next = cycle
	for want, payload := range map[string]any{
		`"�"`:              "�",
		`"� "`:             json.RawMessage(`"\ufffd "`),
		`["�"]`:            []any{json.RawMessage(`"\ufffd"`)},
		`"\\ufffd"`:        `\ufffd`,
		`"a document"`:     pointer(document("\xff")),
		`["high", "high"]`: []level{1, 2},
		`{"Name": "�"}`:    cycle,
		`{"Name": "��"}`:   pointer(json.RawMessage(`{"Name": "\ufffd\ufffd"}`)),
		`{"a": "😀"}`:       json.RawMessage(`{"a": "\ud83d\ude00"}`),
		`null`:             json.RawMessage(nil),
		`"<&>"`:            "<&>",
	} {
		pgtest.Exec(t, pool, "TRUNCATE public.outbox")
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return o.Add(t.Context(), tx, outbox.Record{Type: "a", Payload: payload})
		}), want)
		require.Equal(t, want, pgtest.Value[string](t, pool, "SELECT payload::text FROM public.outbox"))
	}
}

func TestAdd_KeepsTheBytesOfARawPayload(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{Table: pgx.Identifier{"public", "Raw Box"}, Raw: true})
	for way, add := range adds(pool) {
		for want, payload := range map[string]any{
			"\x00\xff\\x":                  []byte("\x00\xff\\x"),
			"":                             []byte{},
			`{ "b": "<é>\u0000",  "a": 1}`: json.RawMessage(`{ "b": "<é>\u0000",  "a": 1}`),
			" [1]\n":                       pointer(json.RawMessage(" [1]\n")),
			`"<&>"`:                        "<&>",
			`null`:                         nil,
		} {
			pgtest.Exec(t, pool, `TRUNCATE public."Raw Box"`)
			require.NoError(t, add(t.Context(), o, outbox.Record{Type: "a", Payload: payload}), "%s: %q", way, want)
			require.Equal(t, []byte(want), pgtest.Value[[]byte](t, pool, `SELECT payload FROM public."Raw Box"`), way)
		}
		require.NoError(t, add(t.Context(), o, outbox.Record{Type: "a", Payload: []byte(nil)}), "%s: nil is empty", way)
		require.ErrorContains(t, add(t.Context(), o, outbox.Record{Type: "a", Payload: document("x")}), "its Payload is a outbox_test.document, and encoding/json makes base64 of it: convert it to a []byte", way)
		require.ErrorContains(t, add(t.Context(), o, outbox.Record{Type: "a", Payload: json.RawMessage(" ")}), "encode its Payload: unexpected end of JSON input", way)
		require.ErrorContains(t, add(t.Context(), o, outbox.Record{Type: "a", Payload: json.RawMessage("\"\xff\"")}), "its Payload is not UTF-8", way)
	}
}

// A source with the same bound reads whatever Add takes: each record is as large as MaxBytes allows.
func TestAdd_TheSourceReadsWhatItTakes(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	hello := strings.Repeat("hello ", 50)
	for name, c := range map[string]struct {
		raw    bool
		record outbox.Record
	}{
		"a payload":           {record: outbox.Record{Type: "a", Payload: hello}},
		"small numbers":       {record: outbox.Record{Type: "a", Payload: make([]int, 500)}},
		"long numbers":        {record: outbox.Record{Type: "a", Payload: json.RawMessage(`[1e1000, -1e-1000]`)}},
		"escapes":             {record: outbox.Record{Type: "a", Payload: strings.Repeat("\x01\"\\<\u2028", 50)}},
		"a key":               {record: outbox.Record{Type: "a", Payload: 1, Key: hello}},
		"a type":              {record: outbox.Record{Type: hello, Payload: 1}},
		"an aggregate":        {record: outbox.Record{Type: "a", Payload: 1, AggregateType: "x", AggregateID: hello}},
		"headers":             {record: outbox.Record{Type: "a", Payload: 1, Headers: map[string]string{"a\x01\"": "\x01\n<é", "b": hello}}},
		"all headers":         {record: outbox.Record{Type: "a", Payload: 1, Headers: names(998)}},
		"bytes":               {raw: true, record: outbox.Record{Type: "a", Payload: []byte(hello)}},
		"JSON kept as it was": {raw: true, record: outbox.Record{Type: "a", Payload: json.RawMessage("[ 1 , 2 ]")}},
	} {
		bytes := sizeOf(t, c.raw, c.record)
		o, err := outbox.New(outbox.Config{MaxBytes: bytes, Raw: c.raw})
		require.NoError(t, err)
		pgtest.Exec(t, pool, "DROP TABLE IF EXISTS public.outbox")
		pgtest.Exec(t, pool, o.SQL())
		pgtest.Exec(t, pool, "ALTER TABLE public.outbox ALTER id RESTART WITH 9223372036854775807")
		ctx := trace.ContextWithSpanContext(t.Context(), spanContext)
		require.NoError(t, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return o.Add(ctx, tx, c.record) }), name)

		source, err := table.New(pool, table.Config{Table: "public.outbox", Preset: table.Outbox, MaxRecordBytes: bytes})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			page, err := source.Read(ctx, "", 10)
			require.NoError(t, err, name)
			for _, r := range page.Records {
				require.NoError(t, r.Fault, name)
			}
			return len(page.Records) == 1
		}, time.Minute, 10*time.Millisecond, name)
	}
}

// sizeOf returns the bytes that Add counts for a record.
func sizeOf(t *testing.T, raw bool, r outbox.Record) int {
	t.Helper()
	o, err := outbox.New(outbox.Config{MaxBytes: 1, Raw: raw})
	require.NoError(t, err)
	err = o.Add(trace.ContextWithSpanContext(t.Context(), spanContext), nil, r)
	require.ErrorIs(t, err, outbox.ErrTooLarge)
	found := regexp.MustCompile(`it has ([0-9]+) bytes, and MaxBytes is 1: `).FindStringSubmatch(err.Error())
	require.NotEmpty(t, found, err.Error())
	bytes, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return bytes
}
