package daemon_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestDrain_ASQLSinkThatRequiresARowHaltsWhereNoneIsTouched(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `
		CREATE TABLE public.account (owner text PRIMARY KEY, n int NOT NULL DEFAULT 0);
		INSERT INTO public.account VALUES ('ann'), ('cid');
		INSERT INTO public.bookings (customer) VALUES ('ann'), ('bob'), ('cid')`)
	config := configure(t, pgtest.URL(t), "  a: {source: {table: public.bookings, columns: {key: customer}}, checkpoint: 3, "+
		"sink: {sql: {rows: at_least 1, statement: UPDATE public.account SET n = n + 1 WHERE owner = @key}}}\n")
	_ = drain(t, config)
	var state, class, said string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT state, failed_class, failed_error FROM od.cursor`).Scan(&state, &class, &said))
	require.Equal(t, "halted", state)
	require.Equal(t, "permanent", class)
	require.Contains(t, said, "touched no row")
	var applied string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT string_agg(owner, ' ') FROM public.account WHERE n = 1`).Scan(&applied))
	require.Equal(t, "ann", applied, "what is before it is applied, and nothing after it")
}
