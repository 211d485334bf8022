package processor_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// TestRestored_OfAPausedProcessLooksForWhatWasStampedSince: a database is restored on a server whose clock is behind until
// before the process is resumed.
func TestRestored_OfAPausedProcessLooksForWhatWasStampedSince(t *testing.T) {
	t.Parallel()
	for name, restore := range map[string]string{
		"recovered up to a point in time": `UPDATE dispatch.cursor SET timeline = 7`,
		"a snapshot is put back":          `NULL`,
		"a copy in another cluster":       `UPDATE dispatch.cursor SET system_identifier = 7, horizon = '999999999'`,
		"a copy in another database":      `UPDATE dispatch.cursor SET database_oid = 7, horizon = '999999999'`,
		"loaded from a dump": `ALTER TABLE dispatch.cursor DROP CONSTRAINT cursor_pkey;
			ALTER TABLE dispatch.cursor ADD CONSTRAINT cursor_pkey PRIMARY KEY (process_name);
			UPDATE dispatch.bookings SET customer = customer || ' loaded'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, sink := databaseOn(t, pgtest.URL(t)), &receiver{}
			resume := restoredWhilePaused(t, pool, sink, restore)
			exec(t, pool, `INSERT INTO dispatch.bookings (created_at, customer) VALUES (clock_timestamp() - interval '1 h', 'late')`)
			resume()
			eventually(t, "it halts, or goes on", func() bool { return row(t, pool).State == cursor.Halted || len(sink.attemptsOf("4")) == 1 })
			require.Equal(t, cursor.Halted, row(t, pool).State)
			require.Contains(t, row(t, pool).Failure.Error, "row 3 of dispatch.bookings")
			require.Empty(t, sink.attemptsOf("4"))
		})
	}
}

// A snapshot is put back, and producers begin before an operator says so.
func TestRestored_LooksForWhatWasStampedBeforeItWasSaid(t *testing.T) {
	t.Parallel()
	pool, sink := databaseOn(t, pgtest.URL(t)), &receiver{}
	resume := restoredWhilePaused(t, pool, sink, `INSERT INTO dispatch.bookings (created_at, customer) VALUES (clock_timestamp() - interval '1 h', 'late')`)
	resume()
	eventually(t, "it halts, or goes on", func() bool { return row(t, pool).State == cursor.Halted || len(sink.attemptsOf("4")) == 1 })
	require.Equal(t, cursor.Halted, row(t, pool).State)
	require.Contains(t, row(t, pool).Failure.Error, "row 3 of dispatch.bookings")
}

// restoredWhilePaused has two rows delivered, puts a database back, and says so. What it returns has the process go on, with one
// row more.
func restoredWhilePaused(t *testing.T, pool *pgxpool.Pool, sink *receiver, restore string) (resume func()) {
	t.Helper()
	stop := start(t, process(t, pool, processor.Each(sink), nil))
	insert(t, pool, 2)
	eventually(t, "two are delivered", func() bool { return row(t, pool).Sequence == 2 })
	require.NoError(t, stop())
	decision := cursor.Decision{Actor: "me", Reason: "restored to 04:00"}
	s := store(t, pool)
	_, err := s.Pause(t.Context(), "sms", decision)
	require.NoError(t, err)
	exec(t, pool, `DO $$ BEGIN
		SET LOCAL session_replication_role = replica;
		`+restore+`;
	END $$`)
	_, err = s.Restored(t.Context(), "sms", decision)
	require.NoError(t, err)
	return func() {
		start(t, process(t, pool, processor.Each(sink), nil))
		_, err = s.Resume(t.Context(), "sms", decision)
		require.NoError(t, err)
		insert(t, pool, 1)
	}
}

// What was there when the tables were loaded is not new, whatever its transactions are.
func TestRestored_OfTablesThatWereLoadedHaltsOverNothingOfThem(t *testing.T) {
	t.Parallel()
	pool, sink := databaseOn(t, pgtest.URL(t)), &receiver{}
	exec(t, pool, `ALTER TABLE dispatch.bookings ALTER id DROP IDENTITY; CREATE SEQUENCE dispatch.down INCREMENT -1; ALTER TABLE dispatch.bookings ALTER id SET DEFAULT nextval('dispatch.down')`)
	resume := restoredWhilePaused(t, pool, sink, `ALTER TABLE dispatch.cursor DROP CONSTRAINT cursor_pkey;
		ALTER TABLE dispatch.cursor ADD CONSTRAINT cursor_pkey PRIMARY KEY (process_name);
		UPDATE dispatch.bookings SET customer = customer || ' loaded'`)
	resume()
	eventually(t, "it goes on, or halts", func() bool { return row(t, pool).State == cursor.Halted || len(sink.attemptsOf("-3")) == 1 })
	require.Equal(t, cursor.Running, row(t, pool).State)
	require.Contains(t, actions(t, store(t, pool)), "settled")
}

// A process that runs, and has nothing to deliver, looks, too.
func TestRestored_OfAnIdleProcessLooksAlthoughNothingFollows(t *testing.T) {
	t.Parallel()
	pool, sink, log := databaseOn(t, pgtest.URL(t)), &receiver{}, &logbook{}
	insert(t, pool, 1)
	start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Logger = log.logger() }))
	eventually(t, "one is delivered, and it has looked for a promotion", func() bool { return row(t, pool).Sequence == 1 && log.has("caught up") })
	exec(t, pool, `INSERT INTO dispatch.bookings (created_at, customer) VALUES (clock_timestamp() - interval '1 h', 'late')`)
	_, err := store(t, pool).Restored(t.Context(), "sms", cursor.Decision{Actor: "me", Reason: "restored to 04:00"})
	require.NoError(t, err)
	eventually(t, "it halts", func() bool { return row(t, pool).State == cursor.Halted })
	require.Contains(t, row(t, pool).Failure.Error, "row 2 of dispatch.bookings")
}
