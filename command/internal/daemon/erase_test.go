package daemon_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// onTheWay are states in which a pass, or an operator, may leave the partition of January.
var onTheWay = map[string]func(testing.TB, *pgxpool.Pool){
	"closed":  func(t testing.TB, pool *pgxpool.Pool) { exec(t, pool, closeJanuary) },
	"pending": detaching,
	"detached": func(t testing.TB, pool *pgxpool.Pool) {
		exec(t, pool, closeJanuary+"; ALTER TABLE public.events DETACH PARTITION public.jan")
	},
}

const closeJanuary = `ALTER TABLE public.jan ADD CONSTRAINT ordered_dispatcher_drops_this_partition CHECK (false) NOT VALID;
	COMMENT ON CONSTRAINT ordered_dispatcher_drops_this_partition ON public.jan IS 'public.events'`

func TestErase_RefusesWhileRowsMayBeInAPartitionOnItsWay(t *testing.T) {
	t.Parallel()
	d := cursor.Decision{Actor: "ann", Reason: "request 7"}
	for name, left := range onTheWay {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := dropping(t)
			exec(t, pool, "ALTER TABLE public.events ADD note text")
			left(t, pool)
			_, err := daemon.Erase(t.Context(), config, "public.events", table.Erase{By: "region", Key: "b", Blank: []string{"note"}}, d)
			require.ErrorIs(t, err, table.ErrDropping)
			require.ErrorContains(t, err, "public.jan")

			done, err := daemon.Erase(t.Context(), config, "public.events", table.Erase{By: "region", Key: "b"}, d)
			if name == "closed" { // a constraint keeps no row from being deleted
				require.NoError(t, err)
				require.EqualValues(t, 2, done.Rows)
				return
			}
			require.ErrorIs(t, err, table.ErrDropping)
			require.ErrorContains(t, err, "public.jan is detached from public.events, or about to be, and may have rows of that key. Nothing was erased")
			require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM public.feb WHERE region = 'b'"))

			exec(t, pool, "DROP TABLE public.jan")
			done, err = daemon.Erase(t.Context(), config, "public.events", table.Erase{By: "region", Key: "b"}, d)
			require.NoError(t, err)
			require.EqualValues(t, 1, done.Rows)
		})
	}
}
