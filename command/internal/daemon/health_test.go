package daemon_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

func TestPulse_FaultsAProcessInWhichNothingHappens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pulse := daemon.NewPulse("a", time.Minute)
		time.Sleep(time.Minute)
		require.NoError(t, pulse.Fault(), "it has not had its time yet")
		time.Sleep(time.Second)
		require.EqualError(t, pulse.Fault(), `process "a": nothing has happened for 1m1s, and something should within 1m0s`)
		pulse.Beat()
		require.NoError(t, pulse.Fault())
		time.Sleep(time.Hour)
		require.Error(t, pulse.Fault())
		pulse.End()
		require.NoError(t, pulse.Fault(), "a process that was drained has nothing to do")
	})
}
