package processor

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// scope names the instrumentation for the collector of the spans.
const scope = "github.com/ordered-dispatcher/ordered-dispatcher/processor"

// These are the attributes of a span. A key, header, payload or text of an error is not among them: see
// docs/decisions.
const (
	processAttribute  = attribute.Key("ordered_dispatcher.process")
	epochAttribute    = attribute.Key("ordered_dispatcher.epoch")
	sequenceAttribute = attribute.Key("ordered_dispatcher.sequence")
	attemptAttribute  = attribute.Key("ordered_dispatcher.attempt")
	recordAttribute   = attribute.Key("ordered_dispatcher.record_id")
	recordsAttribute  = attribute.Key("ordered_dispatcher.records")
	errorAttribute    = attribute.Key("error.type") // of OpenTelemetry's conventions
)

// tracing makes a span for each attempt.
type tracing struct {
	tracer      trace.Tracer
	name        string
	root, child []trace.SpanStartOption // made once, since most attempts are not recorded
}

func newTracing(c Config) tracing {
	child := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(processAttribute.String(c.Process))}
	return tracing{
		tracer: c.TracerProvider.Tracer(scope),
		name:   "deliver " + c.Process,
		child:  child,
		root:   append([]trace.SpanStartOption{trace.WithNewRoot()}, child...),
	}
}

// attempt begins the span of a sink call. The span of one record continues the trace of the record; the span of
// a batch is linked to the traces of all its records.
func (t *tracing) attempt(ctx context.Context, ds []Delivery, batch bool) (context.Context, trace.Span) {
	options := t.root
	if !batch {
		if parent := traceOf(ds[0].Record); parent.IsValid() {
			ctx, options = trace.ContextWithRemoteSpanContext(ctx, parent), t.child
		}
	}
	ctx, span := t.tracer.Start(ctx, t.name, options...)
	if span.IsRecording() {
		describe(span, ds, batch)
	}
	return ctx, span
}

func describe(span trace.Span, ds []Delivery, batch bool) {
	d := ds[0]
	span.SetAttributes(
		epochAttribute.Int64(int64(d.Epoch)), sequenceAttribute.Int64(d.Sequence), attemptAttribute.Int(d.Attempt), recordAttribute.String(d.ID))
	if !batch {
		return
	}
	span.SetAttributes(recordsAttribute.Int(len(ds)))
	for _, d := range ds {
		if origin := traceOf(d.Record); origin.IsValid() {
			span.AddLink(trace.Link{SpanContext: origin})
		}
	}
}

// endSpan records how the call ended: by the class of its error, since the text may contain the record's data.
func endSpan(span trace.Span, class cursor.Class) {
	if class != "" {
		span.SetStatus(codes.Error, string(class))
		span.SetAttributes(errorAttribute.String(string(class)))
	}
	span.End()
}

// traceOf is the trace that a record's headers name, by W3C Trace Context; it is not valid if they name none.
func traceOf(r Record) trace.SpanContext {
	if r.Headers["traceparent"] == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier(r.Headers))
	return trace.SpanContextFromContext(ctx)
}
