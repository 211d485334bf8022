package processor_test

import (
	"context"
	"crypto/rand"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"
)

// spans is a provider that records the spans that ended. It does what OpenTelemetry's SDK does, which the library
// must not require, not even for its tests: a user of the library chooses the SDK and its version.
type spans struct {
	embedded.TracerProvider

	mu  sync.Mutex
	all []*span
}

func (s *spans) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{spans: s} }

func (s *spans) ended() []*span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*span(nil), s.all...)
}

type tracer struct {
	embedded.Tracer
	spans *spans
}

func (t tracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	config := trace.NewSpanStartConfig(options...)
	s := &span{spans: t.spans, name: name, kind: config.SpanKind(), links: config.Links(), attributes: map[attribute.Key]any{}}
	if !config.NewRoot() {
		s.parent = trace.SpanContextFromContext(ctx)
	}
	own := trace.SpanContextConfig{TraceID: s.parent.TraceID(), TraceState: s.parent.TraceState(), TraceFlags: trace.FlagsSampled}
	if !s.parent.IsValid() {
		_, _ = rand.Read(own.TraceID[:])
	}
	_, _ = rand.Read(own.SpanID[:])
	s.own = trace.NewSpanContext(own)
	s.SetAttributes(config.Attributes()...)
	return trace.ContextWithSpan(ctx, s), s
}

type span struct {
	noop.Span

	spans       *spans
	name        string
	kind        trace.SpanKind
	own, parent trace.SpanContext
	links       []trace.Link
	events      []string
	attributes  map[attribute.Key]any
	code        codes.Code
	description string
}

func (s *span) SpanContext() trace.SpanContext               { return s.own }
func (s *span) IsRecording() bool                            { return true }
func (s *span) AddEvent(name string, _ ...trace.EventOption) { s.events = append(s.events, name) }
func (s *span) RecordError(err error, _ ...trace.EventOption) {
	s.events = append(s.events, err.Error())
}
func (s *span) AddLink(link trace.Link) { s.links = append(s.links, link) }
func (s *span) SetName(name string)     { s.name = name }
func (s *span) SetStatus(code codes.Code, description string) {
	s.code, s.description = code, description
}
func (s *span) TracerProvider() trace.TracerProvider { return s.spans }

func (s *span) SetAttributes(all ...attribute.KeyValue) {
	for _, a := range all {
		s.attributes[a.Key] = a.Value.AsInterface()
	}
}

func (s *span) End(...trace.SpanEndOption) {
	s.spans.mu.Lock()
	defer s.spans.mu.Unlock()
	s.spans.all = append(s.spans.all, s)
}
