package processor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// pair is a primary with an asynchronous standby, and an address that leads to one of them.
type pair struct {
	primary, standby *pgxpool.Pool
	address          string
	link             *pgtest.Link
	promoted         string // the standby's address
}

// newPair has the cursor tables and a table of bookings on both, and lets the standby hear no
// more of the primary.
func newPair(t *testing.T, prepare func(primary *pgxpool.Pool)) *pair {
	t.Helper()
	primary := pgtest.Server(t, nil)
	standby := pgtest.Standby(t, primary)
	p := &pair{primary: databaseOn(t, primary.URL()), standby: pgtest.Pool(t, standby.URL(), pgtest.PoolConfig{}), promoted: host(t, standby.URL())}
	prepare(p.primary)
	written := pgtest.Value[string](t, p.primary, `SELECT pg_current_wal_insert_lsn()`)
	eventually(t, "the standby has it all", func() bool {
		return pgtest.Value[bool](t, p.standby, `SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn`, written)
	})
	exec(t, p.standby, `ALTER SYSTEM SET primary_conninfo = ''`)
	exec(t, p.standby, `SELECT pg_reload_conf()`)
	eventually(t, "the standby hears no more", func() bool {
		return pgtest.Value[int](t, p.standby, `SELECT count(*) FROM pg_stat_wal_receiver`) == 0
	})
	p.address, p.link = pgtest.Proxy(t, primary.URL())
	return p
}

// promote makes the standby a primary. The address still leads to the old one.
func (p *pair) promote(t *testing.T) {
	t.Helper()
	exec(t, p.standby, `SELECT pg_promote()`)
}

// run starts a worker at the pair's address.
func (p *pair) run(t *testing.T, sink processor.Sink, c table.Config, changes ...func(*processor.Config)) (stop func() error) {
	t.Helper()
	pool := pgtest.Pool(t, p.address, pgtest.PoolConfig{})
	return start(t, process(t, pool, processor.Each(sink), func(config *processor.Config) {
		config.Source = sourceOf(t, pool, c)
		for _, change := range changes {
			change(config)
		}
	}))
}

func stands(t *testing.T, pool *pgxpool.Pool) (ids []string) {
	t.Helper()
	return pgtest.Value[[]string](t, pool, `SELECT array_agg(id::text ORDER BY id) FROM dispatch.bookings`)
}

// TestRun_AnAsynchronousPromotionUsesNoNumberAndNoKeyTwice: the commits that it lost were
// delivered, and the rows that are inserted then have their ids.
func TestRun_AnAsynchronousPromotionUsesNoNumberAndNoKeyTwice(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(primary *pgxpool.Pool) {
		created(t, primary)
		exec(t, primary, `ALTER TABLE dispatch.bookings DROP COLUMN created_at`)
		insert(t, primary, 1)
	})
	sink := &receiver{}
	p.run(t, sink, table.Config{Table: "dispatch.bookings", Order: table.ID, Columns: table.Columns{ID: "id"}})
	insert(t, p.primary, 99)
	eventually(t, "what is going to be lost is delivered", func() bool { return sink.calls() == 100 })
	p.promote(t)
	exec(t, p.standby, `INSERT INTO dispatch.bookings (customer) SELECT 'another ' || i FROM generate_series(1, 99) i`)
	p.link.Retarget(p.promoted)
	p.link.Cut()
	eventually(t, "what is there is delivered", func() bool { return len(stands(t, p.standby)) == 100 && anew(sink, stands(t, p.standby)) })

	requireOneMeaning(t, sink)
	require.Equal(t, "promoted", lastAction(t, p.standby))
}

// requireOneMeaning: no number and no key stands for two records.
func requireOneMeaning(t *testing.T, sink *receiver) {
	t.Helper()
	meaning := map[string]string{}
	for _, d := range sink.all() {
		what := d.ID + " " + string(d.Payload)
		for _, name := range []string{fmt.Sprint("number ", d.Sequence), "key " + d.DedupKey()} {
			if was, known := meaning[name]; known {
				require.Equal(t, was, what, "%s stands for two records", name)
			}
			meaning[name] = what
		}
	}
}

