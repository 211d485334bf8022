package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

const second = time.Second

// halfSpeed is a tempo whose beats take twice as long from second 10 to second 20.
func halfSpeed() *history.Tempo {
	var t history.Tempo
	t.Add(history.Beat{T: 10 * second, Took: history.BeatNominal / 2})
	t.Add(history.Beat{T: 20 * second, Took: 2 * history.BeatNominal})
	t.Add(history.Beat{T: 30 * second, Took: history.BeatNominal})
	return &t
}

func TestTempo_ASecondIsWorthLessWhileBeatsTakeLonger(t *testing.T) {
	t.Parallel()
	tempo := halfSpeed()
	near := func(want, got time.Duration) {
		t.Helper()
		require.InDelta(t, want, got, float64(time.Millisecond))
	}
	near(10*second, tempo.Between(0, 10*second))
	near(5*second, tempo.Between(10*second, 20*second))
	near(2*second, tempo.Between(9*second, 11*second+1*second))
	near(20*second, tempo.After(0, 15*second))
	near(12*second, tempo.After(9*second, 2*second))
	near(14*second, tempo.After(12*second, 1*second))
	near(60*second, tempo.After(25*second, 35*second))
	require.Equal(t, history.Forever, tempo.After(history.Forever-1, second))
	require.Equal(t, history.Forever, tempo.After(history.Forever, 0))
}

func TestTempo_WithoutBeatsIsTime(t *testing.T) {
	t.Parallel()
	var tempo history.Tempo
	require.Equal(t, 3*second, tempo.After(second, 2*second))
	require.Equal(t, second, tempo.Between(second, 2*second))
}

func TestTempo_LeavesOutABeatThatIsOutOfOrder(t *testing.T) {
	t.Parallel()
	tempo := halfSpeed()
	tempo.Add(history.Beat{T: second, Took: time.Hour})
	require.InDelta(t, 10*second, tempo.Between(0, 10*second), float64(time.Millisecond))
}
