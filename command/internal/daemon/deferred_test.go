package daemon_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// What a deferred constraint says comes with the end of the effects, not with a statement of
// the record.
func TestDrain_ADeferredConstraintIsAWordOnTheRecordWithoutItsData(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `
		CREATE TABLE public.cards (card text);
		CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN RAISE EXCEPTION 'card % is refused', NEW.card USING ERRCODE = '23514'; END $$;
		CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON public.cards DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (NEW.card LIKE '4111%') EXECUTE FUNCTION public.refuse();
		INSERT INTO public.bookings (customer) VALUES ('5500-FINE'), ('4111-CANARYCARD-1111'), ('5500-FINE')`)
	config := configure(t, pgtest.URL(t), "  a: {source: {table: public.bookings, columns: {key: customer}}, checkpoint: 3, retry: {initial: 10ms, max: 20ms, attempts: 2}, sink: {sql: {statement: \"INSERT INTO public.cards VALUES (@key)\"}}}\n")
	_ = drain(t, config)
	var state, class, said string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT state, failed_class, failed_error FROM od.cursor`).Scan(&state, &class, &said))
	require.Equal(t, "halted", state)
	require.Equal(t, "permanent", class, "as where the constraint is immediate")
	require.Contains(t, said, "is refused")
	require.NotContains(t, said, "CANARYCARD")
	var applied int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM public.cards`).Scan(&applied))
	require.Equal(t, 1, applied)
}
