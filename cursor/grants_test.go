package cursor_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// granted is the store of a worker whose role may do so much and nothing else.
func granted(t *testing.T, pool *pgxpool.Pool, worker string, duties ...cursor.Duty) *cursor.Store {
	t.Helper()
	role := "Od-" + rand.Text() // spelled so that it needs its quotes
	exec(t, pool, fmt.Sprintf(`CREATE ROLE "%s" LOGIN PASSWORD 'secret'`, role))
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), fmt.Sprintf(`DROP OWNED BY "%[1]s"; DROP ROLE "%[1]s"`, role))
		require.NoError(t, err)
	})
	exec(t, pool, store(t, pool, "a").Grants(role, duties...))
	config, err := pgxpool.ParseConfig(pgtest.URL(t))
	require.NoError(t, err)
	config.ConnConfig.User, config.ConnConfig.Password = role, "secret"
	far, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(far.Close)
	return store(t, far, worker)
}

func denied(t *testing.T, err error) {
	t.Helper()
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, "42501", pgErr.Code)
}

func TestGrants_AreWhatEachDutyNeeds(t *testing.T) {
	t.Parallel()
	pool := database(t)
	worker := granted(t, pool, "a", cursor.DutyDeliver, cursor.DutyPutAside, cursor.DutyCreate)
	confined := granted(t, pool, "b", cursor.DutyDeliver)
	operator := granted(t, pool, "c", cursor.DutyDecide)
	counting := granted(t, pool, "d", cursor.DutyDeliver, cursor.DutyCount)

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

	_, err = confined.CountDeadLetters(t.Context(), []string{"sms"})
	denied(t, err)
	counted, err := counting.CountDeadLetters(t.Context(), []string{"sms", "mail"})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"sms": 1, "mail": 0}, counted)
	_, err = counting.DeadLetters(t.Context(), "sms", false, 1)
	denied(t, err)
	_, err = confined.DeadLetters(t.Context(), "", false, 1)
	denied(t, err)
	open, err := operator.DeadLetters(t.Context(), "", false, 1)
	require.NoError(t, err)
	_, err = operator.Discard(t.Context(), open[0].ID, alice)
	require.NoError(t, err)
	for name, decide := range actions(operator) {
		if _, err := decide(t.Context(), "sms", alice); err != nil { // in any order: some have nothing to do
			require.NotContains(t, err.Error(), "42501", name)
		}
	}
	_, err = operator.History(t.Context(), "sms", 10)
	require.NoError(t, err)
	_, err = operator.Seek(t.Context(), "sms", "p4", alice)
	require.NoError(t, err)
	_, err = operator.Resume(t.Context(), "sms", alice)
	require.NoError(t, err)
	lease, err = operator.Acquire(t.Context(), "sms")
	if err == nil {
		lease.Release()
	}
	denied(t, err)
}
