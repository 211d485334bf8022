package daemon_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

// sinksWithTimeout have a place for their time-out; "" is a kind that has none.
var sinksWithTimeout = map[string]string{
	"webhook":  "{url: 'http://h', timeout: %s}",
	"rabbitmq": "{url: 'amqp://h', exchange: e, timeout: %s}",
	"nats":     "{url: 'nats://h', stream: S, subject: s, timeout: %s}",
	"kafka":    "{brokers: ['h:9092'], topic: t, timeout: %s}",
	"pubsub":   "{project: project, topic: topic, timeout: %s}",
	"sql":      "{url: 'postgres://a@h/x', statement: SELECT 1, timeout: %s}",
	"exec":     "{command: [cat], timeout: %s}",
	"stdout":   "",
}

// TestMaxLease_FollowsTheTimeoutOfEachKindOfSink: doctor advises to lower the timeout, and an operator who raises it expects longer calls.
func TestMaxLease_FollowsTheTimeoutOfEachKindOfSink(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		kind := k.Name
		sink, known := sinksWithTimeout[kind]
		require.True(t, known, "%s has no place for its time-out here", kind)
		if sink == "" {
			continue
		}
		bound := func(timeout string) time.Duration {
			config, err := parse(fmt.Sprintf("processes: {a: {source: {table: t}, sink: {%s: %s}}}", kind, fmt.Sprintf(sink, timeout)))
			require.NoError(t, err)
			return daemon.MaxLease(t, config, config.Processes[0])
		}
		require.LessOrEqual(t, bound("5s"), 40*time.Second, kind)
		require.GreaterOrEqual(t, bound("10m"), 10*time.Minute, "%s: it ends a call itself", kind)
		require.Less(t, bound("10m"), 21*time.Minute, kind)
		require.LessOrEqual(t, bound("1h"), time.Hour+5*time.Second, kind)
	}
}

// TestMaxLease_OfExecIsThatOfItsRecords: of each one the line is written, and the answer awaited. Half of the lease's time-out
// is for a read, and 5 s for the rest of the call.
func TestMaxLease_OfExecIsThatOfItsRecords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"sink: {exec: {command: [cat], timeout: 5s}}":                               20 * time.Second,
		"sink: {exec: {command: [cat], timeout: 5s}}, checkpoint: 20":               210 * time.Second,
		"sink: {exec: {command: [cat], timeout: 5s, window: 20}}, checkpoint: 20":   210 * time.Second,
		"sink: {exec: {command: [cat]}}":                                            70 * time.Second,
		"sink: {exec: {command: [cat], timeout: 1h}}, batch: 9999, checkpoint: 999": time.Hour + 5*time.Second,
	} {
		config, err := parse("processes: {a: {source: {table: t}, " + text + "}}")
		require.NoError(t, err)
		require.Equal(t, want, daemon.MaxLease(t, config, config.Processes[0]), text)
	}
}
