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

func TestMain_EveryBookingHasItsSMSOnceInOrder(t *testing.T) {
	t.Parallel()
	var out screen
	require.NoError(t, run(t.Context(), pgtest.URL(t), &out))
	text := out.text.String()
	require.Contains(t, text, "the provider is down\n")
	require.Contains(t, text, "the provider sends an SMS, and its answer is lost\n")
	require.Contains(t, text, "verdict: 200 bookings, 211 requests, 200 SMS, 0 of them missing, twice or out of order\n")
}
