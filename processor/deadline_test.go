package processor_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// drainAll drains processes at the same time, within patience.
func drainAll(t testing.TB, processes ...*processor.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var working sync.WaitGroup
	for _, p := range processes {
		working.Go(func() {
			if err := p.Drain(ctx); err != nil || ctx.Err() != nil {
				t.Errorf("drain: %v, %v", err, ctx.Err())
			}
		})
	}
	working.Wait()
}

// crowd is so many processes of the same table on a pool, each with a store made by
// storeOf.
func crowd(t testing.TB, pool *pgxpool.Pool, n int, storeOf func() *cursor.Store) (all []*processor.Process, sinks []*receiver) {
	t.Helper()
	for i := range n {
		sink := &receiver{}
		all = append(all, process(t, pool, processor.Each(sink), func(c *processor.Config) {
			c.Process, c.Store, c.Batch = fmt.Sprintf("sms%d", i), storeOf(), 5
		}))
		sinks = append(sinks, sink)
	}
	return all, sinks
}

func leaseOf(t testing.TB, pool *pgxpool.Pool, timeout time.Duration) *cursor.Store {
	t.Helper()
	s, err := cursor.NewStore(pool, cursor.Config{Schema: schema, Timeout: timeout})
	require.NoError(t, err)
	return s
}

func TestRun_RefusesAPoolThatIsTooSmallForItsProcesses(t *testing.T) {
	t.Parallel()
	insert(t, database(t), 20)
	small := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{MaxConns: 5})
	shared := store(t, small)
	all, _ := crowd(t, small, 3, func() *cursor.Store { return shared })
	stop := start(t, all[0])
	other := start(t, all[1])
	eventually(t, "both have joined", func() bool { return small.Stat().AcquireCount() > 20 })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := all[2].Run(ctx)
	require.ErrorIs(t, err, cursor.ErrPoolTooSmall)
	require.ErrorContains(t, err, `process "sms2"`)
	require.ErrorContains(t, err, "3 processes on it need 6 connections at the same time, and it allows 5")

	require.NoError(t, stop())
	drainAll(t, all[2])
	require.NoError(t, other())

	elsewhere := process(t, pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{}), processor.Each(&receiver{}), func(c *processor.Config) { c.Store = shared })
	require.EqualValues(t, 1, elsewhere.Connections(), "it reads from another pool")
}

func TestDrain_SmallestPoolThatIsAcceptedIsEnough(t *testing.T) {
	t.Parallel()
	insert(t, database(t), 200)
	pool := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{MaxConns: 8})
	shared := store(t, pool)
	all, sinks := crowd(t, pool, 4, func() *cursor.Store { return shared })
	drainAll(t, all...)
	for _, sink := range sinks {
		delivered(t, sink.got, 200)
	}
}

// A stranger takes the only connection that a process has beside that of its lease. The
// read ahead waits for one: the lease must not wait with it.
func TestDrain_ReadsThatWaitForAConnectionLetGoOfTheLease(t *testing.T) {
	t.Parallel()
	insert(t, database(t), 20)
	pool := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{MaxConns: 2})
	log := &logbook{}
	sink := &receiver{}
	var taken *pgxpool.Conn
	take := sync.OnceFunc(func() {
		var err error
		taken, err = pool.Acquire(t.Context()) // once the read ahead has given it back
		require.NoError(t, err)
	})
	p := process(t, pool, processor.Each(processor.SinkFunc(func(ctx context.Context, d processor.Delivery) error {
		take()
		return sink.Deliver(ctx, d)
	})), func(c *processor.Config) { c.Store, c.Batch, c.Logger = leaseOf(t, pool, time.Second), 5, log.logger() })
	p.AskWithin(time.Hour) // so that nothing else ends the read
	done := make(chan error, 1)
	go func() { done <- p.Drain(t.Context()) }()
	// A source stops waiting for a connection after 30 s, and that is too late.
	require.Eventually(t, func() bool { return log.has("not answered in time (500ms): this worker releases the lease") }, 20*time.Second, 5*time.Millisecond)
	require.True(t, log.has("all 2 connections of the pool are in use"))
	taken.Release()
	require.NoError(t, <-done)
	delivered(t, sink.got, 20)
}

