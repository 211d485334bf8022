package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

func TestRead_IsWhatWasWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := &history.Run{
		Setting:    history.Setting{Seed: 1<<63 + 1, For: time.Minute, Processes: []history.Process{{Name: "p", Sink: history.SQL, Checkpoint: 3}}},
		Writes:     []history.Write{{T: 1, Step: history.Insert, Tx: "a-1", Key: "k"}, {T: 2, Step: history.Aborted, Tx: "b-1"}},
		Deliveries: []history.Delivery{{T: 3, Act: history.Receive, ID: 1, Key: "k", Epoch: 2}, {T: 4, Act: history.Reply, ID: 1, Status: 204}},
		Faults:     []history.Fault{{T: 5, Phase: history.Begin, ID: 7, Kind: history.Kill, Worker: "A"}},
		Actions:    []history.Action{{T: 6, Process: "p", Kind: "pause", Tx: "17"}},
		Moves:      []history.Move{{T: 7, N: 1, Process: "p", To: history.Standing{Position: "x", Epoch: 1}}},
		Told:       []history.Told{{From: 7, T: 8, Process: "p", At: history.Standing{Epoch: 1}, Lag: -1, Hold: "halted"}},
		Holds:      []history.Hold{{From: 8, To: 9, Kind: history.HoldsRow, Process: "p"}},
		Letters:    []history.Letter{{Tx: "17", Process: "p", Key: "k", Sequence: 3, Attempts: 2}},
		Rows:       []history.Row{{Table: "t", Position: "x", Key: "k", Hash: "h"}},
		Applied:    []history.Applied{{N: 1, Process: "p", Key: "k"}, {N: 2, T: 9, Process: "q", Epoch: 3}},
		Ends:       []history.End{{Process: "p", Waited: 8}},
		Beats:      []history.Beat{{T: 9, Took: 1}},
	}
	require.NoError(t, history.WriteAll(dir, history.SettingActor, []history.Setting{want.Setting}))
	require.NoError(t, history.WriteAll(dir, history.ProducerActor+"a", want.Writes[:1]))
	require.NoError(t, history.WriteAll(dir, history.ProducerActor+"b", want.Writes[1:]))
	require.NoError(t, history.WriteAll(dir, history.ReceiverActor, want.Deliveries))
	require.NoError(t, history.WriteAll(dir, history.NemesisActor, want.Faults))
	require.NoError(t, history.WriteAll(dir, history.OperatorActor, want.Actions))
	require.NoError(t, history.WriteAll(dir, history.CursorActor, want.Moves))
	require.NoError(t, history.WriteAll(dir, history.WatchActor, want.Told))
	require.NoError(t, history.WriteAll(dir, history.HoldsActor, want.Holds))
	require.NoError(t, history.WriteAll(dir, history.LettersActor, want.Letters))
	require.NoError(t, history.WriteAll(dir, history.RowsActor, want.Rows))
	require.NoError(t, history.WriteAll(dir, history.AppliedActor, want.Applied))
	require.NoError(t, history.WriteAll(dir, history.EndActor, want.Ends))
	require.NoError(t, history.WriteAll(dir, history.BeatsActor, want.Beats))
	got, err := history.Read(dir)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestRead_RefusesADirectoryWithoutARun(t *testing.T) {
	t.Parallel()
	_, err := history.Read(t.TempDir())
	require.ErrorContains(t, err, "is it the directory of a run?")
}

func TestClock_ConvertsTheWallClock(t *testing.T) {
	t.Parallel()
	c := history.NewClock()
	wall := time.Now().Round(0)
	require.InDelta(t, c.Now(), c.At(wall), float64(time.Second))
	require.InDelta(t, 0, c.Drift(), float64(time.Second))
}
