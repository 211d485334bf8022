package sql

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// `grants` prints what the server says of the statement.
func TestNeeds_KeepsSecretsOfTheStatement(t *testing.T) {
	t.Parallel()
	conn, err := pgtest.Database(t).Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	s, err := New(Config{Statements: []string{"SELECT 'TOPSECRETkey'::uuid"}, Secrets: []string{"TOPSECRETkey"}})
	require.NoError(t, err)
	_, err = s.Needs(t.Context(), conn.Conn())
	require.ErrorContains(t, err, "invalid input syntax")
	require.NotContains(t, err.Error(), "TOPSECRETkey")
	var pgErr *pgconn.PgError
	require.True(t, errors.As(err, &pgErr), "the code is kept")
}

func TestNeeds_TakesAStatementWithItsEnd(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, "CREATE TABLE public.applied (id bigint)")
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	needs, err := newSink(t, "INSERT INTO public.applied VALUES (@id); -- the end").Needs(t.Context(), conn.Conn())
	require.NoError(t, err)
	require.NotEmpty(t, needs.Privileges)
}
