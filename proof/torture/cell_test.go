package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
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
	hook, err := openCellHook(t.Context(), history.NewClock())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, hook.close(t.Context())) })
	receivers := []cellReceiver{
		hook, sharedStream{NATS: &broker.NATS{}}, sharedQueue{queues{&broker.RabbitMQ{}}}, sharedTopic{Kafka: &broker.Kafka{}},
	}
	text := requireAccepted(t, func(urlFile string) string { return cellConfiguration(receivers, urlFile) })
	for _, p := range cellProcesses(receivers) {
		require.Contains(t, text, "\n  "+p.name+":\n")
	}
}

func TestCommand_ReplaysTheCell(t *testing.T) {
	t.Parallel()
	o, err := parseOptions([]string{"-seed", "7", "-for", "2m", "-only", "cell", "-faults", "two"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "go run ./proof/torture -seed 7 -for 2m0s -only cell -faults two", o.command())
	require.GreaterOrEqual(t, o.length, atLength)
	require.Less(t, shortLength, atLength)
	for _, args := range [][]string{{"-only", "some"}, {"-faults", "earthquake"}} {
		_, err := parseOptions(args, io.Discard)
		require.Error(t, err, args)
	}
	require.Equal(t, 2*time.Minute, o.length)
}
