package sql

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// check runs Check and holds that it leaves the connection as it was.
func check(t *testing.T, pool *pgxpool.Pool, statements ...string) error {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	result := newSink(t, statements...).Check(t.Context(), conn.Conn())
	require.EqualValues(t, 'I', conn.Conn().PgConn().TxStatus())
	require.NoError(t, conn.Ping(t.Context()))
	return result
}

func TestCheck_AcceptsWhatTheServerCanParseAndExecutesNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, "CREATE TABLE public.applied (id bigint, payload jsonb)")
	require.NoError(t, check(t, pool, "INSERT INTO public.applied VALUES (@id, @payload)", "SELECT 1/0", "SET LOCAL work_mem = '1MB'"))
	require.Empty(t, query(t, pool, "SELECT id::text FROM public.applied"))
}

func TestCheck_ReturnsEveryFaultWithItsPlaceAndFix(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, "CREATE TABLE public.applied (id bigint, n int)")
	err := check(t, pool,
		"INSERT INTO public.applied (id) VALUES (@id)",
		"UPDATE public.applied\n  SET n = @sequence, iD2 = @key",
		"SELECT 'é' || @id, jsonb_build_array(@position, @id)",
		"INSERT INTO public.applied (id) SELECT FROM applied",
		"SELECT FRM WHERE",
		"INSERT INTO public.applied (id) VALUES (length(@id) = 1)",
	)
	for _, fault := range []string{
		`check sql sink: statement 2 of 6: line 2, column 22: ERROR: column "id2" of relation "applied" does not exist (SQLSTATE 42703)`,
		`check sql sink: statement 3 of 6: ERROR: could not determine data type of parameter $2 (SQLSTATE 42P18); ` +
			`add a cast, such as @id::bigint ($1 is @id, $2 is @position)`,
		`statement 4 of 6: line 1, column 45: ERROR: relation "applied" does not exist (SQLSTATE 42P01); qualify the table with its schema`,
		`statement 5 of 6: line 1, column 17: ERROR: syntax error at end of input (SQLSTATE 42601)`,
		`statement 6 of 6: line 1, column 41: ERROR: column "id" is of type bigint but expression is of type boolean (SQLSTATE 42804); You will need to`,
	} {
		require.ErrorContains(t, err, fault)
	}
	require.NotContains(t, err.Error(), "statement 1 of 6")
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
}

func TestCheck_RefusesStringsThatEndElsewhere(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig(pgtest.URL(t))
	require.NoError(t, err)
	config.RuntimeParams["standard_conforming_strings"] = "off"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	require.ErrorContains(t, newSink(t, "SELECT 1").Check(t.Context(), conn), "standard_conforming_strings is off")
}

func TestCheck_WorksThroughPgBouncerInTransactionMode(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.Bouncer{PoolSize: 1}.Start(t, pgtest.URL(t))+"&default_query_exec_mode=exec", pgtest.PoolConfig{})
	for range 2 {
		require.NoError(t, check(t, pool, "SELECT @id::text", "SELECT @key::text"))
		require.ErrorContains(t, check(t, pool, "SELECT @id::text", "SELECT missing"), "statement 2 of 2: line 1, column 8")
	}
}

func TestCheck_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, newSink(t, "SELECT 1").Check(ctx, conn.Conn()), context.Canceled)
}
