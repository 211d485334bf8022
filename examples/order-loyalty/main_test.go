package main

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

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

func TestMain_EveryOrderHasItsPointsOnceAndTheLagIsNoticed(t *testing.T) {
	t.Parallel()
	var out screen
	require.NoError(t, run(t.Context(), pgtest.URL(t), &out))
	text := out.text.String()
	require.Contains(t, text, "the receiver crashes: it has added points, and Kafka does not know it\na record comes again, and adds nothing\n")
	_, away, _ := strings.Cut(text, "Kafka is away\n")
	require.Contains(t, away, "the alert is over\n")
	require.Contains(t, text, "alert: an order has waited longer than 500ms\n")
	require.Contains(t, text, "objective: 99 % within 500ms: missed, as it should be here\n")
	require.Contains(t, text, "verdict: 300 orders, 0 of them without their points, twice or out of order; 5 customers, 0 with wrong points\n")
}
