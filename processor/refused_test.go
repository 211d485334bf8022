package processor_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Wrong credentials are no verdict on a record: none is put aside, and all arrive
// once they are corrected.
func TestRefused_HaltsWhateverThePolicyAndPutsNothingAside(t *testing.T) {
	t.Parallel()
	for name, dispatch := range map[string]func(*receiver) processor.Dispatch{
		"Each":  func(r *receiver) processor.Dispatch { return processor.Each(r) },
		"InTx":  func(r *receiver) processor.Dispatch { return processor.InTx(r) },
		"Batch": func(r *receiver) processor.Dispatch { return processor.Batch(oneByOne(r)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 20)
			var corrected atomic.Bool
			sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
				if d.ID >= "3" && d.ID < "4" && !corrected.Load() { // in mid-run
					return fmt.Errorf("deliver: %w", processor.Refused(processor.Permanent(errors.New("401"))))
				}
				return nil
			}}
			p := process(t, pool, dispatch(sink), func(c *processor.Config) { deadLetters(c); c.Retry.Attempts = 1 })
			var halt *processor.HaltError
			require.ErrorAs(t, p.Drain(t.Context()), &halt)
			require.Equal(t, cursor.ClassRefused, halt.Failure.Class)
			require.ErrorContains(t, halt, "halted: the receiver or a setting is at fault, not record 3, ")
			require.ErrorContains(t, halt, "401; next: correct what the error names (credentials, address, settings; after a change of the configuration or of a ${NAME}, restart the workers), then `ordered-dispatcher retry sms`")
			require.NotContains(t, halt.Error(), "skip")
			require.Empty(t, letters(t, pool))
			require.EqualValues(t, 2, row(t, pool).Sequence)
			require.Len(t, sink.attemptsOf("3"), 1, "it is not knocked at again")

			corrected.Store(true)
			decide(t, pool, (*operator.Operator).Retry)
			require.NoError(t, p.Drain(t.Context()))
			require.EqualValues(t, 20, row(t, pool).Sequence)
			require.Empty(t, letters(t, pool))
		})
	}
}
