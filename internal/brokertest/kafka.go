package brokertest

import (
	"context"
	"testing"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// NewKafka starts a broker for one test, which may kill it.
func NewKafka(t testing.TB, c broker.KafkaConfig) *broker.Kafka {
	t.Helper()
	requireKafka(t)
	return start(t, func(ctx context.Context) (*broker.Kafka, error) { return broker.StartKafka(ctx, c) })
}

var sharedKafka shared[*broker.Kafka]

// SharedKafka returns the broker that all tests of a package share.
func SharedKafka(t testing.TB) *broker.Kafka {
	t.Helper()
	requireKafka(t)
	return sharedKafka.get(t, func(ctx context.Context) (*broker.Kafka, error) {
		return broker.StartKafka(ctx, broker.KafkaConfig{})
	})
}

func requireKafka(t testing.TB) {
	t.Helper()
	pgtest.Require(t, "java")
	pgtest.Require(t, "mvn")
	pgtest.Require(t, "kcat")
}
