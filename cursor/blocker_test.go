package cursor_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// prepares prepares a transaction, and rolls it back at the end.
func prepares(t *testing.T, gid, sql string) {
	t.Helper()
	gid += " " + rand.Text() // it is the cluster's
	conn := pgtest.Connect(t, pgtest.URL(t))
	exec(t, conn, "BEGIN; "+sql+"; PREPARE TRANSACTION '"+gid+"'")
	t.Cleanup(func() {
		_, err := conn.Exec(context.Background(), "ROLLBACK PREPARED '"+gid+"'")
		require.NoError(t, err)
	})
}

// asks has a session wait for a lock until the test ends.
func asks(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	conn, err := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{ApplicationName: "in line"}).Acquire(t.Context())
	require.NoError(t, err)
	go func() {
		defer close(ended)
		_, _ = conn.Exec(ctx, sql)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		conn.Release()
	})
	require.Eventually(t, func() bool {
		return pgtest.Value[bool](t, pool, "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)", conn.Conn().PgConn().PID())
	}, time.Minute, time.Millisecond)
}

// tallies has each dead letter counted in one row.
func tallies(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	exec(t, pool, `CREATE TABLE dispatch.tally (n int);
		INSERT INTO dispatch.tally VALUES (0);
		CREATE FUNCTION dispatch.tally() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE dispatch.tally SET n = n + 1; RETURN NEW; END $$;
		CREATE TRIGGER tally BEFORE INSERT ON dispatch.dead_letter FOR EACH ROW EXECUTE FUNCTION dispatch.tally()`)
}

// TestBlockers_AreInTheWay: of prepared transactions any one was named that had a lock of the same table, and none that had locked
// a row. One that is only in line for the lock was said to have it.
func TestBlockers_AreInTheWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(t *testing.T, pool *pgxpool.Pool)
		want   string
	}{
		"a prepared transaction, and an older one with a harmless lock": {func(t *testing.T, _ *pgxpool.Pool) {
			prepares(t, "harmless", "LOCK TABLE dispatch.dead_letter IN ROW SHARE MODE")
			prepares(t, "in the way", "LOCK TABLE dispatch.dead_letter IN SHARE MODE")
		}, `^a lock that the prepared transaction "in the way .* has$`},
		"a prepared transaction that has locked a row": {func(t *testing.T, pool *pgxpool.Pool) {
			tallies(t, pool)
			prepares(t, "in the way", "UPDATE dispatch.tally SET n = 7")
		}, `^a lock that the prepared transaction "in the way .* has$`},
		"who is first in line": {func(t *testing.T, pool *pgxpool.Pool) {
			lockedBy(t, "SELECT FROM dispatch.dead_letter")
			asks(t, pool, "BEGIN; LOCK TABLE dispatch.dead_letter")
		}, `^a lock that pid \d+ .application "in line".* waits for, too, and comes first$`},
		"who has the row that another one in line waits for": {func(t *testing.T, pool *pgxpool.Pool) {
			tallies(t, pool)
			lockedBy(t, "UPDATE dispatch.tally SET n = 7")
			asks(t, pool, "UPDATE dispatch.tally SET n = 8")
		}, `^a lock that pid \d+ .application "psql".* has$`},
		"a prepared transaction that has the row that another one in line waits for": {func(t *testing.T, pool *pgxpool.Pool) {
			tallies(t, pool)
			prepares(t, "in the way", "UPDATE dispatch.tally SET n = 7")
			asks(t, pool, "UPDATE dispatch.tally SET n = 8")
		}, `^a lock that the prepared transaction "in the way .* has$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			s := created(t, pool, "a")
			lease := acquire(t, s)
			c.before(t, pool)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = lease.PutAside(ctx, letter())
			}()
			defer func() {
				cancel()
				<-ended
			}()
			var all []cursor.Locker
			require.Eventually(t, func() bool {
				var err error
				all, err = s.Blockers(t.Context(), "sms")
				require.NoError(t, err)
				return len(all) > 0
			}, time.Minute, time.Millisecond)
			require.Len(t, all, 1)
			require.Regexp(t, c.want, all[0].Lock())
		})
	}
}

// TestRead_NamesTheSessionThatIsInItsWay: the oldest lock of any table of the cursors was named. Of a session that waits for a lock
// itself, and of one that has locked an index, nothing was said.
func TestRead_NamesTheSessionThatIsInItsWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(t *testing.T, pool *pgxpool.Pool)
		want   string
	}{
		"another table is locked for longer": {func(t *testing.T, _ *pgxpool.Pool) {
			lockedBy(t, "LOCK TABLE dispatch.dead_letter")
			prepares(t, "in the way", "LOCK TABLE dispatch.cursor")
		}, `: the prepared transaction "in the way .* has locked a table of the cursors; `},
		"an index": {func(t *testing.T, _ *pgxpool.Pool) { lockedBy(t, "REINDEX TABLE dispatch.cursor") },
			`: pid \d+ .application "psql".* has locked a table of the cursors; `},
		"who is first in line": {func(t *testing.T, pool *pgxpool.Pool) {
			lockedBy(t, "SELECT FROM dispatch.cursor")
			asks(t, pool, "BEGIN; LOCK TABLE dispatch.cursor")
		}, `: pid \d+ .application "in line".* waits for a lock of all of a table of the cursors, and who reads that waits after it; `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			created(t, pool, "a")
			s, err := cursor.NewStore(pool, cursor.Config{Schema: schema, Worker: "b", Timeout: time.Second})
			require.NoError(t, err)
			c.before(t, pool)
			_, err = s.List(t.Context())
			require.ErrorIs(t, err, cursor.ErrNoAnswer)
			require.Regexp(t, c.want, err.Error())
		})
	}
}

// TestDecision_NamesTheSessionThatHasLockedTheTable: it said that who it is could not be found, and then who it is.
func TestDecision_NamesTheSessionThatHasLockedTheTable(t *testing.T) {
	t.Parallel()
	pool := database(t)
	created(t, pool, "a")
	s, err := cursor.NewStore(pool, cursor.Config{Schema: schema, Worker: "b", Timeout: time.Second})
	require.NoError(t, err)
	lockedBy(t, "LOCK TABLE dispatch.cursor")
	d := alice
	d.Timeout = 300 * time.Millisecond
	_, err = operator.New(s).Pause(t.Context(), "sms", d)
	require.ErrorIs(t, err, cursor.ErrLocked)
	require.Regexp(t, `: the cursor's row is locked, and was not free within 300ms: pid \d+ .application "psql".* has locked a table of the cursors; end its transaction`, err.Error())
}
