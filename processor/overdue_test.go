package processor_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// A sink that does not look at its context cannot be ended, but it is not waited for
// in silence.
func TestCall_OneThatIgnoresItsTimeoutIsNamedInTheLog(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	let := make(chan struct{})
	sink := &receiver{answer: func(context.Context, processor.Delivery) error { <-let; return nil }}
	log := &logbook{}
	stop := start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) {
		c.Timeout, c.Logger = 10*time.Millisecond, slog.New(slog.NewTextHandler(log, nil))
	}))
	release := sync.OnceFunc(func() { close(let) })
	t.Cleanup(release) // before the process is stopped
	const words = "the sink call does not return"
	require.Eventually(t, func() bool { return log.has(words) }, time.Minute, 10*time.Millisecond)
	require.True(t, log.has("record_id=1"))
	require.True(t, log.has("deadline exceeded"))
	release()
	eventually(t, "delivered", func() bool { return row(t, pool).Sequence == 1 })
	require.NoError(t, stop())
	require.Equal(t, 1, log.count(words))
}
