package processor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// A chain without a gap, over chunks, attempts and a dead letter: a receiver that
// keeps the last position can tell that it has missed nothing.
func TestDelivery_AfterIsThePositionOfTheRecordBefore(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 9)
	mended := false
	sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
		if d.ID == "5" && !mended {
			return processor.Permanent(errRefused)
		}
		return failing("3", 1, errRefused)(t.Context(), d)
	}}
	p := process(t, pool, processor.Batch(oneByOne(sink)), func(c *processor.Config) { deadLetters(c); quick(c); c.Batch = 4 })
	require.NoError(t, p.Drain(t.Context()))
	at := map[string]processor.Delivery{"0": {}}
	for _, d := range sink.got {
		before := string(rune(d.ID[0] - 1))
		require.Equal(t, at[before].Position, d.After, "record %s, attempt %d", d.ID, d.Attempt)
		at[d.ID] = d
	}

	mended = true
	open, err := operator.New(store(t, pool)).DeadLetters(t.Context(), "sms", false, 1)
	require.NoError(t, err)
	require.NoError(t, p.Replay(t.Context(), open[0].ID, cursor.Decision{Actor: "me", Reason: "mended"}))
	replayed := sink.attemptsOf("5")[1]
	require.Equal(t, replayed.Position, replayed.After, "out of turn")
}

// TestDelivery_NamesTheWorkerThatHasTheLease: also one that replays a dead letter. A receiver knows by it that an epoch
// was used twice.
func TestDelivery_NamesTheWorkerThatHasTheLease(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	sink := &receiver{answer: failing("2", 1, processor.Permanent(errRefused))}
	var workers []string
	for range 2 {
		p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
			deadLetters(c)
			c.Store = store(t, pool)
			workers = append(workers, c.Store.Worker())
		})
		if len(workers) == 1 {
			require.NoError(t, p.Drain(t.Context()))
			continue
		}
		require.NoError(t, p.Replay(t.Context(), 1, cursor.Decision{Actor: "me", Reason: "mended"}))
	}
	require.NotEqual(t, workers[0], workers[1])
	require.Len(t, sink.got, 4)
	for i, d := range sink.got {
		require.Equal(t, workers[i/3], d.Worker)
	}
}
