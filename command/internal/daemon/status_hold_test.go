package daemon_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestStatus_NamesWhatHoldsDeliveryUp: in one line that a person can act on, and
// that which counts first.
func TestStatus_NamesWhatHoldsDeliveryUp(t *testing.T) {
	t.Parallel()
	failure := cursor.Failure{RecordID: "7", Attempts: 3, First: time.Now(), Last: time.Now(), Error: "answered 503\x1b[31m Service Unavailable"}
	waits := failure
	waits.Wait = time.Hour
	unknown := failure
	unknown.Class = cursor.ClassUnknown
	// overdue is a record that should be delivered by now, while these statements of strangers hold their locks.
	overdue := func(strangers ...string) func(*testing.T, *pgxpool.Pool, *cursor.Store) {
		return func(t *testing.T, pool *pgxpool.Pool, _ *cursor.Store) {
			exec(t, pool, "INSERT INTO public.bookings (created_at) VALUES (clock_timestamp() - interval '1 minute')")
			for _, sql := range strangers {
				open(t, "psql", sql)
			}
		}
	}
	for name, test := range map[string]struct {
		hold func(t *testing.T, pool *pgxpool.Pool, s *cursor.Store)
		kind daemon.HoldKind
		want string
	}{
		"nothing": {func(*testing.T, *pgxpool.Pool, *cursor.Store) {}, "", ""},
		"an operator": {func(t *testing.T, _ *pgxpool.Pool, s *cursor.Store) {
			fail(t, s, failure)
			asBob(t, operator.New(s).Pause)
			asBob(t, operator.New(s).Resume)
			_, err := operator.New(s).Pause(t.Context(), "a", cursor.Decision{Actor: "alice", Reason: "their\ndeployment"})
			require.NoError(t, err)
		}, daemon.HoldPaused, "paused by alice since 2\\S+Z: \"their deployment\"; next: `ordered-dispatcher resume a`"},
		"an operator by hand": {func(t *testing.T, pool *pgxpool.Pool, s *cursor.Store) {
			exec(t, pool, "UPDATE od.cursor SET state = 'paused'")
		}, daemon.HoldPaused, "paused, by hand; next: "},
		"a record that halted": {func(t *testing.T, _ *pgxpool.Pool, s *cursor.Store) {
			require.NoError(t, lease(t, s).Halt(t.Context(), unknown))
		}, daemon.HoldHalted, "halted at record 7, which the receiver may have: look there first, 3 attempts since 2\\S+Z: answered 503 .31m Service Unavailable; next: " +
			"`ordered-dispatcher retry a`, or `ordered-dispatcher skip a --reason …`"},
		"a clock that was behind in a pause": {func(t *testing.T, _ *pgxpool.Pool, s *cursor.Store) {
			asBob(t, operator.New(s).Pause)
			require.ErrorIs(t, s.HaltClock(t.Context(), "a", cursor.ClockHalt{Reason: "the clock stepped back"}), cursor.ErrPaused)
		}, daemon.HoldPaused, "paused by bob since 2\\S+Z.*, and `resume` is refused: the clock stepped back"},
		"a restored database": {func(t *testing.T, pool *pgxpool.Pool, s *cursor.Store) {
			exec(t, pool, "UPDATE od.cursor SET system_identifier = 1")
			_, err := s.Acquire(t.Context(), "a")
			require.ErrorIs(t, err, cursor.ErrHalted)
		}, daemon.HoldHalted, "halted: the database is not the one this position belongs to .* retry"},
		"a record that fails": {func(t *testing.T, _ *pgxpool.Pool, s *cursor.Store) {
			fail(t, s, failure)
			lease(t, s)
		}, daemon.HoldFailing, "record 7 fails, 3 attempts since 2\\S+Z: answered 503 .*; the next attempt is due"},
		"a record that fails, and nobody": {func(t *testing.T, _ *pgxpool.Pool, s *cursor.Store) { fail(t, s, failure) },
			daemon.HoldNobody, "record 7 fails, 3 attempts since 2\\S+Z: answered 503 .*; the next attempt is due, and no worker makes it: its last worker was .+, " +
				"and nothing has moved since 2\\S+Z; next: see that `ordered-dispatcher run` runs"},
		"a long back-off": {func(t *testing.T, _ *pgxpool.Pool, s *cursor.Store) { fail(t, s, waits) },
			daemon.HoldFailing, ".*; the next attempt comes in (1h|59m)\\S+, or at once with `ordered-dispatcher retry a`"},
		"a stranger": {func(t *testing.T, _ *pgxpool.Pool, s *cursor.Store) {
			fail(t, s, failure)
			open(t, "psql", "SELECT FROM od.cursor FOR UPDATE")
		}, daemon.HoldLocked, "the cursor's row is locked by pid \\d+ .application \"psql\", user \"\\w+\". since 2\\S+Z: no worker can deliver; " +
			"next: end its transaction, or: SELECT pg_terminate_backend.pid. FROM pg_stat_activity WHERE pid = \\d+ AND xact_start = "},
		"strangers who share the row": {overdue("SELECT FROM od.cursor FOR SHARE", "SELECT FROM od.cursor FOR SHARE"), daemon.HoldNobody, "records wait, and no worker holds the cursor's row: .*; next: see that `ordered-dispatcher run` runs, and read its log. " +
			"If it runs, pid \\d+ .application \"psql\", user \"\\w+\". since 2\\S+Z may have locked the row: it has locked rows of the table, or written to it; " +
			"then end its transaction, or: SELECT pg_terminate_backend.pid. FROM pg_stat_activity WHERE pid = \\d+ AND xact_start = "},
		"a stranger within a savepoint": {overdue("DO $$ BEGIN PERFORM FROM od.cursor FOR UPDATE; BEGIN UPDATE od.cursor SET holder = 'x'; EXCEPTION WHEN OTHERS THEN END; END $$"), daemon.HoldNobody, "records wait, and no worker .* If it runs, pid \\d+ .application \"psql\".* may have locked the row"},
		// An innocent session, as that of VACUUM and CREATE INDEX CONCURRENTLY.
		"an innocent session": {overdue("LOCK TABLE od.cursor IN SHARE UPDATE EXCLUSIVE MODE"), daemon.HoldNobody, "records wait, and no worker holds the cursor's row: .*; next: see that `ordered-dispatcher run` runs, and read its log$"},
		"a stranger who has locked the table": {overdue("LOCK TABLE od.cursor IN EXCLUSIVE MODE"), daemon.HoldLocked, "records wait, and pid \\d+ .application \"psql\", user \"\\w+\". since 2\\S+Z has locked the cursor table: no worker can deliver; " +
			"next: end its transaction, or: SELECT pg_terminate_backend"},
		"the receiver": {func(t *testing.T, pool *pgxpool.Pool, s *cursor.Store) {
			lease(t, s)
			exec(t, pool, "SELECT pg_sleep(5.1)")
		}, daemon.HoldSink, "a call of the receiver has been running since 2\\S+Z, by worker .+; next: see what the receiver does"},
		"a stranger at the dead letters": {func(t *testing.T, pool *pgxpool.Pool, s *cursor.Store) {
			open(t, "psql", "LOCK TABLE od.dead_letter IN EXCLUSIVE MODE")
			l := lease(t, s)
			go func() {
				_ = l.PutAside(t.Context(), cursor.DeadLetter{Position: "at.int:2026-01-01T00:00:00.000000Z/00000000000000000007", Table: "t", RecordID: "7", Failure: failure})
			}()
			exec(t, pool, "SELECT pg_sleep(5.1)")
		}, daemon.HoldLocked, "its worker .+ waits for a lock that pid \\d+ .application \"psql\", user \"\\w+\". since 2\\S+Z has: nothing is written down or delivered; " +
			"next: end its transaction, or: SELECT pg_terminate_backend.pid. FROM pg_stat_activity WHERE pid = \\d+ AND xact_start = "},
		"a network that died in the middle of a command": {func(t *testing.T, pool *pgxpool.Pool, s *cursor.Store) {
			tear(t, cursor.ApplicationLease+"a", "SELECT FROM od.cursor FOR UPDATE")
			exec(t, pool, "SELECT pg_sleep(5.1)")
		}, daemon.HoldLocked, "the cursor's row is locked by pid \\d+ .application \"ordered-dispatcher lease a\".*, which sent half of a command and then nothing for \\ds: .*; " +
			"next: a standby worker ends that session, or you do: SELECT pg_terminate_backend.pid. FROM pg_stat_activity WHERE pid = \\d+ AND xact_start = "},
		"a row of the future": {func(t *testing.T, pool *pgxpool.Pool, _ *cursor.Store) {
			exec(t, pool, "INSERT INTO public.bookings (created_at) VALUES (clock_timestamp() + interval '3 hours')")
		}, daemon.HoldFuture, "the next record is stamped 2\\S+Z, which is (3h0m0s|2h59m\\d+s) ahead of the database's clock: it waits until then; next: if the stamp is wrong, run the UPDATE that `ordered-dispatcher doctor` prints"},
		"nobody": {overdue(), daemon.HoldNobody, "records wait, and no worker holds the cursor's row: no worker ever had it, and nothing has moved since 2\\S+Z; next: see that"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			s := created(t, pool)
			test.hold(t, pool, s)
			all, text, document := status(t, configure(t, pgtest.URL(t), stdoutProcess), "")
			if test.kind == "" {
				require.Nil(t, all[0].Hold)
				require.Nil(t, document["hold"])
				return
			}
			require.NotNil(t, all[0].Hold)
			require.Equal(t, test.kind, all[0].Hold.Kind)
			require.Regexp(t, "(?m)^a: "+test.want, text)
			require.NotContains(t, text, "\x1b")
			require.Equal(t, map[string]any{"kind": string(test.kind), "text": all[0].Hold.Text, "next": all[0].Hold.Next, "sql": all[0].Hold.SQL}, document["hold"])
		})
	}
}

