package outbox_test

import (
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
)

// A tracestate belongs to its traceparent. So both are of the context, or both are of the record.
func TestAdd_PutsTheTraceIntoTheHeadersUnlessTheyHaveOne(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{})
	state, err := trace.ParseTraceState("ours=1")
	require.NoError(t, err)
	traced := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceState: state}))
	const (
		ours = "00-01000000000000000000000000000000-0200000000000000-00"
		own  = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	)
	type headers = map[string]string
	fromContext := headers{"traceparent": ours, "tracestate": "ours=1", "tenant": "x"}
	for _, c := range []struct{ given, want headers }{
		{headers{}, fromContext},
		{headers{"traceparent": own}, headers{"traceparent": own, "tenant": "x"}},
		{headers{"traceparent": own, "tracestate": "own=1"}, headers{"traceparent": own, "tracestate": "own=1", "tenant": "x"}},
		{headers{"Traceparent": own}, headers{"Traceparent": own, "tenant": "x"}},
		{headers{"traceparent": ""}, fromContext},
		{headers{"Traceparent": "", "Tracestate": "own=1"}, fromContext},
		{headers{"tracestate": "own=1"}, fromContext},
	} {
		pgtest.Exec(t, pool, "TRUNCATE public.outbox")
		c.given["tenant"] = "x"
		before := maps.Clone(c.given)
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return o.Add(traced, tx, outbox.Record{Type: "a", Payload: 1, Headers: c.given})
		}))
		require.Equal(t, c.want, pgtest.Value[headers](t, pool, "SELECT headers FROM public.outbox"), before)
		require.Equal(t, before, c.given, "the caller's map is as it was")
	}
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return o.Add(t.Context(), tx, outbox.Record{Type: "bb", Payload: 1, Headers: headers{"tracestate": "own=1"}})
	}))
	require.Equal(t, headers{"tracestate": "own=1"}, pgtest.Value[headers](t, pool, "SELECT headers FROM public.outbox WHERE type = 'bb'"), "without a trace in the context")
}
