package processor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// rows is a source of n records, whose payload is their number.
func rows(n int) script {
	return func(after cursor.Position, limit int) (page processor.Page, _ error) {
		for i := 1; i <= n && len(page.Records) < limit; i++ {
			if at(i) <= after {
				continue
			}
			r := record(i)
			r.Payload, r.Type, r.Headers = fmt.Appendf(nil, `{"n": %d}`, i), "old", map[string]string{"h": "row"}
			page.Records = append(page.Records, r)
		}
		return page, nil
	}
}

// renewed prepares a record, and tries to change more than it may.
func renewed(_ context.Context, r processor.Record) (processor.Record, error) {
	r.Payload, r.Type, r.Headers = append([]byte("new "), r.Payload...), "new", map[string]string{"h": "new"}
	r.ID, r.Key, r.Position = "other", "other", "other"
	return r, nil
}

var dispatches = map[string]func(*receiver) processor.Dispatch{
	"Each":  func(r *receiver) processor.Dispatch { return processor.Each(r) },
	"InTx":  func(r *receiver) processor.Dispatch { return processor.InTx(r) },
	"Batch": func(r *receiver) processor.Dispatch { return processor.Batch(oneByOne(r)) },
}

func TestPrepare_EachRecordIsPreparedOnceAndKeepsItsPlace(t *testing.T) {
	t.Parallel()
	for name, dispatch := range dispatches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			sink := &receiver{}
			var calls atomic.Int32
			p := process(t, pool, dispatch(sink), func(c *processor.Config) {
				c.Source, c.Batch, c.Checkpoint = rows(30), 7, 3
				c.Prepare = func(ctx context.Context, r processor.Record) (processor.Record, error) {
					calls.Add(1)
					return renewed(ctx, r)
				}
			})
			require.NoError(t, p.Drain(soon(t)))
			require.EqualValues(t, 30, calls.Load())
			require.Len(t, sink.got, 30)
			for i, d := range sink.got {
				require.Equal(t, fmt.Sprint(i+1), d.ID)
				require.Equal(t, at(i+1), d.Position)
				require.Empty(t, d.Key)
				require.Equal(t, "new", d.Type)
				require.Equal(t, map[string]string{"h": "new"}, d.Headers)
			}
		})
	}
}

func TestPrepare_AnOutageIsTriedAgainAndNothingPassesTheRecord(t *testing.T) {
	t.Parallel()
	for name, dispatch := range dispatches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			sink := &receiver{}
			var failures atomic.Int32
			p := process(t, pool, dispatch(sink), func(c *processor.Config) {
				deadLetters(c)
				c.Source, c.Checkpoint, c.HaltOnTimeout = rows(6), 3, name != "InTx"
				c.Prepare = func(ctx context.Context, r processor.Record) (processor.Record, error) {
					if r.ID == "2" && failures.Add(1) <= 5 {
						return r, fmt.Errorf("the store is away: %w", context.DeadlineExceeded)
					}
					return renewed(ctx, r)
				}
			})
			require.NoError(t, p.Drain(soon(t)))
			attempts := sink.attempts()
			require.Len(t, attempts, 6)
			require.Equal(t, "1/1", attempts[0])
			require.Regexp(t, `^2/[456]$`, attempts[1], "it was tried again, perhaps ahead for the first time")
			require.Equal(t, []string{"3/1", "4/1", "5/1", "6/1"}, attempts[2:])
			require.Empty(t, letters(t, pool), "an outage makes no dead letter")
		})
	}
}

func TestPrepare_AnOutageStandsInTheRow(t *testing.T) {
	t.Parallel()
	pool := database(t)
	p := process(t, pool, processor.Each(&receiver{}), func(c *processor.Config) {
		quick(c)
		c.Source = rows(1)
		c.Prepare = func(_ context.Context, r processor.Record) (processor.Record, error) {
			return r, errors.New("the store is away")
		}
	})
	start(t, p)
	eventually(t, "the row names the outage", func() bool {
		f := row(t, pool).Failure
		return f != nil && f.Attempts > 2 && f.Class == cursor.ClassUnreached && f.Error == "the store is away" && f.RecordID == "1"
	})
}

func TestPrepare_ARecordThatCannotBePreparedHaltsAtItsPlace(t *testing.T) {
	t.Parallel()
	for name, dispatch := range dispatches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			sink := &receiver{}
			var fixed atomic.Bool
			p := process(t, pool, dispatch(sink), func(c *processor.Config) {
				c.Source, c.Checkpoint = rows(4), 4
				c.Prepare = func(ctx context.Context, r processor.Record) (processor.Record, error) {
					if r.ID == "3" && !fixed.Load() {
						return r, processor.Permanent(errors.New("no upcaster"))
					}
					return renewed(ctx, r)
				}
			})
			var halt *processor.HaltError
			require.ErrorAs(t, p.Drain(soon(t)), &halt)
			require.Equal(t, cursor.ClassUnreadable, halt.Failure.Class)
			require.Equal(t, at(3), halt.Failure.Position)
			require.ErrorContains(t, halt, "halted at record 3, which cannot be read or prepared, ")
			require.ErrorContains(t, halt, "; next: correct the row or what prepares it (`upcast`: restart the workers), then `ordered-dispatcher retry sms`, or `ordered-dispatcher skip sms --reason …`")
			require.ErrorContains(t, halt, "no upcaster")
			require.Equal(t, []string{"1/1", "2/1"}, sink.attempts())
			fixed.Store(true)
			decide(t, pool, (*operator.Operator).Retry)
			require.NoError(t, p.Drain(soon(t)))
			require.Equal(t, []string{"1/1", "2/1", "3/1", "4/1"}, sink.attempts())
		})
	}
}

