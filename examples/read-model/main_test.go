package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestMain_EndsWithBalancesThatAreTheSumsOfTheirEvents(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, run(t.Context(), pgtest.URL(t), &out))
	require.Contains(t, out.String(), "version 2 is built beside it, and no balance differs\nreaders use version 2 now; version 1 stood still for ")
	require.Contains(t, out.String(), "verdict: 1200 events, 5 accounts, 0 balances that differ from the sum of their events\n")
}
