package processor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// TestWrite_NamesTheSessionThatItWaitsFor: the log named no one, and 30 s later there was
// "no answer from the database".
func TestWrite_NamesTheSessionThatItWaitsFor(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	stranger := pgtest.Begin(t, pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{ApplicationName: "psql"}), "LOCK TABLE dispatch.dead_letter IN EXCLUSIVE MODE")
	log := &logbook{}
	sink := &receiver{answer: failing("1", 1, processor.Permanent(errRefused))}
	stop := start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { deadLetters(c); c.Logger = log.logger() }))

	eventually(t, "named", func() bool { return log.has("nothing more is delivered until a lock is free") })
	require.True(t, log.has(`waits_for="a lock that pid `))
	require.True(t, log.has("pg_terminate_backend("))
	exec(t, pool, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'ordered-dispatcher lease%'")
	eventually(t, "in the failure's text", func() bool { return log.has("it waited for a lock that pid ") })
	require.NoError(t, stranger.Rollback(t.Context()))
	eventually(t, "put aside", func() bool { return row(t, pool).Sequence == 2 })
	require.NoError(t, stop())
	require.Equal(t, []string{"1/1"}, letters(t, pool))
	require.Len(t, sink.attemptsOf("1"), 1, "it was refused once, and is not sent again")
}
