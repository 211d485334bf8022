package processor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// doubts are the calls as "id/attempt", with a question mark where the receiver
// may have the record already.
func (r *receiver) doubts() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []string
	for _, d := range r.got {
		mark := ""
		if d.Unknown {
			mark = "?"
		}
		calls = append(calls, fmt.Sprintf("%s/%d%s", d.ID, d.Attempt, mark))
	}
	return strings.Join(calls, " ")
}

func TestUnknown_StandsAfterATimeoutUntilTheRecordIsDelivered(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 4)
	sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
		switch {
		case d.ID == "1" && d.Attempt == 1, d.ID == "3" && d.Attempt == 2:
			return errRefused
		case d.ID == "3" && d.Attempt == 1:
			return context.DeadlineExceeded
		default:
			return nil
		}
	}}
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Checkpoint = 4; quick(c) })
	require.NoError(t, p.Drain(t.Context()))
	require.Equal(t, "1/1 1/2 2/1 3/1 3/2? 3/3? 4/1", sink.doubts(), "a refusal leaves no doubt, and takes none away")
}

func TestUnknown_StandsAtWhatAnotherWorkerMayHaveSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dispatch func(*receiver) processor.Dispatch
		change   func(*processor.Config)
		want     string
	}{
		"a checkpoint": {
			func(r *receiver) processor.Dispatch { return processor.Each(r) },
			func(c *processor.Config) { c.Checkpoint = 2 }, "1/1 2/1 3/1? 4/1? 5/1",
		},
		"a batch": {
			func(r *receiver) processor.Dispatch { return processor.Batch(oneByOne(r)) },
			func(c *processor.Config) { c.Batch = 2 }, "1/1 2/1 3/1? 4/1? 5/1",
		},
		"a checkpoint of a pipeline": {
			func(r *receiver) processor.Dispatch { return processor.Pipeline(oneByOne(r)) },
			func(c *processor.Config) { c.Checkpoint = 2 }, "1/1 2/1 3/1? 4/1? 5/1",
		},
		"none in a transaction": {
			func(r *receiver) processor.Dispatch { return processor.InTx(r) },
			nil, "1/1 2/1 3/1 4/1 5/1",
		},
		"past a dead letter": {
			func(r *receiver) processor.Dispatch { return processor.Each(r) },
			func(c *processor.Config) { c.Checkpoint, c.DeadLetter, c.Retry.Attempts = 3, true, 1 }, "1/1 2/1 3/1? 4/1? 5/1?",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 2)
			sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
				if name == "past a dead letter" && d.ID == "3" {
					return errRefused
				}
				return nil
			}}
			require.NoError(t, process(t, pool, c.dispatch(sink), c.change).Drain(t.Context()))
			insert(t, pool, 3)
			require.NoError(t, process(t, pool, c.dispatch(sink), c.change).Drain(t.Context()))
			require.Equal(t, c.want, sink.doubts())
		})
	}
}

// A worker's name that outlives the worker, such as that of its host, is no word
// on what the earlier one did.
func TestUnknown_StandsAfterARestartUnderTheSameName(t *testing.T) {
	t.Parallel()
	pool := database(t)
	named := func(c *processor.Config) {
		s, err := cursor.NewStore(pool, cursor.Config{Schema: schema, Worker: "pod-0"})
		require.NoError(t, err)
		c.Store = s
	}
	sink := &receiver{}
	insert(t, pool, 1)
	require.NoError(t, process(t, pool, processor.Each(sink), named).Drain(t.Context()))
	insert(t, pool, 2)
	require.NoError(t, process(t, pool, processor.Each(sink), named).Drain(t.Context()))
	require.Equal(t, "1/1 2/1? 3/1", sink.doubts())
	require.EqualValues(t, 1, row(t, pool).Epoch)
}

func TestUnknown_StandsAfterALeaseWasLostInMidCall(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	var lost atomic.Bool
	sink := &receiver{answer: func(ctx context.Context, d processor.Delivery) error {
		if d.ID == "2" && lost.CompareAndSwap(false, true) {
			_ = loseLease(ctx, pool)
			return errors.New("cut short")
		}
		return nil
	}}
	s, err := cursor.NewStore(pool, cursor.Config{Schema: schema, Timeout: time.Second})
	require.NoError(t, err)
	start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Store = s; c.Checkpoint = 3 }))
	eventually(t, "all is delivered", func() bool { return row(t, pool).Sequence == 3 })
	require.Equal(t, "1/1 2/1 2/1? 3/1", sink.doubts())
}

func TestUnknown_OutlivesAHaltThatAnOperatorEndsWithRetry(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
		if d.ID == "1" && !d.Unknown {
			return context.DeadlineExceeded
		}
		return nil
	}}
	start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.HaltOnTimeout = true }))
	eventually(t, "halted", func() bool { return row(t, pool).State == cursor.Halted })
	decide(t, pool, (*operator.Operator).Retry)
	eventually(t, "all is delivered", func() bool { return row(t, pool).Sequence == 2 })
	require.Equal(t, "1/1 1/1? 2/1", sink.doubts())
}
