package processor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// loseLease ends the session that holds the lease, and waits until its worker has
// noticed. That may be before the answer to this statement comes.
func loseLease(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(context.WithoutCancel(ctx), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND starts_with(application_name, $1)`, cursor.ApplicationLease)
	<-ctx.Done()
	return err
}

// A sink says once that acknowledged records are missing. If that comes when the lease is lost, the halt is written under the
// next one, although its epoch is larger.
func TestLostLease_WhatASinkSaysOnceHaltsUnderTheNextOne(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	var lost atomic.Bool
	sink := &receiver{answer: func(ctx context.Context, d processor.Delivery) error {
		if d.ID == "1" || !lost.CompareAndSwap(false, true) {
			return nil
		}
		if err := loseLease(ctx, pool); err != nil {
			return err
		}
		ctx = context.WithoutCancel(ctx)
		_, err := operator.New(store(t, pool)).Pause(ctx, "sms", alice)
		assert.NoError(t, err)
		_, err = operator.New(store(t, pool)).Resume(ctx, "sms", alice)
		assert.NoError(t, err)
		return processor.Refused(outcome.ReportedOnce(errors.New("the stream was set back")))
	}}
	start(t, process(t, pool, processor.Each(sink), quick))
	f := halts(t, pool, cursor.ClassRefused)
	require.Equal(t, "the stream was set back", f.Error)
	require.Equal(t, "2", f.RecordID)
	require.Equal(t, []string{"1/1", "2/1"}, sink.attempts())
}

// The sink has the first record of a call, and says once of the second that acknowledged ones are missing. The advance behind the
// first fails with the lease.
func TestLostLease_ALossBehindRecordsWhoseAdvanceFailsHalts(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	var lost atomic.Bool
	sink := processor.BatchSinkFunc(func(ctx context.Context, ds []processor.Delivery) (int, error) {
		if len(ds) < 2 || !lost.CompareAndSwap(false, true) {
			return len(ds), nil
		}
		if err := loseLease(ctx, pool); err != nil {
			return 0, err
		}
		ctx = context.WithoutCancel(ctx)
		_, err := operator.New(store(t, pool)).Pause(ctx, "sms", alice)
		assert.NoError(t, err)
		_, err = operator.New(store(t, pool)).Resume(ctx, "sms", alice)
		assert.NoError(t, err)
		return 1, processor.Refused(outcome.ReportedOnce(errors.New("the stream was set back")))
	})
	start(t, process(t, pool, processor.Batch(sink), func(c *processor.Config) { quick(c); c.Checkpoint = 3 }))
	eventually(t, "it halts, or is done", func() bool { r := row(t, pool); return r.State == cursor.Halted || r.Sequence == 3 })
	require.True(t, lost.Load())
	require.Equal(t, cursor.Halted, row(t, pool).State)
	require.Equal(t, "2", row(t, pool).Failure.RecordID)
}

// The answer to the COMMIT of a halt may be lost, or another worker may halt the process for the same reason. The worker that still
// has to say it sees that it is said, and does not halt the process once more behind the operator's decision.
func TestLostLease_WhatASinkSaysOnceIsNotSaidAgainWhenItStandsInTheRow(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	var lost atomic.Bool
	sink := &receiver{answer: func(ctx context.Context, d processor.Delivery) error {
		if d.ID == "1" || !lost.CompareAndSwap(false, true) {
			return nil
		}
		if err := loseLease(ctx, pool); err != nil {
			return err
		}
		ctx = context.WithoutCancel(ctx)
		other, err := store(t, pool).Acquire(ctx, "sms")
		if assert.NoError(t, err) {
			assert.NoError(t, other.Halt(ctx, cursor.Failure{Position: d.Position, RecordID: d.ID, Attempts: 1, Error: "set back", Class: cursor.ClassRefused}))
			other.Release()
		}
		return processor.Refused(outcome.ReportedOnce(errors.New("the stream was set back")))
	}}
	log := &logbook{}
	start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { quick(c); c.Logger = log.logger() }))
	eventually(t, "the worker sees the halt", func() bool { return log.has("halted: ") })
	decide(t, pool, (*operator.Operator).Retry)
	eventually(t, "it goes on, or halts again", func() bool { r := row(t, pool); return r.State == cursor.Halted || r.Sequence == 2 })
	require.EqualValues(t, 2, row(t, pool).Sequence)
	require.Equal(t, []string{"1/1", "2/1", "2/1"}, sink.attempts())
}

// TestLostLease_NoCallBeginsUnderIt: a call succeeds although its lease is gone
// meanwhile. Neither the next record of its chunk nor what was read ahead is
// handed over before there is another lease.
func TestLostLease_NoCallBeginsUnderIt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*processor.Config){
		"same chunk": func(c *processor.Config) { c.Checkpoint = 3 },
		"read ahead": func(c *processor.Config) { c.Batch = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 3)
			var lost atomic.Bool
			sink := &receiver{answer: func(ctx context.Context, d processor.Delivery) error {
				if ctx.Err() != nil {
					t.Errorf("record %s is handed over: %v", d.ID, context.Cause(ctx))
				}
				if lost.CompareAndSwap(false, true) {
					return loseLease(ctx, pool)
				}
				return nil
			}}
			s, err := cursor.NewStore(pool, cursor.Config{Schema: schema, Timeout: time.Second})
			require.NoError(t, err)
			start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) {
				c.Store = s
				change(c)
			}))
			eventually(t, "all is delivered", func() bool { return row(t, pool).Sequence == 3 })
			require.Equal(t, []string{"1/1", "2/1", "3/1"}, sink.attempts(), "the advance alone was made good")
		})
	}
}

// TestAcquire_DropsWhatAnotherWorkerDeliveredSinceItWasRead: between the look at
// the source and the lease, somebody else comes and goes.
func TestAcquire_DropsWhatAnotherWorkerDeliveredSinceItWasRead(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	sink := &receiver{}
	var passed atomic.Bool
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
		c.Source = after{c.Source, func(ctx context.Context, page processor.Page) {
			if !passed.CompareAndSwap(false, true) {
				return
			}
			lease, err := store(t, pool).Acquire(ctx, "sms")
			require.NoError(t, err)
			require.NoError(t, lease.Advance(ctx, page.Records[1].Position, 2))
			lease.Release()
		}}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, p.Drain(ctx))
	require.Equal(t, []string{"3/1"}, sink.attempts())
	require.EqualValues(t, 3, row(t, pool).Sequence)
}

// after calls a function between a read and its use.
type after struct {
	processor.Source
	do func(context.Context, processor.Page)
}

func (a after) Read(ctx context.Context, position cursor.Position, limit int) (processor.Page, error) {
	page, err := a.Source.Read(ctx, position, limit)
	if err == nil {
		a.do(ctx, page)
	}
	return page, err
}

// TestAdvance_WhoseCommitIsUnknownIsLookedUp: the answer to a checkpoint is lost
// on its way. Whether it was committed or not, every record is delivered once.
func TestAdvance_WhoseCommitIsUnknownIsLookedUp(t *testing.T) {
	t.Parallel()
	for name, committed := range map[string]bool{"and was not made": false, "and was made": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 3)
			address, link := pgtest.Proxy(t, pgtest.URL(t))
			var cut atomic.Bool
			sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
				if d.ID == "2" {
					link.OnData(func(fromServer bool, _ []byte) {
						if fromServer == committed && cut.CompareAndSwap(false, true) {
							link.Cut()
						}
					})
				}
				return nil
			}}
			far, err := cursor.NewStore(pgtest.Pool(t, address, pgtest.PoolConfig{}), cursor.Config{Schema: schema})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			require.NoError(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Store = far }).Drain(ctx))
			require.NoError(t, ctx.Err(), "it goes on")
			require.True(t, cut.Load())
			require.Equal(t, []string{"1/1", "2/1", "3/1"}, sink.attempts())
			require.EqualValues(t, 3, row(t, pool).Sequence)
		})
	}
}

// TestAdvance_ACommitThatWaitsForAStandbyIsGivenUpAndFoundDone: after 30 s the row is read, and the
// next record goes out. None is sent twice.
func TestAdvance_ACommitThatWaitsForAStandbyIsGivenUpAndFoundDone(t *testing.T) {
	t.Parallel()
	pool := databaseOn(t, pgtest.Server(t, nil).URL())
	sink := &receiver{}
	start(t, process(t, pool, processor.Each(sink), nil))
	insert(t, pool, 1)
	eventually(t, "one is delivered", func() bool { return row(t, pool).Sequence == 1 })
	exec(t, pool, `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`)
	exec(t, pool, `SELECT pg_reload_conf()`)
	eventually(t, "a COMMIT of the worker waits", func() bool {
		exec(t, pool, `BEGIN; SET LOCAL synchronous_commit = local; INSERT INTO dispatch.bookings (customer) VALUES ('x'); COMMIT`)
		all, err := store(t, pool).Lockers(t.Context())
		require.NoError(t, err)
		return len(all) == 1 && all[0].Worker() && all[0].Replicating
	})
	waiting := sink.calls()
	exec(t, pool, `BEGIN; SET LOCAL synchronous_commit = local; INSERT INTO dispatch.bookings (customer) VALUES ('x'); COMMIT`)
	eventually(t, "the next record goes out", func() bool { return sink.calls() > waiting })
	require.GreaterOrEqual(t, row(t, pool).Sequence, int64(waiting))
	exec(t, pool, `ALTER SYSTEM RESET synchronous_standby_names`)
	exec(t, pool, `SELECT pg_reload_conf()`)
	last := len(stands(t, pool))
	eventually(t, "all are delivered", func() bool { return row(t, pool).Sequence == int64(last) })
	require.Equal(t, last, sink.calls(), "each once")
}
