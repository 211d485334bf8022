package operator_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

func denied(t *testing.T, err error) {
	t.Helper()
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, "42501", pgErr.Code)
}

func TestGrants_AreWhatEachDutyNeeds(t *testing.T) {
	t.Parallel()
	pool := database(t)
	worker := granted(t, pool, "a", operator.DutyDeliver, operator.DutyPutAside, operator.DutyCreate)
	confined := granted(t, pool, "b", operator.DutyDeliver)
	decider := granted(t, pool, "c", operator.DutyDecide)
	counting := granted(t, pool, "d", operator.DutyDeliver, operator.DutyCount)

	_, err := confined.Create(t.Context(), "sms", "")
	denied(t, err)
	_, err = worker.Create(t.Context(), "sms", "")
	require.NoError(t, err)
	lease := acquire(t, worker)
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
	require.NoError(t, lease.PutAside(t.Context(), letter()))
	lease.Release()
	lease = acquire(t, confined)
	l := letter()
	l.Position = "p3"
	denied(t, lease.PutAside(t.Context(), l))
	lease.Release()
	lease = acquire(t, confined)
	require.NoError(t, lease.Halt(t.Context(), cursor.Failure{Position: "p3", RecordID: "3", Attempts: 1, Error: "422"}))

	_, err = operator.New(confined).CountDeadLetters(t.Context(), []string{"sms"})
	denied(t, err)
	counted, err := operator.New(counting).CountDeadLetters(t.Context(), []string{"sms", "mail"})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"sms": 1, "mail": 0}, counted)
	_, err = operator.New(counting).DeadLetters(t.Context(), "sms", false, 1)
	denied(t, err)
	_, err = operator.New(confined).DeadLetters(t.Context(), "", false, 1)
	denied(t, err)
	open, err := operator.New(decider).DeadLetters(t.Context(), "", false, 1)
	require.NoError(t, err)
	_, err = operator.New(decider).Discard(t.Context(), open[0].ID, alice)
	require.NoError(t, err)
	for name, decide := range actions(operator.New(decider)) {
		if _, err := decide(t.Context(), "sms", alice); err != nil { // in any order: some have nothing to do
			require.NotContains(t, err.Error(), "42501", name)
		}
	}
	_, err = operator.New(decider).History(t.Context(), "sms", 10)
	require.NoError(t, err)
	_, err = operator.New(decider).Seek(t.Context(), "sms", "p4", alice)
	require.NoError(t, err)
	_, err = operator.New(decider).Resume(t.Context(), "sms", alice)
	require.NoError(t, err)
	lease, err = decider.Acquire(t.Context(), "sms")
	if err == nil {
		lease.Release()
	}
	denied(t, err)
}
