package processor_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// A process that has nothing to deliver looks, and looks again, and takes no
// transaction id for it.
func TestRun_IdleTakesNoTransactionID(t *testing.T) {
	t.Parallel()
	// A server of its own: transaction ids are counted for all of its databases.
	pool := databaseOn(t, pgtest.Server(t, map[string]string{"autovacuum": "off"}).URL())
	insert(t, pool, 1)
	reads := make(chan cursor.Position)
	start(t, process(t, pool, processor.Each(&receiver{}), func(c *processor.Config) {
		c.Poll = 5 * time.Millisecond
		c.Source = watched{source(t, pool), reads}
	}))
	eventually(t, "delivered", func() bool { return row(t, pool).Sequence == 1 })
	look := func(times int) {
		for range times {
			<-reads
		}
	}
	look(2) // the first may still be under the lease
	before := nextXID(t, pool)
	look(20)
	require.Equal(t, before+1, nextXID(t, pool), "only this test itself took an id")
}

// nextXID takes a transaction id and returns it.
func nextXID(t testing.TB, pool *pgxpool.Pool) int64 {
	t.Helper()
	return pgtest.Value[int64](t, pool, `SELECT pg_current_xact_id()::text::bigint`)
}
