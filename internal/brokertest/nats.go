package brokertest

import (
	"context"
	"testing"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
)

// NewNATS starts a server for one test, which may kill it.
func NewNATS(t testing.TB, c broker.NATSConfig) *broker.NATS {
	t.Helper()
	return start(t, func(ctx context.Context) (*broker.NATS, error) { return broker.StartNATS(ctx, c) })
}

var sharedNATS shared[*broker.NATS]

// SharedNATS returns the server that all tests of a package share.
func SharedNATS(t testing.TB) *broker.NATS {
	t.Helper()
	return sharedNATS.get(t, func(ctx context.Context) (*broker.NATS, error) {
		return broker.StartNATS(ctx, broker.NATSConfig{})
	})
}
