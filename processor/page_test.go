package processor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// script is a source of a test's own.
type script func(after cursor.Position, limit int) (processor.Page, error)

func (s script) Read(_ context.Context, after cursor.Position, limit int) (processor.Page, error) {
	return s(after, limit)
}

// soon bounds what should end by itself.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// at is the position of the n-th row of a script.
func at(n int) cursor.Position { return cursor.Position(fmt.Sprintf("n:%04d", n)) }

func record(n int) processor.Record {
	return processor.Record{Position: at(n), Table: "a.b", ID: fmt.Sprint(n), Payload: []byte("{}")}
}

// Two records of one position, at the end of a page and at the beginning of the next,
// or in one: neither is passed over, and the process says which.
func TestRead_APositionThatDoesNotGrowIsNamed(t *testing.T) {
	t.Parallel()
	for name, page := range map[string]processor.Page{
		"a record of the position asked for": {Records: []processor.Record{record(0)}},
		"two records of one position":        {Records: []processor.Record{record(1), record(1)}},
		"a record before another":            {Records: []processor.Record{record(2), record(1)}},
		"passed over to where it is":         {Passed: at(0)},
		"passed over before the records":     {Records: []processor.Record{record(2)}, Passed: at(1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			sink := &receiver{}
			_, err := store(t, pool).Create(t.Context(), "sms", at(0))
			require.NoError(t, err)
			p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
				c.Source = script(func(cursor.Position, int) (processor.Page, error) { return page, nil })
			})
			require.ErrorIs(t, p.Drain(soon(t)), processor.ErrOrder)
			require.Zero(t, sink.calls())
			require.Equal(t, at(0), row(t, pool).Position)
		})
	}
}

// refuseAdvances makes a trigger of others, which keeps advances from the row and counts them.
func refuseAdvances(t testing.TB, pool *pgxpool.Pool, answer string) {
	t.Helper()
	exec(t, pool, `CREATE FUNCTION dispatch.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM nextval(''dispatch.refused''); RETURN `+answer+`; END';
		CREATE SEQUENCE dispatch.refused;
		CREATE TRIGGER refuse BEFORE UPDATE ON dispatch.cursor FOR EACH ROW
			WHEN (old.position < new.position) EXECUTE FUNCTION dispatch.refuse()`)
}

func refused(t testing.TB, pool *pgxpool.Pool) int {
	t.Helper()
	return pgtest.Value[int](t, pool, `SELECT last_value FROM dispatch.refused`)
}

// An advance that a trigger of others keeps from the row: the record was sent again every
// five seconds, without end.
func TestAdvance_ThatIsKeptFromTheRowSendsNothingAgain(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"NULL", "OLD"} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 1)
			log := &logbook{}
			sink := &receiver{answer: func(context.Context, processor.Delivery) error {
				refuseAdvances(t, pool, answer)
				return nil
			}}
			created(t, pool)
			stop := start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { quick(c); c.Logger = log.logger() }))
			eventually(t, "asked again and again", func() bool { return sink.calls() > 0 && log.has("the cursor does not move") && refused(t, pool) >= 4 })
			require.True(t, log.has("trigger refuse"))
			exec(t, pool, `DROP TRIGGER refuse ON dispatch.cursor`)
			eventually(t, "it advances", func() bool { return row(t, pool).Sequence == 1 })
			require.NoError(t, stop())
			require.Equal(t, 1, sink.calls())
		})
	}
}

// The debt of one worker dies when another takes over. Two that did so in turn sent a record
// once each time: now none takes over while the row takes no advance.
func TestAdvance_ThatIsKeptFromTheRowOfTwoWorkersSendsNothing(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	created(t, pool)
	refuseAdvances(t, pool, "NULL")
	sink := &receiver{}
	var stops []func() error
	for _, worker := range []string{"a", "b"} {
		stops = append(stops, start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) {
			quick(c)
			s, err := cursor.NewStore(pool, cursor.Config{Schema: schema, Worker: worker})
			require.NoError(t, err)
			c.Store = s
		})))
	}
	eventually(t, "both try again and again", func() bool { return refused(t, pool) >= 6 })
	require.Zero(t, sink.calls())
	require.Zero(t, row(t, pool).Epoch)
	exec(t, pool, `DROP TRIGGER refuse ON dispatch.cursor`)
	eventually(t, "it advances", func() bool { return row(t, pool).Sequence == 1 })
	for _, stop := range stops {
		require.NoError(t, stop())
	}
	require.Equal(t, 1, sink.calls())
}

