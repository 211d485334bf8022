package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

func TestReadMetrics_TakesTheGaugesOfProcesses(t *testing.T) {
	t.Parallel()
	all, err := readMetrics(strings.NewReader(`# HELP ordered_dispatcher_epoch Its epoch.
# TYPE ordered_dispatcher_epoch gauge
ordered_dispatcher_epoch{process="a"} 3
ordered_dispatcher_sequence{process="a"} 1.20034e+06
ordered_dispatcher_halted_seconds{process="a"} 0.001
ordered_dispatcher_paused{process="b"} 1
ordered_dispatcher_fence_lag_seconds{cause="writer",process="b"} 1
go_goroutines 12
`))
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, history.Told{Lag: -1, At: history.Standing{Sequence: 1200340, Epoch: 3, State: "halted"}}, all["a"].told())
	require.Equal(t, history.Told{Lag: -1, At: history.Standing{State: "paused"}}, all["b"].told())

	_, err = readMetrics(strings.NewReader(`ordered_dispatcher_epoch{process="a"} three`))
	require.Error(t, err)
}

// TestAskStatus_ReadsWhatStatusPrints reads a line of `status --json`.
func TestAskStatus_ReadsWhatStatusPrints(t *testing.T) {
	t.Parallel()
	line := `{"processes":[{"process":"a","state":"running","position":"p1","sequence":"1152921504606846976","epoch":"2",` +
		`"lag":{"records":"5"},"hold":{"kind":"failing"},"problem":"some","failure":{"position":"p2","attempts":1}}]}`
	var document statusDocument
	require.NoError(t, json.Unmarshal([]byte(line), &document))
	require.Equal(t, history.Told{
		Process: "a", Lag: 5, Hold: "failing", Problem: "some",
		At: history.Standing{Position: "p1", Sequence: 1 << 60, Epoch: 2, State: "running", Failed: "p2"},
	}, document.Processes[0].told())
}
