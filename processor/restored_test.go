package processor_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// loaded makes tables look as if they were loaded from a dump: the horizon is that of the transactions of before.
const loaded = `UPDATE dispatch.cursor SET horizon = '3'`

// TestRestored_OfAPausedProcessLooksForWhatWasStampedSince: a database is restored on a server whose clock is behind until
// before the process is resumed.
func TestRestored_OfAPausedProcessLooksForWhatWasStampedSince(t *testing.T) {
	t.Parallel()
	for name, restore := range map[string]string{
		"recovered up to a point in time":  `UPDATE dispatch.cursor SET timeline = 7`,
		"a snapshot is put back":           `NULL`,
		"a copy in another cluster":        `UPDATE dispatch.cursor SET system_identifier = 7, horizon = '999999999'`,
		"a copy in a cluster of its image": `UPDATE dispatch.cursor SET horizon = '999999999'`,
		"a copy in another database":       `UPDATE dispatch.cursor SET database_oid = 7, horizon = '999999999'`,
		"loaded from a dump":               loaded,
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

// A process halts over rows that its clock has stamped before its cursor. Before anybody does what its error says, its tables are
// copied: their transactions do not show the rows any more.
func TestRestored_OfTablesThatWereCopiedForgetsNoLookThatIsOwed(t *testing.T) {
	t.Parallel()
	for name, copied := range map[string]string{
		"to another cluster":    `UPDATE dispatch.cursor SET system_identifier = 7`,
		"loaded from a dump":    loaded,
		"and said to be before": `UPDATE dispatch.cursor SET system_identifier = 7, state = 'running', failed_class = NULL, failed_error = NULL, failed_position = NULL, timeline = ` + strconv.Itoa(cursor.RestoredTimeline),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, sink := databaseOn(t, pgtest.URL(t)), &receiver{}
			resume := restoredWhilePaused(t, pool, sink, `NULL`)
			exec(t, pool, `INSERT INTO dispatch.bookings (created_at, customer) VALUES (clock_timestamp() - interval '1 h', 'late')`)
			resume()
			eventually(t, "it halts", func() bool { return row(t, pool).State == cursor.Halted })
			replicate(t, pool, copied)
			decide(t, pool, (*operator.Operator).Restored)
			eventually(t, "it halts again, or goes on", func() bool { return row(t, pool).State == cursor.Halted || len(sink.attemptsOf("4")) == 1 })
			require.Equal(t, cursor.Halted, row(t, pool).State)
			require.Contains(t, row(t, pool).Failure.Error, "this is the server that the worker delivered from, or a copy of its tables")
		})
	}
}

// What was not delivered at the time of the backup may be passed over once it is restored, where the receivers have it. That is
// no row that a clock has stamped before the cursor.
func TestSeek_AfterARestorePassesOverWhatThereIs(t *testing.T) {
	t.Parallel()
	pool, sink := databaseOn(t, pgtest.URL(t)), &receiver{}
	resume := restoredWhilePaused(t, pool, sink, `INSERT INTO dispatch.bookings (customer) VALUES ('delivered after the backup')`)
	end := seekToNow(t, pool)
	decide(t, pool, (*operator.Operator).Restored)
	resume()
	eventually(t, "it goes on, or halts", func() bool { return row(t, pool).State == cursor.Halted || row(t, pool).Position > end })
	require.Equal(t, cursor.Running, row(t, pool).State)
	require.Empty(t, sink.attemptsOf("3"))
}

// A clock that is behind may stamp more rows before the place that was sought.
func TestSeek_AfterARestoreLooksForWhatIsStampedThen(t *testing.T) {
	t.Parallel()
	pool, sink := databaseOn(t, pgtest.URL(t)), &receiver{}
	resume := restoredWhilePaused(t, pool, sink, `NULL`)
	end := seekToNow(t, pool)
	exec(t, pool, `INSERT INTO dispatch.bookings (created_at, customer) SELECT max(created_at) + interval '1 microsecond', 'late' FROM dispatch.bookings`)
	resume()
	eventually(t, "it halts, or goes on", func() bool { return row(t, pool).State == cursor.Halted || row(t, pool).Position > end })
	require.Equal(t, cursor.Halted, row(t, pool).State)
	require.Contains(t, row(t, pool).Failure.Error, "row 3 of dispatch.bookings")
}

