package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestMain makes the test binary a child, as main does.
func TestMain(m *testing.M) {
	if task, ok := childTask(os.Args[1:]); ok {
		os.Exit(runChild(context.Background(), task, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestMeasure_PrintsEveryRowWithFiniteNumbers(t *testing.T) {
	t.Parallel()
	var table bytes.Buffer
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	require.NoError(t, measure(t.Context(), pgtest.URL(t), options{scale: 0.002}, log, &table))
	t.Log("\n" + table.String())

	rows := map[string]int{}
	for line := range strings.Lines(table.String()) {
		if cells := strings.Split(line, " | "); len(cells) == 6 {
			rows[strings.TrimPrefix(cells[0], "| ")]++
		}
	}
	delete(rows, "") // the head
	require.Equal(t, map[string]int{"batch": 1, "each": 1, "webhook": 3, "rabbitmq": 2, "kafka": 2, "nats": 2, "latency": 2, "switch": 3, "tail": 4, "memory": 3}, rows)
	require.NotContains(t, table.String(), "NaN")
	require.NotContains(t, table.String(), "Inf")
	for _, fact := range []string{"machine", "system", "Go", "PostgreSQL", "date", "command"} {
		require.Contains(t, table.String(), "- "+fact+": ")
	}
}

func TestReport_MarksWhatMissesItsTarget(t *testing.T) {
	t.Parallel()
	var table bytes.Buffer
	require.NoError(t, report(&table, []fact{{"Go", "1.26"}}, []row{
		{name: "a", value: spread{0.7, 0.6, 0.8}, target: target{0.75, atLeast}},
		{name: "b", value: spread{0.75, 0.6, 0.8}, target: target{0.75, atLeast}},
		{name: "c", value: spread{median: 63.9}, unit: " MiB", target: target{64, below}},
		{name: "d", value: spread{median: 64}, unit: " MiB", target: target{64, below}},
		{name: "e", value: spread{1, 1, 1}},
	}))
	require.Contains(t, table.String(), "| a |  | 0.70 (0.60–0.80) | ≥ 0.75 | **below target** |")
	require.Contains(t, table.String(), "| b |  | 0.75 (0.60–0.80) | ≥ 0.75 | met |")
	require.Contains(t, table.String(), "| c |  | 63.9 MiB | < 64 MiB | met |")
	require.Contains(t, table.String(), "| d |  | 64.0 MiB | < 64 MiB | **below target** |")
	require.Contains(t, table.String(), "| e |  | 1.00 (1.00–1.00) | — | — |")
}

func TestParseOptions_RefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-only", "speed"}, {"-scale", "0"}, {"-scale", "-1"}, {"-scale", "NaN"}, {"each"}, {"-x"}} {
		require.Equal(t, exitUsage, run(t.Context(), args, io.Discard, io.Discard), args)
	}
}

func TestSpread_TakesTheMedianOfTheRatiosOfEachRound(t *testing.T) {
	t.Parallel()
	require.Equal(t, spread{2, 0.5, 4}, ratio([]float64{8, 1, 20}, []float64{2, 2, 10}))
	require.Equal(t, spread{2.5, 1, 4}, spreadOf([]float64{4, 1, 3, 2}))
	require.InDelta(t, 99, percentile(numbers(100), 99), 0)
	require.InDelta(t, 1, percentile(numbers(1), 50), 0)
	require.True(t, math.IsInf(ratio([]float64{1}, []float64{0}).median, 1))
}

func numbers(n int) []float64 {
	result := make([]float64, n)
	for i := range result {
		result[i] = float64(i + 1)
	}
	return result
}