// TestRun_ACursorThatIsLostInAPromotionUsesNoNumberAndNoKeyTwice: the standby has not even received
// that the cursor was made. The worker that ran says so, and the next one makes it anew.
func TestRun_ACursorThatIsLostInAPromotionUsesNoNumberAndNoKeyTwice(t *testing.T) {
	t.Parallel()
	byID := table.Config{Table: "dispatch.bookings", Order: table.ID, Columns: table.Columns{ID: "id"}}
	p := newPair(t, func(primary *pgxpool.Pool) {
		exec(t, primary, `ALTER TABLE dispatch.bookings DROP COLUMN created_at`)
		insert(t, primary, 1)
	})
	sink, log := &receiver{}, &logbook{}
	stop := p.run(t, sink, byID, func(c *processor.Config) { c.Logger = log.logger() })
	insert(t, p.primary, 99)
	eventually(t, "what is going to be lost is delivered", func() bool { return sink.calls() == 100 })
	p.promote(t)
	exec(t, p.standby, `INSERT INTO dispatch.bookings (customer) SELECT 'another ' || i FROM generate_series(1, 99) i`)
	p.link.Retarget(p.promoted)
	p.link.Cut()
	eventually(t, "the worker that ran says it", func() bool { return log.has("is lost with the commits that a promoted standby had not received") })
	require.NoError(t, stop())
	require.Equal(t, 100, sink.calls())

	p.run(t, sink, byID)
	eventually(t, "what is there is delivered", func() bool { return sink.calls() == 200 })
	requireOneMeaning(t, sink)
}

// anew reports whether the last delivery of each record is that of a row of the new primary.
func anew(sink *receiver, ids []string) bool {
	last := map[string]processor.Delivery{}
	for _, d := range sink.all() {
		last[d.ID] = d
	}
	for _, id := range ids[1:] {
		if last[id].History == "" {
			return false
		}
	}
	return true
}

func (r *receiver) all() []processor.Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]processor.Delivery(nil), r.got...)
}

func lastAction(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return pgtest.Value[string](t, pool, `SELECT action FROM dispatch.cursor_event ORDER BY id DESC LIMIT 1`)
}

// TestRun_APromotedServerWhoseClockIsBehindHaltsTheProcess: what it stamped before the cursor is
// found although its clock has passed the cursor since, and although nothing follows. The seek
// that the error names delivers it.
func TestRun_APromotedServerWhoseClockIsBehindHaltsTheProcess(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(primary *pgxpool.Pool) {
		created(t, primary)
		insert(t, primary, 3)
		sink := &receiver{}
		stop := start(t, process(t, primary, processor.Each(sink), nil))
		eventually(t, "the first ones are delivered", func() bool { return row(t, primary).Sequence == 3 })
		require.NoError(t, stop())
	})
	p.promote(t)
	exec(t, p.standby, `UPDATE dispatch.bookings SET customer = 'changed since'`)
	exec(t, p.standby, `INSERT INTO dispatch.bookings (created_at, customer) SELECT max(created_at) - interval '1 ms', 'by a clock that is behind' FROM dispatch.bookings`)
	p.link.Retarget(p.promoted)
	sink := &receiver{}
	p.run(t, sink, table.Config{Table: "dispatch.bookings"})
	failure := halts(t, p.standby, cursor.ClassClock)
	require.Contains(t, failure.Error, "row ")
	require.Regexp(t, "`ordered-dispatcher seek sms --to-position at.int:[^ ]+ -c FILE --reason …`", failure.Error)
	require.Zero(t, sink.calls())

	at := cursor.Position(between(failure.Error, "--to-position ", " -c"))
	seek(t, p.standby, at)
	ids := stands(t, p.standby)
	eventually(t, "it is delivered", func() bool { return len(sink.attemptsOf(ids[len(ids)-1])) == 1 })
}

// TestRun_APromotedServerWhoseClockIsRightHaltsNothing: rows that were delivered and then changed
// by the new primary are not late.
func TestRun_APromotedServerWhoseClockIsRightHaltsNothing(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(primary *pgxpool.Pool) {
		insert(t, primary, 3)
		sink := &receiver{}
		stop := start(t, process(t, primary, processor.Each(sink), nil))
		eventually(t, "the first ones are delivered", func() bool { return row(t, primary).Sequence == 3 })
		require.NoError(t, stop())
	})
	p.promote(t)
	exec(t, p.standby, `UPDATE dispatch.bookings SET customer = 'changed since'`)
	insert(t, p.standby, 2)
	p.link.Retarget(p.promoted)
	sink := &receiver{}
	p.run(t, sink, table.Config{Table: "dispatch.bookings"})
	eventually(t, "the new ones are delivered", func() bool {
		return row(t, p.standby).Sequence%cursor.HistoryGap == 5 && row(t, p.standby).Sequence > cursor.HistoryGap
	})
	require.Equal(t, 2, sink.calls())
}