// A trigger behind the advance undoes it: effects in the same transaction were committed
// again and again, and the log said that another session has the row.
func TestAdvance_ThatIsUndoneSendsNothingAgain(t *testing.T) {
	t.Parallel()
	for name, dispatch := range map[string]func(*receiver) processor.Dispatch{
		"Each": func(r *receiver) processor.Dispatch { return processor.Each(r) },
		"InTx": func(r *receiver) processor.Dispatch { return processor.InTx(r) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 1)
			log := &logbook{}
			var once sync.Once
			sink := &receiver{answer: func(context.Context, processor.Delivery) error {
				once.Do(func() {
					exec(t, pool, `CREATE FUNCTION dispatch.undo() RETURNS trigger LANGUAGE plpgsql AS
						'BEGIN UPDATE dispatch.cursor SET position = OLD.position, sequence = OLD.sequence WHERE process_name = NEW.process_name; RETURN NULL; END';
					CREATE CONSTRAINT TRIGGER undo AFTER UPDATE ON dispatch.cursor DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
						WHEN (old.position < new.position) EXECUTE FUNCTION dispatch.undo()`)
				})
				return nil
			}}
			created(t, pool)
			stop := start(t, process(t, pool, dispatch(sink), func(c *processor.Config) { quick(c); c.Logger = log.logger() }))
			eventually(t, "it is said", func() bool { return log.has("undone in the same transaction") && log.has("trigger undo") })
			exec(t, pool, `DROP TRIGGER undo ON dispatch.cursor`)
			eventually(t, "it advances", func() bool { return row(t, pool).Sequence == 1 })
			require.NoError(t, stop())
			require.Equal(t, 1, sink.calls())
		})
	}
}

// sparse has a record at every hundredth row, and finds twenty rows at a time.
func sparse(after cursor.Position, _ int) (processor.Page, error) {
	var n int
	_, _ = fmt.Sscanf(string(after), "n:%d", &n)
	const rows, step = 250, 20
	for end := min(n+step, rows); n < end; n++ {
		if (n+1)%100 == 0 {
			return processor.Page{Records: []processor.Record{record(n + 1)}}, nil
		}
	}
	if at(n) <= after {
		return processor.Page{}, nil
	}
	return processor.Page{Passed: at(n)}, nil
}

// The cursor moves over what the source leaves out: no record, so no number, no audit,
// and nothing that a receiver could take for missing.
func TestPass_TheCursorMovesOverWhatTheSourceLeavesOut(t *testing.T) {
	t.Parallel()
	for name, dispatch := range map[string]func(*receiver) processor.Dispatch{
		"Each": func(r *receiver) processor.Dispatch { return processor.Each(r) },
		"InTx": func(r *receiver) processor.Dispatch { return processor.InTx(r) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			sink := &receiver{}
			require.NoError(t, process(t, pool, dispatch(sink), func(c *processor.Config) { c.Source = script(sparse) }).Drain(soon(t)))
			now := row(t, pool)
			require.Equal(t, at(250), now.Position)
			require.EqualValues(t, 2, now.Sequence)
			require.Equal(t, []string{"100/1", "200/1"}, sink.attempts())
			require.Equal(t, at(100), sink.attemptsOf("200")[0].After, "the record before it")
			require.EqualValues(t, 2, sink.attemptsOf("200")[0].Sequence)
			require.Zero(t, pgtest.Value[int](t, pool, `SELECT count(*) FROM dispatch.cursor_event WHERE action NOT IN ('create', 'take_over')`))
		})
	}
}

