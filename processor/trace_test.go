package processor_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
)

// traced makes three records: the first continues a trace, the second has none,
// and what the third one has is none either.
func traced(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := database(t)
	exec(t, pool, `ALTER TABLE dispatch.bookings ADD headers jsonb`)
	exec(t, pool, `INSERT INTO dispatch.bookings (customer, headers) VALUES
		('CANARY', '{"traceparent": "00-`+traceID+`-`+spanID+`-01", "tracestate": "vendor=x", "other": "CANARY", "baggage": "a=CANARY"}'),
		('CANARY', NULL),
		('CANARY', '{"traceparent": "00-`+traceID+`-CANARY"}')`)
	return pool
}

// withTracing delivers under spans that are recorded.
func withTracing(t testing.TB, pool *pgxpool.Pool, spans *spans) func(*processor.Config) {
	t.Helper()
	return func(c *processor.Config) {
		quick(c)
		c.TracerProvider = spans
		c.Source = sourceWithHeaders(t, pool)
	}
}

func sourceWithHeaders(t testing.TB, pool *pgxpool.Pool) *table.Source {
	t.Helper()
	return sourceOf(t, pool, table.Config{Table: "dispatch.bookings", Columns: table.Columns{Headers: "headers", Key: "customer"}})
}

// spanOf is the span that a sink is called under.
func spanOf(ctx context.Context) trace.SpanContext { return trace.SpanContextFromContext(ctx) }

func TestTrace_ASpanForEachAttemptContinuesTheRecordsTrace(t *testing.T) {
	t.Parallel()
	for name, dispatch := range map[string]func(*receiver) processor.Dispatch{
		"each": func(r *receiver) processor.Dispatch { return processor.Each(r) },
		"tx":   func(r *receiver) processor.Dispatch { return processor.InTx(r) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := traced(t)
			spans := &spans{}
			seen := map[string]trace.SpanContext{}
			sink := &receiver{answer: func(ctx context.Context, d processor.Delivery) error {
				seen[fmt.Sprintf("%s/%d", d.ID, d.Attempt)] = spanOf(ctx)
				if d.ID == "1" && d.Attempt == 1 {
					return fmt.Errorf("refused: %s", d.Payload)
				}
				if d.ID == "2" && d.Attempt == 1 {
					panic("CANARY")
				}
				return nil
			}}
			require.NoError(t, process(t, pool, dispatch(sink), withTracing(t, pool, spans)).Drain(t.Context()))

			ended := spans.ended()
			require.Equal(t, []string{"1/1", "1/2", "2/1", "2/2", "3/1"}, sink.attempts())
			require.Len(t, ended, 5)
			for i, span := range ended {
				call := sink.attempts()[i]
				require.Equal(t, "deliver sms", span.name)
				require.Equal(t, trace.SpanKindProducer, span.kind)
				require.Equal(t, span.own, seen[call], "the sink is called under it")
				require.Empty(t, span.events, "no text of an error")
				require.Empty(t, span.links)
				require.NotContains(t, fmt.Sprint(span.name, span.attributes, span.description), "CANARY")
			}
			for _, span := range ended[:2] {
				require.Equal(t, traceID, span.own.TraceID().String())
				require.Equal(t, spanID, span.parent.SpanID().String())
				require.True(t, span.parent.IsRemote())
				require.Equal(t, "vendor=x", span.own.TraceState().String())
			}
			for _, span := range ended[2:] {
				require.NotEqual(t, traceID, span.own.TraceID().String())
				require.False(t, span.parent.IsValid())
			}
			require.Equal(t, map[attribute.Key]any{
				"ordered_dispatcher.process": "sms", "ordered_dispatcher.epoch": int64(1), "ordered_dispatcher.sequence": int64(1),
				"ordered_dispatcher.attempt": int64(1), "ordered_dispatcher.record_id": "1", "error.type": "transient",
			}, ended[0].attributes)
			require.Equal(t, codes.Error, ended[0].code)
			require.Equal(t, "transient", ended[0].description)
			require.Equal(t, int64(2), ended[1].attributes["ordered_dispatcher.attempt"])
			require.Equal(t, codes.Unset, ended[1].code)
			require.Equal(t, codes.Error, ended[2].code)
		})
	}
}

func TestTrace_ABatchIsLinkedToTheTracesOfItsRecords(t *testing.T) {
	t.Parallel()
	pool := traced(t)
	spans := &spans{}
	var seen trace.SpanContext
	sink := processor.BatchSinkFunc(func(ctx context.Context, ds []processor.Delivery) (int, error) {
		seen = spanOf(ctx)
		return len(ds), nil
	})
	require.NoError(t, process(t, pool, processor.Batch(sink), withTracing(t, pool, spans)).Drain(t.Context()))
	require.Len(t, spans.ended(), 1)
	span := spans.ended()[0]
	require.Equal(t, span.own, seen)
	require.False(t, span.parent.IsValid())
	require.Len(t, span.links, 1)
	require.Equal(t, traceID, span.links[0].SpanContext.TraceID().String())
	require.Equal(t, map[attribute.Key]any{
		"ordered_dispatcher.process": "sms", "ordered_dispatcher.epoch": int64(1), "ordered_dispatcher.sequence": int64(1),
		"ordered_dispatcher.attempt": int64(1), "ordered_dispatcher.record_id": "1", "ordered_dispatcher.records": int64(3),
	}, span.attributes)
}

// Whoever looks at no traces still does not cut those of others.
func TestTrace_WithoutAProviderTheRecordsTracePassesThrough(t *testing.T) {
	t.Parallel()
	for name, provider := range map[string]trace.TracerProvider{"the global one": nil, "none": noop.NewTracerProvider()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := traced(t)
			seen := map[string]trace.SpanContext{}
			sink := &receiver{answer: func(ctx context.Context, d processor.Delivery) error {
				seen[d.ID] = spanOf(ctx)
				return nil
			}}
			p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
				c.Source = sourceWithHeaders(t, pool)
				c.TracerProvider = provider
			})
			require.NoError(t, p.Drain(t.Context()))
			require.Equal(t, traceID, seen["1"].TraceID().String())
			require.Equal(t, spanID, seen["1"].SpanID().String())
			require.True(t, seen["1"].IsSampled())
			require.False(t, seen["2"].IsValid())
			require.False(t, seen["3"].IsValid())
		})
	}
}

// Run goes on for as long as the program: its caller's span is no parent.
func TestTrace_TheSpanOfTheCallerIsNoParent(t *testing.T) {
	t.Parallel()
	pool := traced(t)
	spans := &spans{}
	change := withTracing(t, pool, spans)
	var provider trace.TracerProvider
	p := process(t, pool, processor.Each(&receiver{}), func(c *processor.Config) {
		change(c)
		provider = c.TracerProvider
	})
	ctx, caller := provider.Tracer("caller").Start(t.Context(), "main")
	require.NoError(t, p.Drain(ctx))
	for _, span := range spans.ended() {
		require.NotEqual(t, caller.SpanContext().TraceID(), span.own.TraceID())
	}
}
