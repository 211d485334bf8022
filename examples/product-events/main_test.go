package main

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// screen takes lines from several goroutines.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(line)
}

func TestMain_EachSubscriberHasEveryChangeOnceInOrder(t *testing.T) {
	t.Parallel()
	rabbit := brokertest.NewRabbitMQ(t, broker.RabbitMQConfig{})
	var out screen
	require.NoError(t, run(t.Context(), pgtest.URL(t), rabbit.URL(rabbit.Addr()), &out))
	text := out.text.String()
	for _, name := range []string{"search", "cache"} {
		require.Contains(t, text, name+" crashes: it has applied a message, and the broker does not know it\n")
		require.Contains(t, text, name+": a message comes again, and changes nothing\n")
	}
	require.Contains(t, text, "verdict: 120 events of 40 products, 0 wrong in the index, 0 out of date in the cache\n")
}
