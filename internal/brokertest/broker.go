package brokertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// running is a broker of any kind.
type running interface {
	Close(ctx context.Context) error
	Log() string
}

const closeTimeout = time.Minute

// start starts a broker for one test.
func start[B running](t testing.TB, start func(context.Context) (B, error)) B {
	t.Helper()
	b, err := start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the broker's log:\n%s", b.Log())
		}
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return b
}

// shared is a broker for all tests of a package, started when the first test needs it. It ends with the process.
type shared[B running] struct {
	once   sync.Once
	broker B
	err    error
}

func (s *shared[B]) get(t testing.TB, start func(context.Context) (B, error)) B {
	t.Helper()
	s.once.Do(func() { s.broker, s.err = start(context.Background()) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.broker
}

// NewRabbitMQ starts a broker for one test, which may kill it.
func NewRabbitMQ(t testing.TB, c broker.RabbitMQConfig) *broker.RabbitMQ {
	t.Helper()
	pgtest.Require(t, "rabbitmq-server")
	return start(t, func(ctx context.Context) (*broker.RabbitMQ, error) { return broker.StartRabbitMQ(ctx, c) })
}

var sharedRabbitMQ shared[*broker.RabbitMQ]

// SharedRabbitMQ returns the broker that all tests of a package share.
func SharedRabbitMQ(t testing.TB) *broker.RabbitMQ {
	t.Helper()
	pgtest.Require(t, "rabbitmq-server")
	return sharedRabbitMQ.get(t, func(ctx context.Context) (*broker.RabbitMQ, error) {
		return broker.StartRabbitMQ(ctx, broker.RabbitMQConfig{})
	})
}