// Stores do not know of each other: four leases take the whole pool, and each read
// would wait for a connection of another process.
func TestDrain_StoresThatShareAPoolThatIsTooSmallGoOn(t *testing.T) {
	t.Parallel()
	insert(t, database(t), 20)
	pool := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{MaxConns: 4})
	all, sinks := crowd(t, pool, 4, func() *cursor.Store { return leaseOf(t, pool, time.Second) })
	drainAll(t, all...)
	for _, sink := range sinks {
		delivered(t, sink.got, 20)
	}
}

// linkedPool is a pool whose connections go through a link.
func linkedPool(t testing.TB) (*pgxpool.Pool, *link.Link) {
	t.Helper()
	u, err := url.Parse(pgtest.URL(t))
	require.NoError(t, err)
	config, err := pgxpool.ParseConfig(pgtest.URL(t))
	require.NoError(t, err)
	l, err := link.Listen(net.JoinHostPort(config.ConnConfig.Host, strconv.Itoa(int(config.ConnConfig.Port))))
	require.NoError(t, err)
	u.Host = l.Addr()
	pool := pgtest.Pool(t, u.String(), pgtest.PoolConfig{})
	t.Cleanup(l.Close) // first: what it holds up keeps the pool from closing
	return pool, l
}

// having accepts data that has all the texts.
func having(texts ...string) func(data []byte) bool {
	return func(data []byte) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !bytes.Contains(data, []byte(text)) })
	}
}

// One connection stops answering: that of a read, while the lease's own goes on.
func TestDrain_AReadThatIsNotAnsweredDoesNotKeepTheLease(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]link.Side{"its answer is held up": link.Server, "its question is held up": link.Client} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			insert(t, database(t), 40)
			pool, l := linkedPool(t)
			log := &logbook{}
			sink := &receiver{}
			p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
				c.Store, c.Batch, c.Logger = leaseOf(t, pool, time.Second), 5, log.logger()
			})
			p.AskWithin(10 * time.Second)
			ahead := having("/* source.read */", "$3") // a read after a position
			found := l.Hold(from, func(data []byte) bool { return ahead(data) && !having("EXPLAIN")(data) })
			drainAll(t, p)
			<-found
			delivered(t, sink.got, 40)
			require.True(t, log.has("not answered in time (500ms): this worker releases the lease"), log.text.String())
		})
	}
}

// TestDrain_AReadThatIsNotAnsweredKeepsNoFailedRecordWaiting: it was read ahead, and is not
// needed any more.
func TestDrain_AReadThatIsNotAnsweredKeepsNoFailedRecordWaiting(t *testing.T) {
	t.Parallel()
	insert(t, database(t), 40)
	pool, l := linkedPool(t)
	ahead := having("/* source.read */", "$3") // a read after a position
	found := l.Hold(link.Server, func(data []byte) bool { return ahead(data) && !having("EXPLAIN")(data) })
	first := make(chan struct{})
	var once sync.Once
	refused := false
	sink := &receiver{answer: func(context.Context, processor.Delivery) error {
		<-found
		if !refused {
			refused = true
			return errRefused
		}
		once.Do(func() { close(first) })
		return nil
	}}
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
		c.Store, c.Batch = leaseOf(t, pool, time.Second), 5
		c.Retry.Initial, c.Retry.Max = 1500*time.Millisecond, 1500*time.Millisecond // waited out without the lease
	})
	p.AskWithin(time.Hour) // so that nothing else ends the read
	done := make(chan error, 1)
	go func() { done <- p.Drain(t.Context()) }()
	select {
	case <-first:
	case <-time.After(time.Minute): // the source by itself gives a read up after 90 s
		t.Error("the record that failed is not tried again")
	}
	l.Release()
	require.NoError(t, <-done)
}

// The same before there is a lease: the round ends, and the next one asks anew.
func TestDrain_ALookThatIsNotAnsweredIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{"the cursor's row": "/* cursor.look */", "the table": "/* source.catalog.table */", "the records": "/* source.read */"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			insert(t, database(t), 10)
			pool, l := linkedPool(t)
			log := &logbook{}
			sink := &receiver{}
			p := process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Logger = log.logger() })
			p.AskWithin(2 * time.Second)
			found := l.Hold(link.Server, having(sql))
			drainAll(t, p)
			<-found
			delivered(t, sink.got, 10)
			require.True(t, log.has("the database has not answered in time (2s)"), log.text.String())
		})
	}
}