func fail(t testing.TB, s *cursor.Store, f cursor.Failure) {
	t.Helper()
	f.Position = "at.int:2026-01-01T00:00:00.000000Z/00000000000000000007"
	require.NoError(t, lease(t, s).Fail(t.Context(), f))
}

func lease(t testing.TB, s *cursor.Store) *cursor.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), "a")
	require.NoError(t, err)
	t.Cleanup(l.Release)
	return l
}

func asBob(t testing.TB, act func(context.Context, string, cursor.Decision) (operator.Change, error)) {
	t.Helper()
	_, err := act(t.Context(), "a", cursor.Decision{Actor: "bob"})
	require.NoError(t, err)
}

// tear has the server wait for the rest of a command, in a transaction that ran sql.
func tear(t testing.TB, application, sql string) {
	t.Helper()
	conn, err := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{ApplicationName: application}).Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = conn.Conn().Close(context.Background())
		conn.Release()
	})
	exec(t, conn, "BEGIN; "+sql)
	frontend := conn.Conn().PgConn().Frontend()
	frontend.SendParse(&pgproto3.Parse{Query: "SELECT 1"}) // and neither Execute nor Sync
	require.NoError(t, frontend.Flush())
}

// open leaves a transaction open until the test ends.
func open(t testing.TB, application, sql string) {
	t.Helper()
	begin(t, pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{ApplicationName: application}), sql)
}