// A worker that only stands by leaves it to the other one, and takes over if that
// one is gone.
func TestPass_IsLeftToTheWorkerThatDeliveredLast(t *testing.T) {
	t.Parallel()
	pool := database(t)
	sink := &receiver{}
	of := func(worker string) *processor.Process {
		return process(t, pool, processor.Each(sink), func(c *processor.Config) {
			s, err := cursor.NewStore(pool, cursor.Config{Schema: schema, Worker: worker})
			require.NoError(t, err)
			c.Store, c.Poll = s, 5*time.Millisecond
			c.Source = script(func(after cursor.Position, limit int) (processor.Page, error) {
				if worker == "first" && after >= at(100) {
					return processor.Page{}, nil
				}
				return sparse(after, limit)
			})
		})
	}
	require.NoError(t, of("first").Drain(soon(t)))
	require.Equal(t, at(100), row(t, pool).Position)
	require.NoError(t, of("second").Drain(soon(t)))
	require.Equal(t, at(250), row(t, pool).Position)
	require.Equal(t, []string{"100/1", "200/1"}, sink.attempts())
}

var errUnread = errors.New("its headers are not a JSON object")

// faulty has three records, of which the second cannot be read until it is fixed.
func faulty(fixed *bool) script {
	return func(after cursor.Position, _ int) (page processor.Page, _ error) {
		for n := 1; n <= 3; n++ {
			if r := record(n); r.Position > after {
				if n == 2 && !*fixed {
					r.Fault, r.Payload = errUnread, nil
				}
				page.Records = append(page.Records, r)
			}
		}
		return page, nil
	}
}

// A record that its source cannot read halts the process at its place, as one that
// its receiver refuses: those before it are delivered, and an operator decides.
func TestFault_ARecordThatCannotBeReadHaltsAtItsPlace(t *testing.T) {
	t.Parallel()
	pool := database(t)
	sink, fixed := &receiver{}, false
	p := process(t, pool, processor.Batch(oneByOne(sink)), func(c *processor.Config) { c.Source = faulty(&fixed) })
	var halt *processor.HaltError
	require.ErrorAs(t, p.Drain(soon(t)), &halt)
	require.Equal(t, cursor.ClassUnreadable, halt.Failure.Class)
	require.Equal(t, "2", halt.Failure.RecordID)
	require.Equal(t, at(2), halt.Failure.Position)
	require.Contains(t, halt.Error(), errUnread.Error())
	require.Equal(t, []string{"1/1"}, sink.attempts())

	decide(t, pool, (*operator.Operator).Retry)
	require.ErrorAs(t, p.Drain(soon(t)), &halt, "nothing has changed")

	fixed = true
	decide(t, pool, (*operator.Operator).Retry)
	require.NoError(t, p.Drain(soon(t)))
	require.Equal(t, []string{"1/1", "2/1", "3/1"}, sink.attempts())
}

func TestFault_ARecordThatCannotBeReadCanBeSkipped(t *testing.T) {
	t.Parallel()
	pool := database(t)
	sink, fixed := &receiver{}, false
	p := process(t, pool, processor.InTx(sink), func(c *processor.Config) { c.Source = faulty(&fixed) })
	var halt *processor.HaltError
	require.ErrorAs(t, p.Drain(soon(t)), &halt)
	decide(t, pool, (*operator.Operator).Skip)
	require.NoError(t, p.Drain(soon(t)))
	require.Equal(t, []string{"1/1", "3/1"}, sink.attempts())
}

// Put aside it lacks what could not be read, so that no replay sends a part of a record.
func TestFault_ARecordThatCannotBeReadIsPutAsideAndNotReplayed(t *testing.T) {
	t.Parallel()
	pool := database(t)
	sink, fixed := &receiver{}, false
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
		deadLetters(c)
		c.Source, c.Checkpoint = faulty(&fixed), 3
	})
	require.NoError(t, p.Drain(soon(t)))
	require.Equal(t, []string{"1/1", "3/1"}, sink.attempts())
	require.Equal(t, []string{"2/1"}, letters(t, pool))
	require.EqualValues(t, 3, row(t, pool).Sequence)
	require.ErrorContains(t, p.Replay(t.Context(), 1, cursor.Decision{Actor: "me"}), "could not read all of this record")
	require.Equal(t, 2, sink.calls())
}
