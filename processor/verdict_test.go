package processor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// A receiver that refuses one record after another is no word on any of them.
func TestDeadLetter_ALongRunOfThemHalts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*processor.Config)
		want   int
	}{
		"by default":              {func(*processor.Config) {}, 10},
		"as many as the breaker":  {func(c *processor.Config) { c.Breaker.Failures = 5 }, 5},
		"as many as is said":      {func(c *processor.Config) { c.Breaker.Failures = 5; c.DeadLetterRun = 7 }, 7},
		"in transactions of many": {func(c *processor.Config) { c.Dispatch = processor.InTx(poison()); c.Checkpoint = 50 }, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 40)
			p := process(t, pool, processor.Each(poison()), func(config *processor.Config) { deadLetters(config); c.change(config) })
			var halt *processor.HaltError
			require.ErrorAs(t, p.Drain(t.Context()), &halt)
			require.Len(t, letters(t, pool), c.want)
			require.Equal(t, fmt.Sprint(c.want+1), halt.Failure.RecordID)
			require.Contains(t, halt.Failure.Error, fmt.Sprintf("the %d records before this one became dead letters in a row", c.want))
			require.Contains(t, halt.Failure.Error, errRefused.Error())

			decide(t, pool, (*operator.Operator).Retry)
			require.ErrorAs(t, p.Drain(t.Context()), &halt)
			require.Len(t, letters(t, pool), 2*c.want, "an operator has looked: it counts anew")
		})
	}
}

// poison is a receiver that refuses every record for good.
func poison() *receiver {
	return &receiver{answer: func(context.Context, processor.Delivery) error { return processor.Permanent(errRefused) }}
}

func TestDeadLetter_ARecordDeliveredBetweenThemEndsTheRun(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 29)
	sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
		if d.ID == "10" || d.ID == "20" {
			return nil
		}
		return processor.Permanent(errRefused)
	}}
	require.NoError(t, process(t, pool, processor.Each(sink), deadLetters).Drain(t.Context()))
	require.Len(t, letters(t, pool), 27)
}

// refuseInserts has a table refuse so many rows with an SQLSTATE.
func refuseInserts(t testing.TB, pool *pgxpool.Pool, table, sqlState string, times int) {
	t.Helper()
	exec(t, pool, fmt.Sprintf(`
		CREATE SEQUENCE dispatch.%[1]s_tries;
		CREATE FUNCTION dispatch.%[1]s_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF nextval('dispatch.%[1]s_tries') <= %[3]d THEN RAISE EXCEPTION 'the table takes no row' USING ERRCODE = '%[2]s'; END IF;
			RETURN new;
		END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON dispatch.%[1]s FOR EACH ROW WHEN (new.process_name = 'sms')
			EXECUTE FUNCTION dispatch.%[1]s_refuse()`, table, sqlState, times))
}

func TestDeadLetter_ThatCannotBeWrittenHaltsAndIsSentOnce(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t testing.TB, pool *pgxpool.Pool){
		"no table": func(t testing.TB, pool *pgxpool.Pool) {
			exec(t, pool, "ALTER TABLE dispatch.dead_letter RENAME TO gone")
		},
		"no grant":            func(t testing.TB, pool *pgxpool.Pool) { refuseInserts(t, pool, "dead_letter", "42501", 1000) },
		"a value is too long": func(t testing.TB, pool *pgxpool.Pool) { refuseInserts(t, pool, "dead_letter", "54000", 1000) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 3)
			prepare(t, pool)
			sink := &receiver{answer: failing("2", 1, processor.Permanent(errRefused))}
			var log logbook
			p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
				deadLetters(c)
				c.Logger = log.logger()
			})
			var halt *processor.HaltError
			for halt == nil { // a missing table ends a drain as well
				if err := p.Drain(t.Context()); err != nil {
					_ = errors.As(err, &halt)
				}
			}
			require.Contains(t, halt.Failure.Error, "it cannot be kept as a dead letter (")
			require.Contains(t, halt.Failure.Error, errRefused.Error())
			require.True(t, log.has("the record could not be kept as a dead letter"))
			require.False(t, log.has("was kept as a dead letter"), "nothing is claimed before it is durable")
			require.False(t, log.has("recovered"), "it halts")
			require.Equal(t, []string{"1/1", "2/1"}, sink.attempts())
			require.Equal(t, cursor.ClassPermanent, row(t, pool).Failure.Class)
		})
	}
}

// What passes by itself does not halt, and the receiver is not asked meanwhile.
func TestDeadLetter_IsWrittenLaterWithoutAnotherAttempt(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	refuseInserts(t, pool, "dead_letter", "53100", 3)
	sink := &receiver{answer: failing("2", 1, processor.Permanent(errRefused))}
	require.NoError(t, process(t, pool, processor.Each(sink), deadLetters).Drain(t.Context()))
	require.Equal(t, []string{"1/1", "2/1", "3/1"}, sink.attempts())
	require.Equal(t, []string{"2/1"}, letters(t, pool))
}

func TestHalt_IsWrittenLaterWithoutAnotherAttempt(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	sink := &receiver{answer: failing("2", 1, processor.Permanent(errRefused))}
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
		c.Observe = func(e processor.Event) {
			if e.Kind == processor.EventAttempt && e.Class == cursor.ClassPermanent {
				refuseInserts(t, pool, "cursor_event", "23514", 3)
			}
		}
	})
	require.ErrorAs(t, p.Drain(t.Context()), new(*processor.HaltError))
	require.Equal(t, []string{"1/1", "2/1"}, sink.attempts())
}

