package processor_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// amended has alice give the failing record another payload. d is one of its deliveries, or of the ones before it.
func amended(t testing.TB, pool *pgxpool.Pool, key, payload string) {
	t.Helper()
	failing := row(t, pool).Failure
	require.NotNil(t, failing)
	_, err := operator.New(store(t, pool)).Amend(t.Context(), "sms", operator.Amended{
		Position: failing.Position, DedupKey: key, Table: "dispatch.bookings", RecordID: failing.RecordID, Row: []byte("{}"), Payload: []byte(payload),
	}, alice)
	require.NoError(t, err)
}

// amendable refuses record 3 until its payload is better.
func amendable(_ context.Context, d processor.Delivery) error {
	if d.ID == "3" && string(d.Payload) != `{"better":true}` {
		return processor.Permanent(errRefused)
	}
	return nil
}

func TestAmend_IsDeliveredInsteadOfTheRow(t *testing.T) {
	t.Parallel()
	for name, dispatch := range map[string]func(*receiver) processor.Dispatch{
		"Each":  func(r *receiver) processor.Dispatch { return processor.Each(r) },
		"InTx":  func(r *receiver) processor.Dispatch { return processor.InTx(r) },
		"Batch": func(r *receiver) processor.Dispatch { return processor.Batch(oneByOne(r)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 6)
			sink := &receiver{answer: amendable}
			p := process(t, pool, dispatch(sink), func(c *processor.Config) { quick(c); c.Checkpoint = 4 })
			var halt *processor.HaltError
			require.ErrorAs(t, p.Drain(t.Context()), &halt)
			before := sink.attemptsOf("3")[0]
			amended(t, pool, before.DedupKey(), `{"better":true}`)
			require.NoError(t, p.Drain(t.Context()))
			all := sink.attemptsOf("3")
			after := all[len(all)-1]
			require.JSONEq(t, `{"better":true}`, string(after.Payload))
			require.True(t, after.Amended)
			require.False(t, before.Amended)
			require.Equal(t, before.DedupKey(), after.DedupKey())
			require.EqualValues(t, 3, after.Sequence)
			require.Equal(t, before.Position, after.Position)
			require.False(t, sink.attemptsOf("4")[0].Amended)
			require.EqualValues(t, 6, row(t, pool).Sequence)
			require.Equal(t, "{}", pgtest.Value[string](t, pool, "SELECT payload::text FROM dispatch.bookings WHERE id = 3"))

			// Another worker sends it again after a seek back, in a chunk with others before it.
			seek(t, pool, "")
			again := &receiver{answer: amendable}
			require.NoError(t, process(t, pool, dispatch(again), func(c *processor.Config) { quick(c); c.Checkpoint = 4 }).Drain(t.Context()))
			require.True(t, again.attemptsOf("3")[0].Amended)
			require.Equal(t, []string{"1/1", "2/1", "3/1", "4/1", "5/1", "6/1"}, again.attempts())
		})
	}
}

// Ids that start again bring another record to the position. It goes out as it is.
func TestAmend_IsOfOneRecordAndNotOfAPosition(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 4)
	sink := &receiver{answer: amendable}
	p := process(t, pool, processor.Each(sink), quick)
	require.Error(t, p.Drain(t.Context()))
	amended(t, pool, "dispatch.bookings/3/another", `{"better":true}`)
	var halt *processor.HaltError
	require.ErrorAs(t, p.Drain(t.Context()), &halt)
	for _, d := range sink.attemptsOf("3") {
		require.False(t, d.Amended)
	}
}

// What was amended is prepared as a row is, so a mapping that refused the row's payload passes.
func TestAmend_ComesBeforePrepare(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 4)
	sink := &receiver{}
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
		quick(c)
		c.Checkpoint = 4
		c.Prepare = func(_ context.Context, r processor.Record) (processor.Record, error) {
			if r.ID == "3" && !r.Amended {
				return r, processor.Permanent(errors.New("no such version"))
			}
			r.Payload = json.RawMessage(`["` + r.ID + `", ` + string(r.Payload) + `]`)
			return r, nil
		}
	})
	require.Error(t, p.Drain(t.Context()))
	require.Equal(t, cursor.ClassUnreadable, row(t, pool).Failure.Class)
	key := processor.Delivery{Record: sink.attemptsOf("2")[0].Record}
	key.ID, key.CreatedAt = "3", pgtest.Value[time.Time](t, pool, "SELECT created_at FROM dispatch.bookings WHERE id = 3")
	amended(t, pool, key.DedupKey(), `{"better":true}`)
	require.NoError(t, p.Drain(t.Context()))
	require.JSONEq(t, `["3", {"better":true}]`, string(sink.attemptsOf("3")[0].Payload))
}

// A dead letter has the payload that was sent, and its replay sends it, also after the amendment was taken back.
func TestAmend_IsWhatADeadLetterHas(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 4)
	sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
		if d.ID == "3" {
			return processor.Permanent(errRefused)
		}
		return nil
	}}
	require.Error(t, process(t, pool, processor.Each(sink), quick).Drain(t.Context()))
	amended(t, pool, sink.attemptsOf("3")[0].DedupKey(), `{"better":true}`)
	at := row(t, pool).Position
	p := process(t, pool, processor.Each(sink), deadLetters)
	require.NoError(t, p.Drain(t.Context()))
	o := operator.New(store(t, pool))
	letter, err := o.DeadLetter(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, letter.Amended())
	require.JSONEq(t, `{"better":true}`, string(letter.Payload))
	require.Empty(t, processor.OfLetter(letter).Headers)
	require.Greater(t, letter.Position, at)
	_, err = o.Unamend(t.Context(), "sms", letter.Position, alice)
	require.NoError(t, err)
	_, err = o.Unamend(t.Context(), "sms", letter.Position, alice)
	require.ErrorIs(t, err, operator.ErrNotAmended)
	sink.answer = nil
	require.NoError(t, p.Replay(t.Context(), 1, alice))
	all := sink.attemptsOf("3")
	require.True(t, all[len(all)-1].Amended)
	require.JSONEq(t, `{"better":true}`, string(all[len(all)-1].Payload))
}
