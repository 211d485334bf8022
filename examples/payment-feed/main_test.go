package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestMain_EveryUsageIsChargedOnceInOrderPastAPoisonEvent(t *testing.T) {
	t.Parallel()
	payments := paymentProcessor{python: brokertest.Python(t, "psycopg"), repository: filepath.Join("..", "..")}
	var out strings.Builder
	require.NoError(t, run(t.Context(), pgtest.URL(t), payments, &out))
	text := out.String()
	require.Contains(t, text, "payments is halted at record 30: ")
	require.Contains(t, text, "answered 422 Unprocessable Entity: there is no currency […]\n29 events are charged, and all others wait\n")
	require.Contains(t, text, "the operator has corrected the row, and the feed goes on\n")
	require.Contains(t, text, "verdict: 60 usage events, 60 charges, 0 of them missing, wrong, twice or out of order\n")
}
