package nats_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestSink_KeepsThePromisesOfAllSinks(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 20} {
		t.Run(fmt.Sprintf("window %d", n), func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, func(t *testing.T) sinktest.Subject {
				b := newBench(t, func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "ordered-fence.post") })
				return sinktest.Subject{
					Sink:     b.sink(t, window(n)),
					Received: b.received,
					Header:   b.headers,
					Refuse:   func(t testing.TB, _ string) func() { return b.refuse(t) },
					Deny: func(t testing.TB) (processor.BatchSink, func()) {
						return b.sink(t, func(c *nats.Config) { c.Password = "wrong-password" }), func() {}
					},
					Away:     b.away,
					Silence:  func(testing.TB) { b.link.Stall() },
					Lose:     sinktest.Lose(b.link, sinktest.Payload),
					Another:  func(t testing.TB, _ string) processor.BatchSink { return b.sink(t, window(n)) },
					Empty:    func(t testing.TB) { require.NoError(t, b.stream.Purge(t.Context())) },
					TooLarge: 1 << 20, // max_payload
					Order:    true,
				}
			})
		})
	}
}

func TestDeliverBatch_MessageCarriesTheRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	d := sinktest.Deliveries(9007199254740993, 1)[0]
	d.Type, d.Key = "Made", " 50% é\r\n\xff"
	d.Headers = map[string]string{"traceparent": "00-1", "Ordered-Epoch": "99", "Nats-Rollup": "all", "nats-ttl": "1s"}
	sinktest.Delivered(t, b.sink(t, nil), []processor.Delivery{d})
	all := b.read(t)
	require.Len(t, all, 1)
	require.Equal(t, "bookings.made", all[0].Subject)
	require.Equal(t, string(d.Payload), all[0].Body)
	require.Regexp(t, "^[0-9a-f]{32}$", all[0].Headers["Nats-Msg-Id"])
	require.Equal(t, map[string]string{
		"Nats-Msg-Id": all[0].Headers["Nats-Msg-Id"], "ordered-dedup-key": d.DedupKey(), "content-type": "application/json",
		"ordered-version": "1", "ordered-created-at": d.CreatedAt.Format(time.RFC3339Nano),
		"ordered-process": "sms", "ordered-origin": "here", "ordered-sequence": "9007199254740993", "ordered-epoch": "3", "ordered-attempt": "1",
		"ordered-position": string(d.Position), "ordered-key": "%2050%25 %C3%A9%0D%0A%FF", "ordered-type": "Made",
		"traceparent":          "00-1",
		"Nats-Expected-Stream": stream, "Nats-Expected-Last-Subject-Sequence": "1", "Nats-Expected-Last-Subject-Sequence-Subject": fence,
	}, all[0].Headers)
}
