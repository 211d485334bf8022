package screen_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
)

func TestAmounts_AreShort(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{"350ms": 350 * time.Millisecond, "42s": 42 * time.Second, "3m5s": 185 * time.Second, "26h3m": 26*time.Hour + 3*time.Minute, "12d": 300 * time.Hour} {
		require.Equal(t, want, screen.Age(d))
	}
	for want, r := range map[string]float64{"0": 0, "0.1/s": 0.01, "2.5/s": 2.5, "35/s": 35.2, "1.2k/s": 1234, "1000k/s": 1e6} {
		require.Equal(t, want, screen.Rate(r))
	}
}

func TestProgress_SaysHowMuchIsLeft(t *testing.T) {
	t.Parallel()
	require.Equal(t, "[##########------------------------------] 250 of 1000 records, 50/s, 15s left", screen.Progress{Delivered: 250, Total: 1000, Rate: 50}.Line(80))
	require.Equal(t, "250 of 1000+ records, 50/s", screen.Progress{Delivered: 250, Total: 1000, More: true, Rate: 50}.Line(20))
	require.Equal(t, "0 of 0 records, 0", screen.Progress{}.Line(80))
	require.Equal(t, "[########################################] 1000 of 1000 records, 0", screen.Progress{Delivered: 1000, Total: 1000}.Line(80))
	var none *screen.Bar
	none.Show("nothing")
}
