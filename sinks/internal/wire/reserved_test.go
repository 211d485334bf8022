package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/wire"
)

func TestReserved_KnowsTheNamesInAnyCase(t *testing.T) {
	t.Parallel()
	for of, names := range map[*func(string) bool][]string{
		ptr(wire.Ours):   {"ordered-epoch", "Ordered-Sequence", "ORDERED-", "content-type", "Content-Type"},
		ptr(wire.NATS):   {"Nats-Rollup", "nats-msg-id", "NATS-TTL", "Nats-Expected-Last-Sequence", "Nats-Schedule"},
		ptr(wire.PubSub): {"googclient_schemaencoding", "GoogClient_x", "google-x"},
		ptr(wire.AMQP):   {"CC", "BCC", "cc", "Bcc", "x-delay", "X-Delay", "x-deduplication-header", "x-received-from", "x-stream-filter-value", "x-opt-a", "x-first-death-queue"},
	} {
		for _, name := range names {
			require.True(t, (*of)(name), name)
			require.True(t, wire.Any(name), name)
		}
	}
	for _, name := range []string{"", "ordered", "content-encoding", "traceparent", "x-request-id", "acc", "ccc", "reply-to", "x-matched", "nats", "goo"} {
		require.False(t, wire.Any(name), name)
	}
}

func ptr(f func(string) bool) *func(string) bool { return &f }