// TestInspectRows_OfAPromotedServerProposesNoOtherStamps: its clock may be behind, and the rows of the
// future were delivered, under keys that hold their stamps.
func TestInspectRows_OfAPromotedServerProposesNoOtherStamps(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(primary *pgxpool.Pool) {
		insert(t, primary, 1)
		exec(t, primary, `INSERT INTO dispatch.bookings (created_at, customer) VALUES (clock_timestamp() + interval '1 hour', 'delivered')`)
	})
	p.promote(t)
	findings, err := source(t, p.standby).InspectRows(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.Contains(t, findings[0].Problem, "of the future")
	require.Contains(t, findings[0].Fix, "it was a standby")
	require.NotContains(t, findings[0].Fix, "UPDATE")
}

// TestRun_ReadsOneServerUnderTheLeaseOfAnotherDeliversNothing: an address has moved while old
// connections stay, and the old primary still answers.
func TestRun_ReadsOneServerUnderTheLeaseOfAnotherDeliversNothing(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(primary *pgxpool.Pool) {
		created(t, primary)
	})
	p.promote(t)
	insert(t, p.standby, 3)
	sink, log := &receiver{}, &logbook{}
	start(t, process(t, p.primary, processor.Each(sink), func(c *processor.Config) {
		c.Source, c.Logger = moved{source(t, p.standby), p.primary}, log.logger()
	}))
	eventually(t, "it says why", func() bool { return log.has("reach different servers") })
	require.Zero(t, sink.calls())
	require.Zero(t, row(t, p.primary).Sequence)
}

// TestRun_TheSequenceOfAnotherServerIsNotSaidToBeReset: the cursor's row is that of a new primary, and the read went to the old one,
// whose ids are behind. An operator who set the sequence as the error proposed had every insert fail.
func TestRun_TheSequenceOfAnotherServerIsNotSaidToBeReset(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(primary *pgxpool.Pool) { insert(t, primary, 1) })
	p.promote(t)
	_, err := store(t, p.primary).Create(t.Context(), "sms", cursor.Position(fmt.Sprintf("int:%020d", 1000)))
	require.NoError(t, err)
	other := sourceOf(t, p.standby, table.Config{Table: "dispatch.bookings", Order: table.ID})
	log := &logbook{}
	start(t, process(t, p.primary, processor.Each(&receiver{}), func(c *processor.Config) {
		c.Source, c.Logger = moved{other, p.primary}, log.logger()
	}))
	eventually(t, "it says why", func() bool { return log.has("reach different servers") })
	require.False(t, log.has("setval"))
	same := sourceOf(t, p.primary, table.Config{Table: "dispatch.bookings", Order: table.ID})
	start(t, process(t, p.primary, processor.Each(&receiver{}), func(c *processor.Config) { c.Source, c.Logger = same, log.logger() }))
	eventually(t, "of its own server it is said", func() bool { return log.has("setval") })
}

// TestRun_TheSequenceOfAnotherServerIsNotSaidToBeResetUnderTheLease: the address moves between two reads of one lease.
func TestRun_TheSequenceOfAnotherServerIsNotSaidToBeResetUnderTheLease(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(primary *pgxpool.Pool) { insert(t, primary, 1) })
	p.promote(t)
	exec(t, p.primary, `SELECT setval('dispatch.bookings_id_seq', 1000)`)
	insert(t, p.primary, 3)
	_, err := store(t, p.primary).Create(t.Context(), "sms", cursor.Position(fmt.Sprintf("int:%020d", 1000)))
	require.NoError(t, err)
	before := sourceOf(t, p.primary, table.Config{Table: "dispatch.bookings", Order: table.ID})
	after := sourceOf(t, p.standby, table.Config{Table: "dispatch.bookings", Order: table.ID})
	log, sink := &logbook{}, &receiver{}
	start(t, process(t, p.primary, processor.Each(sink), func(c *processor.Config) {
		c.Source, c.Logger, c.Batch = &moving{moved: moved{before, p.primary}, after: after}, log.logger(), 1
	}))
	eventually(t, "it says why", func() bool { return log.has("reach different servers") })
	require.Positive(t, sink.calls())
	require.False(t, log.has("setval"))
}

