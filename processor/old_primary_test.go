package processor_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// TestRun_OnAnOldPrimaryNothingIsDecidedByMistake: a worker goes back to an old primary under its first lease on the new one. What is
// decided there begins numbers above those that the new one goes on with, and receivers that compare them would refuse these.
func TestRun_OnAnOldPrimaryNothingIsDecidedByMistake(t *testing.T) {
	t.Parallel()
	p := newPair(t, func(primary *pgxpool.Pool) {
		for _, name := range []string{"sms", "mail"} {
			_, err := store(t, primary).Create(t.Context(), name, "")
			require.NoError(t, err)
		}
	})
	sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
		if d.Epoch >= 1_000_000 { // of the new primary
			p.link.Retarget(host(t, p.primary.Config().ConnString()))
			p.link.Cut()
		}
		return nil
	}}
	p.run(t, sink, table.Config{Table: "dispatch.bookings"})
	insert(t, p.primary, 1)
	eventually(t, "an epoch that the standby never has", func() bool { return row(t, p.primary).Sequence == 1 })
	p.promote(t)
	insert(t, p.standby, 1)
	p.link.Retarget(p.promoted)
	p.link.Cut()
	require.Contains(t, halts(t, p.primary, cursor.ClassOldPrimary).Error, "this is an old one that is not fenced: fence it, and make no decision here")

	s := store(t, p.primary)
	start(t, process(t, pgtest.Pool(t, p.address, pgtest.PoolConfig{}), processor.Each(sink), func(c *processor.Config) { c.Process = "mail" }))
	eventually(t, "a worker that begins beside it halts its process", func() bool {
		mail, err := s.Look(t.Context(), "mail")
		require.NoError(t, err)
		return mail.State == cursor.Halted && mail.Failure.Class == cursor.ClassOldPrimary
	})

	decisions := map[string]func(d cursor.Decision) (operator.Change, error){
		"retry": func(d cursor.Decision) (operator.Change, error) { return operator.New(s).Retry(t.Context(), "sms", d) },
		"seek": func(d cursor.Decision) (operator.Change, error) {
			return operator.New(s).Seek(t.Context(), "sms", "", d)
		},
		"seek anew": func(d cursor.Decision) (operator.Change, error) {
			return operator.New(s).SeekAnew(t.Context(), "sms", "", d)
		},
		"restored": func(d cursor.Decision) (operator.Change, error) {
			return operator.New(s).Restored(t.Context(), "sms", d)
		},
	}
	for name, decide := range decisions {
		for _, d := range []cursor.Decision{{Actor: "me", Reason: "x"}, {Actor: "me", Reason: "x", DryRun: true}} {
			_, err := decide(d)
			require.ErrorIs(t, err, operator.ErrOldPrimary, name)
			require.ErrorContains(t, err, "each decision on it needs --fenced", name)
		}
	}
	require.Equal(t, cursor.Halted, row(t, p.primary).State)
	for name, decide := range decisions {
		_, err := decide(cursor.Decision{Actor: "me", Reason: "x", DryRun: true, Fenced: true})
		require.NoError(t, err, name)
	}
	_, err := decisions["retry"](cursor.Decision{Actor: "me", Fenced: true})
	require.NoError(t, err)
	require.Equal(t, cursor.Running, row(t, p.primary).State)
	require.Greater(t, row(t, p.primary).Sequence, row(t, p.standby).Sequence, "past what the other server has given out")
}