// An operator who moves the cursor meanwhile has decided otherwise.
func TestVerdict_ThatIsNotWrittenIsVoidAfterASeek(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	refuseInserts(t, pool, "dead_letter", "53100", 1)
	sink := &receiver{answer: failing("2", 1, processor.Permanent(errRefused))}
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
		deadLetters(c)
		c.Observe = func(e processor.Event) {
			if e.Kind == processor.EventLeaseLost {
				to := sink.attemptsOf("2")[0].After
				_, err := operator.New(store(t, pool)).Seek(t.Context(), "sms", to, cursor.Decision{Actor: "me", Reason: "it is corrected"})
				if err != nil {
					t.Error(err)
				}
				sink.answer = nil
			}
		}
	})
	require.NoError(t, p.Drain(t.Context()))
	require.Empty(t, letters(t, pool))
	require.Equal(t, []string{"1/1", "2/1", "2/1", "3/1"}, sink.attempts())
}

// large is a source of one record that no dead letter can hold.
type large struct{}

func (large) Read(_ context.Context, after cursor.Position, _ int) (processor.Page, error) {
	if after != "" {
		return processor.Page{}, nil
	}
	return processor.Page{Records: []processor.Record{{Position: "1", ID: "1", Payload: make([]byte, 500_000_001)}}}, nil
}

func TestDeadLetter_OfARecordThatIsTooLargeHalts(t *testing.T) {
	t.Parallel()
	pool := database(t)
	sink := poison()
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) { deadLetters(c); c.Source = large{} })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var halt *processor.HaltError
	require.ErrorAs(t, p.Drain(ctx), &halt)
	require.Contains(t, halt.Failure.Error, "a dead letter holds a payload of at most 500000000 bytes")
	require.Equal(t, 1, sink.calls())
}

// The shift that halts leaves it to the next look to say so; that one does.
func TestLog_SaysThatAProcessIsHalted(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	var log logbook
	start(t, process(t, pool, processor.Each(poison()), func(c *processor.Config) { c.Logger = log.logger() }))
	eventually(t, "the log says it", func() bool { return log.has("halted: nothing after this record is delivered") })
}

// An outage of any length makes no dead letter: what counts are answers.
func TestDeadLetter_AnOutageUsesUpNoAttempts(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	away, busy := errors.New("connection refused"), errors.New("busy")
	sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
		switch {
		case d.ID != "2" && d.Attempt > 1 || d.Attempt > 12:
			return nil
		case d.ID == "2" && d.Attempt == 7: // between two outages, the receiver answers
			return busy
		default:
			return processor.Unreached(away)
		}
	}}
	config := func(c *processor.Config) {
		deadLetters(c)
		c.Retry.Attempts = 2
	}
	require.NoError(t, process(t, pool, processor.Each(sink), config).Drain(t.Context()))
	require.Empty(t, letters(t, pool))
	require.Len(t, sink.attemptsOf("2"), 13)
}

// A receiver that takes nothing now may have the record from before it was so.
func TestOutage_IsNoAttemptAndLeavesADoubt(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
		if d.Attempt > 4 {
			return nil
		}
		return processor.Unreached(outcome.Outage(errors.New("too few replicas")))
	}}
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
		deadLetters(c)
		c.Retry.Attempts = 2
	})
	require.NoError(t, p.Drain(t.Context()))
	require.Empty(t, letters(t, pool))
	require.Equal(t, "1/1 1/2? 1/3? 1/4? 1/5?", sink.doubts())
}

func TestOutage_HaltsWhereAnUnknownOutcomeDoes(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	sink := &receiver{answer: func(context.Context, processor.Delivery) error {
		return processor.Unreached(outcome.Outage(errors.New("too few replicas")))
	}}
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) { quick(c); c.HaltOnTimeout, c.Retry.Attempts = true, 3 })
	var halt *processor.HaltError
	require.ErrorAs(t, p.Drain(t.Context()), &halt)
	require.Equal(t, cursor.ClassUnknown, halt.Failure.Class)
	require.Equal(t, []string{"1/1"}, sink.attempts())
}

func TestDeadLetter_AnswersCountBesideAnOutage(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*processor.Config){
		"under one lease":       func(*processor.Config) {},
		"with the lease let go": func(c *processor.Config) { c.Retry.Initial, c.Retry.Max = 1100*time.Millisecond, 1100*time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 2)
			sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
				switch {
				case d.ID == "2":
					return nil
				case d.Attempt <= 3:
					return processor.Unreached(errors.New("connection refused"))
				default:
					return errors.New("busy")
				}
			}}
			p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
				deadLetters(c)
				c.Retry.Attempts = 2
				change(c)
			})
			require.NoError(t, p.Drain(t.Context()))
			require.Equal(t, 1, len(letters(t, pool)))
			require.Len(t, sink.attemptsOf("1"), 5, "three that reached nobody, and two answers")
		})
	}
}

// Another worker sees in the row that nobody was reached, and counts none of that.
func TestDeadLetter_ANewWorkerDoesNotCountAnOutage(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	config := func(c *processor.Config) {
		deadLetters(c)
		c.Retry.Attempts = 2
	}
	away := &receiver{answer: func(context.Context, processor.Delivery) error {
		return processor.Unreached(errors.New("connection refused"))
	}}
	stop := start(t, process(t, pool, processor.Each(away), config))
	eventually(t, "attempts", func() bool { f := row(t, pool).Failure; return f != nil && f.Attempts >= 5 })
	require.NoError(t, stop())
	require.Equal(t, cursor.ClassUnreached, row(t, pool).Failure.Class)

	calls := 0
	busyOnce := &receiver{answer: func(context.Context, processor.Delivery) error {
		if calls++; calls == 1 {
			return errors.New("busy")
		}
		return nil
	}}
	require.NoError(t, process(t, pool, processor.Each(busyOnce), config).Drain(t.Context()))
	require.Empty(t, letters(t, pool))
}