// seekToNow passes over all that is stamped by now.
func seekToNow(t *testing.T, pool *pgxpool.Pool) (end cursor.Position) {
	t.Helper()
	end = cursor.Position(fmt.Sprintf("at.int:%s/00000000000000000099", time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")))
	seek(t, pool, end)
	require.Equal(t, end, row(t, pool).Position)
	return end
}

// A process is halted over a record in the backup. What is stamped before that record after the restore is not passed over with it.
func TestSkip_AfterARestorePassesOverOneRecord(t *testing.T) {
	t.Parallel()
	pool, sink := databaseOn(t, pgtest.URL(t)), &receiver{answer: func(_ context.Context, d processor.Delivery) error {
		if d.ID == "3" {
			return processor.Permanent(errors.New("422"))
		}
		return nil
	}}
	start(t, process(t, pool, processor.Each(sink), nil))
	insert(t, pool, 3)
	eventually(t, "it halts over a record", func() bool { return row(t, pool).State == cursor.Halted })
	decide(t, pool, (*operator.Operator).Restored)
	exec(t, pool, `INSERT INTO dispatch.bookings (created_at, customer) SELECT created_at + interval '1 microsecond', 'late' FROM dispatch.bookings WHERE id = 2`)
	decide(t, pool, (*operator.Operator).Skip)
	insert(t, pool, 1)
	eventually(t, "it halts over the clock, or goes on", func() bool {
		f := row(t, pool).Failure
		return f != nil && f.Class == cursor.ClassClock || len(sink.attemptsOf("5")) == 1
	})
	require.Equal(t, cursor.Halted, row(t, pool).State)
	require.Contains(t, row(t, pool).Failure.Error, "row 4 of dispatch.bookings")
}

// Maintenance of the tables is no copy of them: after it the look finds what it found before.
func TestRetry_AfterMaintenanceOfTheTablesPassesOverNothing(t *testing.T) {
	t.Parallel()
	for _, maintenance := range []string{
		`REINDEX TABLE CONCURRENTLY dispatch.cursor`, `VACUUM (FULL, FREEZE) dispatch.cursor`, `ALTER INDEX dispatch.cursor_pkey RENAME TO key`,
		`ALTER TABLE dispatch.cursor ADD remark text, ALTER epoch SET STATISTICS 100`, `GRANT SELECT ON dispatch.cursor TO PUBLIC`,
	} {
		t.Run(maintenance, func(t *testing.T) {
			t.Parallel()
			pool, sink := databaseOn(t, pgtest.URL(t)), &receiver{}
			resume := changedWhilePaused(t, pool, sink, `UPDATE dispatch.cursor SET timeline = 7`)
			exec(t, pool, maintenance)
			exec(t, pool, `INSERT INTO dispatch.bookings (created_at, customer) VALUES (clock_timestamp() - interval '1 h', 'late')`)
			resume()
			for range 2 {
				eventually(t, "it halts, or goes on", func() bool { return row(t, pool).State == cursor.Halted || len(sink.attemptsOf("4")) == 1 })
				require.Equal(t, cursor.Halted, row(t, pool).State)
				require.Contains(t, row(t, pool).Failure.Error, "row 3 of dispatch.bookings")
				retry(t, pool)
			}
		})
	}
}

// A table that is rewritten between the last delivery and the look has one transaction for all rows. Where the position is no
// row's any more, all of them look new: the error proposes no seek that would send them again.
func TestRestored_OfATableThatWasRewrittenProposesNoSeekBack(t *testing.T) {
	t.Parallel()
	pool, sink := databaseOn(t, pgtest.URL(t)), &receiver{}
	resume := restoredWhilePaused(t, pool, sink, `DELETE FROM dispatch.bookings WHERE id = 2; ALTER TABLE dispatch.bookings ALTER customer TYPE varchar USING customer || ''`)
	resume()
	eventually(t, "it halts", func() bool { return row(t, pool).State == cursor.Halted })
	reason := row(t, pool).Failure.Error
	require.Contains(t, reason, "before the cursor: the table was made since, or rewritten, as ALTER TABLE does. Look in the table for rows that were inserted while the clock was behind")
	require.NotContains(t, reason, "row 1")
	at := cursor.Position(between(reason, "--to-position ", " -c"))
	require.Equal(t, row(t, pool).Position, at)
	seek(t, pool, at)
	eventually(t, "it goes on", func() bool { return len(sink.attemptsOf("3")) == 1 })
	require.Len(t, sink.attemptsOf("1"), 1)
}

// changedWhilePaused has two rows delivered, and changes the database while the process is paused. What it returns has the process go
// on, with one row more.
func changedWhilePaused(t *testing.T, pool *pgxpool.Pool, sink *receiver, change string) (resume func()) {
	t.Helper()
	stop := start(t, process(t, pool, processor.Each(sink), nil))
	insert(t, pool, 2)
	eventually(t, "two are delivered", func() bool { return row(t, pool).Sequence == 2 })
	require.NoError(t, stop())
	decide(t, pool, (*operator.Operator).Pause)
	replicate(t, pool, change)
	return func() {
		start(t, process(t, pool, processor.Each(sink), nil))
		decide(t, pool, (*operator.Operator).Resume)
		insert(t, pool, 1)
	}
}

// restoredWhilePaused is changedWhilePaused by a restore that is said.
func restoredWhilePaused(t *testing.T, pool *pgxpool.Pool, sink *receiver, restore string) (resume func()) {
	t.Helper()
	resume = changedWhilePaused(t, pool, sink, restore)
	decide(t, pool, (*operator.Operator).Restored)
	return resume
}

// replicate executes SQL without the triggers of the tables.
func replicate(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	exec(t, pool, `DO $$ BEGIN
		SET LOCAL session_replication_role = replica;
		`+sql+`;
	END $$`)
}

// What was there when the tables were loaded is not new, whatever its transactions are.
func TestRestored_OfTablesThatWereLoadedHaltsOverNothingOfThem(t *testing.T) {
	t.Parallel()
	pool, sink := databaseOn(t, pgtest.URL(t)), &receiver{}
	exec(t, pool, `ALTER TABLE dispatch.bookings ALTER id DROP IDENTITY; CREATE SEQUENCE dispatch.down INCREMENT -1; ALTER TABLE dispatch.bookings ALTER id SET DEFAULT nextval('dispatch.down')`)
	resume := restoredWhilePaused(t, pool, sink, loaded)
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
	decide(t, pool, (*operator.Operator).Restored)
	eventually(t, "it halts", func() bool { return row(t, pool).State == cursor.Halted })
	require.Contains(t, row(t, pool).Failure.Error, "row 2 of dispatch.bookings")
}
