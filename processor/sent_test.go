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
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// numbers are the calls as "id=sequence".
func (r *receiver) numbers() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []string
	for _, d := range r.got {
		calls = append(calls, fmt.Sprintf("%s=%d", d.ID, d.Sequence))
	}
	return strings.Join(calls, " ")
}

// TestSequence_NoNumberStandsForTwoRecordsWhenARowIsDeleted: it was sent, its outcome is
// not known, and the receiver drops what is not above the last number.
func TestSequence_NoNumberStandsForTwoRecordsWhenARowIsDeleted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gone   string // the condition of what is deleted when record 2 has failed
		each   bool
		change func(*processor.Config)
		want   string
	}{
		"the failing one": {"id = 2", true, nil, "1=1 2=2 3=3 4=4 5=5"},
		"one of a batch":  {"id = 3", false, nil, "1=1 2=2 3=3 4=4 5=5 1=1 2=2 4=4 5=5"},
		"several":         {"id IN (1, 2, 4)", false, nil, "1=1 2=2 3=3 4=4 5=5 3=3 5=5"},
		"a checkpoint":    {"id = 2", true, func(c *processor.Config) { c.Checkpoint = 3 }, "1=1 2=2 3=3 4=4 5=5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 5)
			var failed atomic.Bool
			sink := &receiver{answer: func(ctx context.Context, d processor.Delivery) error {
				if d.ID != "2" || failed.Swap(true) {
					return nil
				}
				_, err := pool.Exec(ctx, "DELETE FROM dispatch.bookings WHERE "+c.gone)
				require.NoError(t, err)
				return processor.RetryAfter(context.DeadlineExceeded, 1100*time.Millisecond) // the lease is let go
			}}
			dispatch := processor.Each(sink)
			if !c.each {
				dispatch = processor.Batch(processor.BatchSinkFunc(func(ctx context.Context, ds []processor.Delivery) (int, error) {
					var failure error
					for _, d := range ds {
						failure = errors.Join(failure, sink.Deliver(ctx, d))
					}
					if failure != nil {
						return 0, failure
					}
					return len(ds), nil
				}))
			}
			p := process(t, pool, dispatch, func(config *processor.Config) {
				quick(config)
				if c.change != nil {
					c.change(config)
				}
			})
			require.NoError(t, p.Drain(t.Context()))
			require.Equal(t, c.want, sink.numbers())
			require.EqualValues(t, 5, row(t, pool).Sequence)
			require.Positive(t, pgtest.Value[int](t, pool, "SELECT count(*) FROM dispatch.cursor_event WHERE action = 'write_off'"), "the audit names the hole")
		})
	}
}

// TestSequence_TheNextWorkerKeepsTheNumberOfAFailingRecordThatIsGone: the row of the cursor
// names the record.
func TestSequence_TheNextWorkerKeepsTheNumberOfAFailingRecordThatIsGone(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	sink := &receiver{answer: failing("2", 1, processor.RetryAfter(errors.New("503"), 1100*time.Millisecond))}
	first := process(t, pool, processor.Each(sink), quick)
	stop := start(t, first)
	eventually(t, "it is noted", func() bool { return row(t, pool).Failure != nil })
	require.NoError(t, stop())
	exec(t, pool, "DELETE FROM dispatch.bookings WHERE id = 2")
	require.NoError(t, process(t, pool, processor.Each(sink), quick).Drain(t.Context()))
	require.Equal(t, "1=1 2=2 3=3", sink.numbers())
}

// TestSequence_ASkipKeepsTheNumbersOfTheOthersOfItsCall: the rest of a refused batch was
// sent with its numbers, and one of them is deleted.
func TestSequence_ASkipKeepsTheNumbersOfTheOthersOfItsCall(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 4)
	sink := &receiver{}
	p := process(t, pool, processor.Batch(processor.BatchSinkFunc(func(ctx context.Context, ds []processor.Delivery) (int, error) {
		for _, d := range ds {
			require.NoError(t, sink.Deliver(ctx, d))
		}
		if ds[0].ID == "1" {
			return 0, processor.Permanent(errors.New("422"))
		}
		return len(ds), nil
	})), quick)
	stop := start(t, p)
	eventually(t, "it is halted", func() bool { return row(t, pool).State == cursor.Halted })
	exec(t, pool, "DELETE FROM dispatch.bookings WHERE id = 2")
	decide(t, pool, (*operator.Operator).Skip)
	eventually(t, "all are passed", func() bool { return strings.HasSuffix(string(row(t, pool).Position), "4") })
	require.NoError(t, stop())
	require.Equal(t, "1=1 2=2 3=3 4=4 3=3 4=4", sink.numbers())
}

// TestSequence_APassedStretchKeepsTheNumbersOfWhatWasSent: there is no next record yet.
func TestSequence_APassedStretchKeepsTheNumbersOfWhatWasSent(t *testing.T) {
	t.Parallel()
	for name, passed := range map[string]cursor.Position{"up to it": "p2", "beyond it": "p3"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			s := store(t, pool)
			_, err := s.Create(t.Context(), "sms", "p1")
			require.NoError(t, err)
			lease, err := s.Acquire(t.Context(), "sms")
			require.NoError(t, err)
			require.NoError(t, lease.Fail(t.Context(), cursor.Failure{Position: "p2", RecordID: "2", Attempts: 1, Error: "503"}))
			p := process(t, pool, processor.Each(&receiver{}), func(c *processor.Config) { c.Source = passes{passed} })
			require.NoError(t, p.Drain(t.Context()))
			require.Equal(t, passed, row(t, pool).Position)
			require.EqualValues(t, 1, row(t, pool).Sequence)
		})
	}
}

// passes is a source that holds no record, and says so up to a position.
type passes struct{ to cursor.Position }

func (p passes) Read(_ context.Context, after cursor.Position, _ int) (processor.Page, error) {
	if after >= p.to {
		return processor.Page{}, nil
	}
	return processor.Page{Passed: p.to}, nil
}
