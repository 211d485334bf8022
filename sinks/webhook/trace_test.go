package webhook

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"
)

func TestDeliver_SendsTheTraceOfItsContext(t *testing.T) {
	t.Parallel()
	url, requests := record(t)
	s := newSink(t, Config{URL: url})
	state, err := trace.ParseTraceState("vendor=x")
	require.NoError(t, err)
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state,
	}))
	member, err := baggage.NewMember("customer", "CANARY")
	require.NoError(t, err)
	bag, err := baggage.New(member)
	require.NoError(t, err)
	d := delivery()
	d.Headers = map[string]string{"traceparent": "of the record", "baggage": "CANARY"}
	require.NoError(t, s.Deliver(baggage.ContextWithBaggage(ctx, bag), d))
	require.NoError(t, s.Deliver(context.Background(), d))

	got := requests()
	require.Equal(t, "00-01000000000000000000000000000000-0200000000000000-01", got[0].header.Get("Traceparent"))
	require.Equal(t, "vendor=x", got[0].header.Get("Tracestate"))
	require.Empty(t, got[0].header.Values("Baggage"))
	require.NotContains(t, got[1].header, "Traceparent", "the processor reads the record's headers, not the sink")
	require.NotContains(t, got[1].header, "Tracestate")
	require.NotContains(t, s.template.Header, "Traceparent", "what one attempt sends is not left to the next")
}
