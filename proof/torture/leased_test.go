package main

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

// A worker that finds the row locked delivers nothing, and an operator who has it does not either.
func TestAskLeased_NamesTheProcessesOfWhichAWorkerHasTheRow(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: pgtest.URL(t), Schema: schema})
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(t.Context())) })
	store, err := cursor.NewStore(pool, cursor.Config{Schema: schema, Worker: "a"})
	require.NoError(t, err)
	asked := func() map[string]bool {
		seen := map[string]bool{}
		require.NoError(t, askLeased(t.Context(), conn, seen))
		return seen
	}
	for _, process := range []string{"mine", "moving", "idle"} {
		_, err := store.Create(t.Context(), process, "")
		require.NoError(t, err)
	}
	require.Empty(t, asked())

	mine, err := store.Acquire(t.Context(), "mine")
	require.NoError(t, err)
	moving, err := store.AcquireTx(t.Context(), "moving", 0)
	require.NoError(t, err)
	_, err = store.Acquire(t.Context(), "mine")
	require.ErrorIs(t, err, cursor.ErrHeld)
	require.Equal(t, map[string]bool{"mine": true, "moving": true}, asked())
	mine.Release()
	moving.Release()
	require.Empty(t, asked())
}
