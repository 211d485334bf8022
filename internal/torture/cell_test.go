package main

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/torture/history"
)

func TestCellFaults_AreOneOfEachKind(t *testing.T) {
	t.Parallel()
	var kinds []history.Kind
	for _, f := range cellFaults() {
		kinds = append(kinds, f.kind)
	}
	require.ElementsMatch(t, history.CellKinds(), kinds)
	chosen, err := chosenFaults("hang,lossy")
	require.NoError(t, err)
	require.Len(t, chosen, 2)
	_, err = chosenFaults("hang,earthquake")
	require.ErrorContains(t, err, "earthquake")
}

func TestCellConfiguration_IsWhatTheDaemonReads(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/url"
	require.NoError(t, os.WriteFile(file, []byte("postgres://127.0.0.1/x"), 0o600))
	hook, err := openCellHook(t.Context(), history.NewClock())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, hook.close(t.Context())) })
	receivers := []cellReceiver{
		hook, sharedStream{NATS: &broker.NATS{}}, sharedQueue{queues{&broker.RabbitMQ{}}}, sharedTopic{Kafka: &broker.Kafka{}},
	}
	config, err := daemon.Parse("R.yaml", []byte(cellConfiguration(receivers, file)), func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	require.Len(t, config.Processes, len(cellProcesses(receivers)))
	for i, p := range cellProcesses(receivers) {
		require.Equal(t, p.name, config.Processes[i].Name)
		require.Equal(t, max(1, p.checkpoint), config.Processes[i].Checkpoint)
	}
}

func TestCommand_ReplaysTheCell(t *testing.T) {
	t.Parallel()
	o, err := parseOptions([]string{"-seed", "7", "-for", "2m", "-only", "cell", "-faults", "two"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "go run ./internal/torture -seed 7 -for 2m0s -only cell -faults two", o.command())
	require.GreaterOrEqual(t, o.length, atLength)
	require.Less(t, shortLength, atLength)
	for _, args := range [][]string{{"-only", "some"}, {"-faults", "earthquake"}} {
		_, err := parseOptions(args, io.Discard)
		require.Error(t, err, args)
	}
	require.Equal(t, 2*time.Minute, o.length)
}
