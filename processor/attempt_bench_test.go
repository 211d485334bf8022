package processor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkAttempt is what the processor itself does around a sink call, when
// nobody collects the spans: for one record, for one whose headers name a trace,
// and for a batch.
func BenchmarkAttempt(b *testing.B) {
	plain := Delivery{Record: Record{ID: "1"}}
	traced := Delivery{Record: Record{ID: "1", Headers: map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}
	for name, c := range map[string]struct {
		dispatch Dispatch
		ds       []Delivery
	}{
		"one":    {Each(SinkFunc(nil)), []Delivery{plain}},
		"traced": {Each(SinkFunc(nil)), []Delivery{traced}},
		"batch":  {Batch(BatchSinkFunc(nil)), make([]Delivery, 500)},
	} {
		b.Run(name, func(b *testing.B) {
			s := &shift{Process: bare(b, c.dispatch)}
			ctx := b.Context()
			deliver := func(context.Context) (int, error) { return len(c.ds), nil }
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.attempt(ctx, c.ds, deliver); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// bare is a process that only attempts.
func bare(t testing.TB, dispatch Dispatch) *Process {
	t.Helper()
	config := Config{Process: "sms", Dispatch: dispatch}.withDefaults()
	require.NotNil(t, config.Observe)
	return &Process{config: config, tracing: newTracing(config)}
}
