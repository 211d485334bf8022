package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

func TestMetronome_NotesItsBeats(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), history.NewClock()
	m, err := startMetronome(clock, dir)
	require.NoError(t, err)
	for clock.Now() < 10*history.BeatInterval {
		require.True(t, pause(t.Context(), history.BeatInterval))
	}
	require.NoError(t, m.close())
	require.NoError(t, history.WriteAll(dir, history.SettingActor, []history.Setting{{}}))
	run, err := history.Read(dir)
	require.NoError(t, err)
	require.NotEmpty(t, run.Beats)
	for _, b := range run.Beats {
		require.Positive(t, b.Took)
		require.LessOrEqual(t, m.since(b.T), clock.Now()-b.T)
	}
}