// moving is a source whose first read is of one server, and all others are of another one.
type moving struct {
	moved
	after *table.Source
	reads atomic.Int32
}

func (m *moving) Read(ctx context.Context, at cursor.Position, limit int) (processor.Page, error) {
	if m.reads.Add(1) == 1 {
		return m.moved.Read(ctx, at, limit)
	}
	return m.after.Read(ctx, at, limit)
}

// TestRun_ASequenceBeforeTheCursorHaltsTheProcess: rows are inserted with ids that the cursor has passed. The process went on by itself
// once the ids had passed the cursor, too, and nothing showed what it had passed over. What the operator has come has other keys.
func TestRun_ASequenceBeforeTheCursorHaltsTheProcess(t *testing.T) {
	t.Parallel()
	for name, reset := range map[string]string{
		"truncated": `TRUNCATE dispatch.bookings RESTART IDENTITY`,
		"set back":  `DELETE FROM dispatch.bookings; SELECT setval('dispatch.bookings_id_seq', 1, false)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			exec(t, pool, `ALTER TABLE dispatch.bookings DROP created_at`)
			insert(t, pool, 3)
			sink := &receiver{}
			start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) {
				c.Source = sourceOf(t, pool, table.Config{Table: "dispatch.bookings", Order: table.ID})
				quick(c)
			}))
			eventually(t, "three are delivered", func() bool { return row(t, pool).Sequence == 3 })
			exec(t, pool, reset)
			failure := halts(t, pool, cursor.ClassReset)
			require.Contains(t, failure.Error, "`seek` to the start before anything else")
			insert(t, pool, 5) // past the cursor
			seek(t, pool, "")
			eventually(t, "what was inserted since is delivered", func() bool { return len(sink.all()) == 8 })
			lost, err := store(t, pool).MayBeLost(t.Context())
			require.NoError(t, err)
			require.False(t, lost, "no cursor is lost by that")
			keys := map[string]bool{}
			for _, d := range sink.all() {
				require.False(t, keys[d.DedupKey()], d.DedupKey)
				keys[d.DedupKey()] = true
			}
		})
	}
}

// readsElsewhere is a source whose first read comes after the address has moved, and finds the sequence there before the position that
// was seen before.
type readsElsewhere struct {
	*table.Source
	move func() (run string)
	once sync.Once
}

func (s *readsElsewhere) Read(ctx context.Context, at cursor.Position, limit int) (processor.Page, error) {
	var err error
	s.once.Do(func() {
		err = &processor.SequenceError{Server: s.move(), Err: processor.Permanent(errors.New("the sequence was reset"))}
	})
	if err != nil {
		return processor.Page{}, err
	}
	return s.Source.Read(ctx, at, limit)
}

// TestRun_ASequenceIsHeldAgainstThePositionOfItsOwnServer: the row was seen on the old primary, and read and locked is on the new one, where
// it stands elsewhere. The process halted there as reset.
func TestRun_ASequenceIsHeldAgainstThePositionOfItsOwnServer(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(primary *pgxpool.Pool) {
		created(t, primary)
	})
	exec(t, p.primary, `UPDATE dispatch.cursor SET position = 'int:00000000000000001000'`)
	p.promote(t)
	run := pgtest.Value[string](t, p.standby, `SELECT `+prepared.RunSQL)
	pool, log := pgtest.Pool(t, p.address, pgtest.PoolConfig{}), &logbook{}
	source := sourceOf(t, pool, table.Config{Table: "dispatch.bookings", Order: table.ID})
	start(t, process(t, pool, processor.Each(&receiver{}), func(c *processor.Config) {
		c.Logger = log.logger()
		c.Source = &readsElsewhere{Source: source, move: func() string {
			p.link.Retarget(p.promoted)
			p.link.Cut()
			return run
		}}
	}))
	eventually(t, "it says why, or halts", func() bool { return log.has("reach different servers") || row(t, p.standby).State == cursor.Halted })
	require.Equal(t, cursor.Running, row(t, p.standby).State)
	require.False(t, log.has("reset"))
}

// passedSince is a source whose second read finds the sequence before the cursor, and has come past it by the next one.
type passedSince struct {
	*table.Source
	reads atomic.Int32
}

func (s *passedSince) Read(ctx context.Context, at cursor.Position, limit int) (processor.Page, error) {
	if s.reads.Add(1) == 2 {
		return processor.Page{}, &processor.SequenceError{Err: processor.Permanent(errors.New("the sequence stands before the cursor"))}
	}
	return s.Source.Read(ctx, at, limit)
}

// TestRun_ASequenceThatWasBeforeTheCursorUnderTheLeaseHaltsTheProcess: the next read finds nothing wrong.
func TestRun_ASequenceThatWasBeforeTheCursorUnderTheLeaseHaltsTheProcess(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	source := sourceOf(t, pool, table.Config{Table: "dispatch.bookings", Order: table.ID})
	start(t, process(t, pool, processor.Each(&receiver{}), func(c *processor.Config) {
		c.Source, c.Batch = &passedSince{Source: source}, 1
	}))
	eventually(t, "the process halts, or goes on", func() bool { return row(t, pool).State == cursor.Halted || row(t, pool).Sequence == 3 })
	require.Equal(t, cursor.Halted, row(t, pool).State)
	require.Equal(t, cursor.ClassReset, row(t, pool).Failure.Class)
}

// TestRun_AClockBehindTheCursorHaltsTheProcess: what is inserted meanwhile would never be read,
// also when the clock has passed the cursor.
func TestRun_AClockBehindTheCursorHaltsTheProcess(t *testing.T) {
	t.Parallel()
	pool := database(t)
	sink := &receiver{}
	created(t, pool)
	start(t, process(t, pool, processor.Each(sink), nil))
	insert(t, pool, 1)
	eventually(t, "the clock is right", func() bool { return row(t, pool).Sequence == 1 })
	exec(t, pool, `UPDATE dispatch.cursor SET position = $1`, fmt.Sprintf("at.int:%s/00000000000000000001", time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z")))
	insert(t, pool, 1)
	failure := halts(t, pool, cursor.ClassClock)
	require.Contains(t, failure.Error, "is behind the cursor")
	at := cursor.Position(between(failure.Error, "--to-position ", " -c"))
	seek(t, pool, at)
	eventually(t, "what was inserted meanwhile is delivered", func() bool { return len(sink.attemptsOf("2")) == 1 })
}

// TestRetry_AfterAHaltOverTheClockPassesOverNothing: the worker that halted does not know since when the clock
// was behind, and rows are stamped while the process is halted, by any time before the cursor.
func TestRetry_AfterAHaltOverTheClockPassesOverNothing(t *testing.T) {
	t.Parallel()
	for name, ids := range map[string]string{"ids of a sequence": `bigint GENERATED ALWAYS AS IDENTITY`, "other ids": `uuid DEFAULT gen_random_uuid()`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			exec(t, pool, `CREATE TABLE dispatch.orders (id `+ids+` PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp());
				CREATE INDEX ON dispatch.orders (created_at, id)`)
			insertAt := func(at string) {
				exec(t, pool, `INSERT INTO dispatch.orders (created_at) VALUES (clock_timestamp() - interval '`+at+`')`)
			}
			config := func(c *processor.Config) {
				c.Source = sourceOf(t, pool, table.Config{Table: "dispatch.orders"})
			}
			sink := &receiver{}
			created(t, pool)
			insertAt("0")
			stop := start(t, process(t, pool, processor.Each(sink), config))
			eventually(t, "one is delivered", func() bool { return row(t, pool).Sequence == 1 })
			require.NoError(t, stop())
			promotedBehind(t, pool)
			start(t, process(t, pool, processor.Each(sink), config))
			failure := halts(t, pool, cursor.ClassClock)
			require.Contains(t, failure.Error, "`ordered-dispatcher retry sms -c FILE`")
			require.NotContains(t, failure.Error, "--to-position")

			insertAt("2 hours")
			insertAt("1 second")
			moveCursor(t, pool, "0")
			decide(t, pool, (*operator.Operator).Retry)
			eventually(t, "the process halts again", func() bool {
				r := row(t, pool)
				return r.State == cursor.Halted && strings.Contains(r.Failure.Error, "--to-position")
			})
			require.Equal(t, 1, sink.calls())
			at := cursor.Position(between(row(t, pool).Failure.Error, "--to-position ", " -c"))
			seek(t, pool, at)
			eventually(t, "both are delivered", func() bool {
				ids := map[string]bool{}
				for _, d := range sink.deliveries() {
					ids[d.ID] = true
				}
				return len(ids) == 3
			})
		})
	}
}

// moveCursor has the cursor stand at the database's time and so much more.
func moveCursor(t *testing.T, pool *pgxpool.Pool, ahead string) {
	t.Helper()
	exec(t, pool, `UPDATE dispatch.cursor SET `+positionSQL, ahead)
}

// promotedBehind has the cursor look as if a standby was promoted whose clock is behind by an hour.
func promotedBehind(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	exec(t, pool, `UPDATE dispatch.cursor SET timeline = 7, `+positionSQL, "1 hour")
}

const positionSQL = `position = split_part(position, ':', 1) || ':' ||
	to_char((clock_timestamp() + $1::interval) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '/' || split_part(position, '/', 2)`

// haltedOverTheClock runs a process that has delivered a row and halted, as if the clock went back by an hour.
func haltedOverTheClock(t *testing.T, change func(*processor.Config)) (*pgxpool.Pool, *receiver) {
	t.Helper()
	pool, sink := database(t), &receiver{}
	created(t, pool)
	insert(t, pool, 1)
	start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) {
		if change != nil {
			change(c)
		}
	}))
	eventually(t, "one is delivered", func() bool { return row(t, pool).Sequence == 1 })
	promotedBehind(t, pool)
	eventually(t, "the process halts", func() bool { return row(t, pool).State == cursor.Halted })
	return pool, sink
}

func retry(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	moveCursor(t, pool, "0") // the clock is right again
	decide(t, pool, (*operator.Operator).Retry)
}

// TestRetry_AfterAHaltOverTheClockLooksAlthoughNothingFollows: the worker that halted is idle.
func TestRetry_AfterAHaltOverTheClockLooksAlthoughNothingFollows(t *testing.T) {
	t.Parallel()
	pool, _ := haltedOverTheClock(t, nil)
	exec(t, pool, `INSERT INTO dispatch.bookings (created_at, customer) VALUES (clock_timestamp() - interval '1 s', 'late')`)
	retry(t, pool)
	eventually(t, "the process halts again", func() bool {
		r := row(t, pool)
		return r.State == cursor.Halted && strings.Contains(r.Failure.Error, "row 2 of dispatch.bookings")
	})
}

// TestRetry_AfterAHaltOverTheClockOfTheServerThatDeliveredHaltsAgain: there a transaction that began before the last
// advance may have stamped a row before the position, too, and nothing says which rows are late. So it is after Restored.
func TestRetry_AfterAHaltOverTheClockOfTheServerThatDeliveredHaltsAgain(t *testing.T) {
	t.Parallel()
	for name, decide := range map[string]func(*testing.T, *pgxpool.Pool){
		"retry": retry,
		"restored": func(t *testing.T, pool *pgxpool.Pool) {
			moveCursor(t, pool, "0")
			decide(t, pool, (*operator.Operator).Restored)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tx pgx.Tx
			pool, sink := haltedOverTheClock(t, func(c *processor.Config) {
				pool := c.Source.(*table.Source).Pool()
				exec(t, pool, `CREATE TABLE dispatch.others (id int)`)
				tx = pgtest.Begin(t, pool, `INSERT INTO dispatch.others VALUES (1)`)
			})
			exec(t, tx, `INSERT INTO dispatch.bookings (created_at, customer) VALUES (clock_timestamp() - interval '1 s', 'late')`)
			require.NoError(t, tx.Commit(t.Context()))
			exec(t, pool, `UPDATE dispatch.cursor SET timeline = ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int`) // none was
			decide(t, pool)
			insert(t, pool, 1)
			eventually(t, "it halts again, or goes on", func() bool { return row(t, pool).State == cursor.Halted || len(sink.attemptsOf("3")) == 1 })
			require.Equal(t, cursor.Halted, row(t, pool).State)
			require.Contains(t, row(t, pool).Failure.Error, "this is the server that the worker delivered from, or a copy of its tables. Look in the table for rows")
		})
	}
}

// TestRestored_OfAProcessThatHaltedOverItsClockLooksFirst: restored --all is for others, too.
func TestRestored_OfAProcessThatHaltedOverItsClockLooksFirst(t *testing.T) {
	t.Parallel()
	pool, _ := haltedOverTheClock(t, nil)
	exec(t, pool, `INSERT INTO dispatch.bookings (created_at, customer) VALUES (clock_timestamp() - interval '1 s', 'late')`)
	moveCursor(t, pool, "0")
	for range 2 {
		decide(t, pool, (*operator.Operator).Restored)
	}
	eventually(t, "the process halts again", func() bool {
		r := row(t, pool)
		return r.State == cursor.Halted && strings.Contains(r.Failure.Error, "row 2 of dispatch.bookings")
	})
}

// unanswered is a source whose look for late rows takes too long.
type unanswered struct{ *table.Source }

func (unanswered) Late(context.Context, cursor.Position, string, bool) (processor.Late, error) {
	return processor.Late{}, errors.New("canceling statement due to statement timeout")
}

// TestSeek_AfterAHaltOverTheClockEndsALookThatCannotEnd: as the error says.
func TestSeek_AfterAHaltOverTheClockEndsALookThatCannotEnd(t *testing.T) {
	t.Parallel()
	log := &logbook{}
	pool, sink := haltedOverTheClock(t, func(c *processor.Config) {
		c.Source, c.Logger = unanswered{c.Source.(*table.Source)}, log.logger()
	})
	retry(t, pool)
	insert(t, pool, 1)
	eventually(t, "it says what to do", func() bool { return log.has("to go on without looking: `ordered-dispatcher seek sms --to-position") })
	before := row(t, pool)
	seek(t, pool, before.Position)
	eventually(t, "the next one is delivered", func() bool { return len(sink.attemptsOf("2")) == 1 })
	require.GreaterOrEqual(t, row(t, pool).Sequence, before.Sequence+cursor.HistoryGap, "a standby may have been promoted")
}

// TestRetry_AfterAHaltOverTheClockGoesOnWhereNothingIsLate: it looked, and the audit says so.
func TestRetry_AfterAHaltOverTheClockGoesOnWhereNothingIsLate(t *testing.T) {
	t.Parallel()
	pool := database(t)
	sink := &receiver{}
	created(t, pool)
	insert(t, pool, 1)
	start(t, process(t, pool, processor.Each(sink), nil))
	eventually(t, "one is delivered", func() bool { return row(t, pool).Sequence == 1 })
	at := row(t, pool).Position
	promotedBehind(t, pool)
	eventually(t, "the process halts", func() bool { return row(t, pool).State == cursor.Halted })
	exec(t, pool, `UPDATE dispatch.cursor SET position = $1`, string(at))
	lost := row(t, pool).Epoch + 999_999 // the primary that is no more may have given it out
	change := decide(t, pool, (*operator.Operator).Retry)
	require.Greater(t, change.After.Epoch, lost)
	insert(t, pool, 1)
	eventually(t, "the next one is delivered", func() bool { return len(sink.attemptsOf("2")) == 1 })
	require.Greater(t, sink.attemptsOf("2")[0].Epoch, change.After.Epoch)
	require.Greater(t, sink.attemptsOf("2")[0].Sequence, int64(cursor.HistoryGap))
	require.Len(t, sink.attemptsOf("1"), 1)
	require.Greater(t, row(t, pool).Sequence, int64(cursor.HistoryGap))
}

// TestRetry_AfterAHaltOverTheClockTrustsNoIDsThatDoNotGrow: a sequence that hands out blocks, counts down or starts
// again gives new rows ids below those that were delivered, and so do several sequences.
func TestRetry_AfterAHaltOverTheClockTrustsNoIDsThatDoNotGrow(t *testing.T) {
	t.Parallel()
	for name, ddl := range map[string]string{
		"blocks":    `ALTER TABLE dispatch.orders ALTER id SET CACHE 50`,
		"downwards": `ALTER TABLE dispatch.orders ALTER id SET INCREMENT BY -1`,
		"cycle":     `ALTER TABLE dispatch.orders ALTER id SET CYCLE`,
		"several":   `CREATE TABLE dispatch.more (id bigint GENERATED ALWAYS AS IDENTITY) INHERITS (dispatch.orders)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, sink := database(t), &receiver{}
			exec(t, pool, `CREATE TABLE dispatch.orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp());
				CREATE INDEX ON dispatch.orders (created_at, id); `+ddl)
			created(t, pool)
			exec(t, pool, `INSERT INTO dispatch.orders (id) OVERRIDING SYSTEM VALUE VALUES (51)`)
			start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) {
				c.Source = sourceOf(t, pool, table.Config{Table: "dispatch.orders"})
			}))
			eventually(t, "one is delivered", func() bool { return row(t, pool).Sequence == 1 })
			promotedBehind(t, pool)
			eventually(t, "the process halts", func() bool { return row(t, pool).State == cursor.Halted })
			exec(t, pool, `INSERT INTO dispatch.orders (id, created_at) OVERRIDING SYSTEM VALUE VALUES (2, clock_timestamp() - interval '1 s')`)
			retry(t, pool)
			exec(t, pool, `INSERT INTO dispatch.orders (id) OVERRIDING SYSTEM VALUE VALUES (52)`)
			eventually(t, "it halts again, or goes on", func() bool { return row(t, pool).State == cursor.Halted || len(sink.attemptsOf("52")) == 1 })
			require.Equal(t, cursor.Halted, row(t, pool).State)
			require.Contains(t, row(t, pool).Failure.Error, "row 2 of dispatch.orders")
		})
	}
}

// moved is a source whose connections of a pool lead elsewhere than the others.
type moved struct {
	*table.Source
	pool *pgxpool.Pool
}

func (m moved) Pool() *pgxpool.Pool { return m.pool }

// TestRun_ARowThatGoesBackHaltsTheProcess: a snapshot was put back while the worker lived.
func TestRun_ARowThatGoesBackHaltsTheProcess(t *testing.T) {
	t.Parallel()
	pool := databaseOn(t, pgtest.URL(t))
	sink := &receiver{}
	start(t, process(t, pool, processor.Each(sink), nil))
	insert(t, pool, 1)
	eventually(t, "one is delivered", func() bool { return row(t, pool).Sequence == 1 })
	before := row(t, pool)
	insert(t, pool, 2)
	eventually(t, "all are delivered", func() bool { return row(t, pool).Sequence == 3 })
	exec(t, pool, fmt.Sprintf(`DO $$ BEGIN
		SET LOCAL session_replication_role = replica;
		UPDATE dispatch.cursor SET position = '%s', sequence = 1;
		DELETE FROM dispatch.bookings WHERE id > 1;
		INSERT INTO dispatch.bookings (customer) VALUES ('after the restore');
	END $$`, before.Position))
	halts(t, pool, cursor.ClassRestored)
	require.Equal(t, 3, sink.calls())

	decide(t, pool, (*operator.Operator).Retry)
	eventually(t, "it goes on", func() bool { return sink.calls() == 4 })
	require.EqualValues(t, 2, sink.all()[3].Sequence%cursor.HistoryGap)
	require.Greater(t, sink.all()[3].Sequence, int64(cursor.HistoryGap))
}

// TestRetry_AfterAHaltAsRestoredLooksForWhatAnotherTimelineStamped: a standby that was far behind is promoted, and its clock
// is behind, too. It is taken for a backup, and what it stamps before the cursor while the process is halted was lost.
func TestRetry_AfterAHaltAsRestoredLooksForWhatAnotherTimelineStamped(t *testing.T) {
	t.Parallel()
	pool, sink, log := databaseOn(t, pgtest.URL(t)), &receiver{}, &logbook{}
	insert(t, pool, 1)
	start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Logger = log.logger() }))
	eventually(t, "one is delivered, and it has looked for a promotion", func() bool { return row(t, pool).Sequence == 1 && log.has("caught up") })
	exec(t, pool, `DO $$ BEGIN
		SET LOCAL session_replication_role = replica;
		UPDATE dispatch.cursor SET sequence = 0, timeline = 7, updated_at = updated_at - interval '1 hour';
	END $$`)
	halts(t, pool, cursor.ClassRestored)
	exec(t, pool, `INSERT INTO dispatch.bookings (created_at, customer) VALUES (clock_timestamp() - interval '1 s', 'late')`)
	retry(t, pool)
	insert(t, pool, 1)
	eventually(t, "it halts again, or goes on", func() bool { return row(t, pool).State == cursor.Halted || len(sink.attemptsOf("3")) == 1 })
	require.Equal(t, cursor.Halted, row(t, pool).State)
	require.Contains(t, row(t, pool).Failure.Error, "row 2 of dispatch.bookings")
	at := cursor.Position(between(row(t, pool).Failure.Error, "--to-position ", " -c"))
	seek(t, pool, at)
	eventually(t, "it is delivered", func() bool { return len(sink.attemptsOf("2")) == 1 })
}

// between is the text between two others.
func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}