func TestPrepare_ADeadLetterHasTheRowAndAReplayPreparesItAgain(t *testing.T) {
	t.Parallel()
	pool := database(t)
	sink := &receiver{answer: failing("2", 1, processor.Permanent(errRefused))}
	var fixed atomic.Bool
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
		deadLetters(c)
		c.Source = rows(3)
		c.Prepare = func(ctx context.Context, r processor.Record) (processor.Record, error) {
			if r.ID == "1" && !fixed.Load() {
				return r, processor.Permanent(errors.New("no upcaster"))
			}
			return renewed(ctx, r)
		}
	})
	require.NoError(t, p.Drain(soon(t)))
	require.Equal(t, []string{"2/1", "3/1"}, sink.attempts())
	for i, class := range []cursor.Class{cursor.ClassUnprepared, cursor.ClassPermanent} {
		letter, err := operator.New(store(t, pool)).DeadLetter(t.Context(), int64(i+1))
		require.NoError(t, err)
		require.Equal(t, class, letter.Failure.Class)
		require.Equal(t, "old", letter.Type)
		require.Equal(t, map[string]string{"h": "row"}, letter.Headers)
		require.Equal(t, fmt.Sprintf(`{"n": %d}`, i+1), string(letter.Payload))
	}
	require.ErrorContains(t, p.Replay(t.Context(), 1, alice), "no upcaster")
	require.Len(t, sink.got, 2, "nothing was sent")
	fixed.Store(true)
	require.NoError(t, p.Replay(t.Context(), 1, alice))
	require.NoError(t, p.Replay(t.Context(), 2, alice))
	require.Equal(t, `new {"n": 1}`, string(sink.got[2].Payload))
	require.Equal(t, `new {"n": 2}`, string(sink.got[3].Payload))
	require.Equal(t, "new", sink.got[3].Type)
}

func TestPrepare_APanicIsTheRecordsAndQuotesNothingOfIt(t *testing.T) {
	t.Parallel()
	pool := database(t)
	p := process(t, pool, processor.Each(&receiver{}), func(c *processor.Config) {
		c.Logger = slog.New(slog.DiscardHandler)
		c.Source = script(func(after cursor.Position, _ int) (page processor.Page, _ error) {
			if r := record(1); r.Position > after {
				r.Payload = []byte(`{"name": "Smith4711"}`)
				page.Records = append(page.Records, r)
			}
			return page, nil
		})
		c.Prepare = func(_ context.Context, r processor.Record) (processor.Record, error) {
			panic("cannot take Smith4711")
		}
	})
	var halt *processor.HaltError
	require.ErrorAs(t, p.Drain(soon(t)), &halt)
	require.Equal(t, "preparing it panicked: cannot take […]", halt.Failure.Error)
}

// Records that grow are prepared a few at a time, so that not all of a page are in memory.
func TestPrepare_RecordsThatGrowAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	pool := database(t)
	const records, size = 40, 4 << 20
	var made, sent, most atomic.Int64
	sink := processor.BatchSinkFunc(func(_ context.Context, ds []processor.Delivery) (int, error) {
		for range ds {
			most.Store(max(most.Load(), made.Load()-sent.Load()))
			sent.Add(1)
		}
		return len(ds), nil
	})
	p := process(t, pool, processor.Batch(sink), func(c *processor.Config) {
		c.Source, c.Batch = rows(records), 20
		c.Prepare = func(_ context.Context, r processor.Record) (processor.Record, error) {
			made.Add(1)
			r.Payload = bytes.Repeat([]byte("x"), size)
			return r, nil
		}
	})
	require.NoError(t, p.Drain(soon(t)))
	require.EqualValues(t, records, sent.Load())
	require.LessOrEqual(t, most.Load(), int64(4), "two of a call, and two ahead of it")
}

// A preparation that is slow does not make a read overdue: the worker keeps its lease.
func TestPrepare_ASlowStoreDoesNotCostTheLease(t *testing.T) {
	t.Parallel()
	pool := database(t)
	sink := &receiver{}
	log := &logbook{}
	short, err := cursor.NewStore(pool, cursor.Config{Schema: schema, Timeout: 4 * time.Second})
	require.NoError(t, err)
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
		c.Source, c.Batch, c.Store, c.Logger = rows(2), 1, short, log.logger()
		c.Prepare = func(ctx context.Context, r processor.Record) (processor.Record, error) {
			if r.ID == "1" {
				return r, nil
			}
			timer := time.NewTimer(3 * time.Second) // longer than a read may take
			defer timer.Stop()
			select {
			case <-timer.C:
				return r, nil
			case <-ctx.Done():
				return r, ctx.Err()
			}
		}
	})
	require.NoError(t, p.Drain(t.Context()))
	require.Equal(t, []string{"1/1", "2/1"}, sink.attempts())
	require.False(t, log.has("releases the lease"), strings.TrimSpace(log.text.String()))
}
