package processor

import (
	"context"
	"testing"
)

// BenchmarkAttempt is what the processor itself does around a sink call, when
// nobody collects the spans: for one record, for one whose headers name a trace,
// and for a batch.
func BenchmarkAttempt(b *testing.B) {
	takes := SinkFunc(func(context.Context, Delivery) error { return nil })
	takesAll := BatchSinkFunc(func(_ context.Context, ds []Delivery) (int, error) { return len(ds), nil })
	plain := Delivery{Record: Record{ID: "1"}}
	traced := Delivery{Record: Record{ID: "1", Headers: map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}
	for name, c := range map[string]struct {
		dispatch Dispatch
		ds       []Delivery
	}{
		"one":    {Each(takes), []Delivery{plain}},
		"traced": {Each(takes), []Delivery{traced}},
		"batch":  {Batch(takesAll), make([]Delivery, 500)},
	} {
		b.Run(name, func(b *testing.B) {
			s := bare(c.dispatch)
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.attempt(ctx, nil, c.ds); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// bare is a shift that only attempts.
func bare(dispatch Dispatch) *shift {
	config := Config{Process: "sms", Dispatch: dispatch}.withDefaults()
	tracing := newTracing(config)
	return &shift{config: &config, tracing: &tracing}
}
