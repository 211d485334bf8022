package outbox

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
)

// traced returns the headers with the trace of ctx, if it has one and they have none. A tracestate belongs to its
// traceparent. So the two come from one place, and a tracestate without a traceparent is replaced.
func traced(ctx context.Context, headers map[string]string) map[string]string {
	trace := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, trace)
	if len(trace) == 0 {
		return headers
	}
	for name, value := range headers {
		switch {
		case strings.EqualFold(name, "traceparent") && value != "":
			return headers
		case strings.EqualFold(name, "traceparent") || strings.EqualFold(name, "tracestate"):
		default:
			trace[name] = value
		}
	}
	return trace
}
