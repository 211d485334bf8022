package table

import (
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// lazy is a server that writes its log to the disk only when a commit asks for it, and a session whose commits do not.
func lazy(t *testing.T) (server *pglocal.Server, pool *pgxpool.Pool, producer *session) {
	t.Helper()
	server = pgtest.Server(t, map[string]string{"wal_writer_delay": "10s", "autovacuum": "off"})
	pool = pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	exec(t, pool, bookingsSQL)
	producer = newSession(t, pool)
	producer.do("SET synchronous_commit = off")
	return server, pool, producer
}

// crash has the server lose what is not on its disk.
func crash(t *testing.T, server *pglocal.Server, pool *pgxpool.Pool) {
	t.Helper()
	require.NoError(t, server.StopImmediate(t.Context()))
	require.NoError(t, server.Restart(t.Context()))
	pool.Reset()
}

// crashAlone has the server recover as after a crash, with its postmaster still there: one of its sessions was killed. It skips
// servers before 15, which do not show it.
func crashAlone(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	if pgtest.Value[int](t, pool, "SELECT current_setting('server_version_num')::int") < 150000 {
		t.Skip("PostgreSQL 14 does not say that it has recovered")
	}
	victim, other := newSession(t, pool), newSession(t, pool)
	require.NoError(t, syscall.Kill(int(victim.PgConn().PID()), syscall.SIGKILL))
	// Once the server ends the other sessions, it lets none in before it has recovered.
	require.Eventually(t, func() bool { return other.Ping(t.Context()) != nil }, patience, time.Millisecond)
	pool.Reset()
	await(t, "the server to have recovered", func() bool { return pool.Ping(t.Context()) == nil })
}

// A row that a receiver has, and that a crash takes back, leaves its id to another row, which no read would return.
func TestRead_WhatIsReturnedOutlivesACrash(t *testing.T) {
	t.Parallel()
	for _, order := range []Order{CreatedAt, ID} {
		t.Run(string(order), func(t *testing.T) {
			t.Parallel()
			server, pool, producer := lazy(t)
			s := bookings(t, pool, Config{Order: order})
			require.Empty(t, read(t, s, "", 10).Records)
			producer.do("INSERT INTO app.bookings (note) VALUES ('delivered')")
			records := readSome(t, s, "", 1)
			crash(t, server, pool)
			require.Equal(t, []string{"delivered"}, notes(t, records))
			require.Equal(t, "delivered", pgtest.Value[string](t, pool, "SELECT coalesce(max(note), 'lost') FROM app.bookings"))
		})
	}
}

// It needs no right beyond those of a read.
func TestRead_OfARoleThatMayOnlyReadOutlivesACrash(t *testing.T) {
	t.Parallel()
	server, pool, producer := lazy(t)
	s := bookings(t, readerPool(t, pool, "another"), Config{})
	producer.do("INSERT INTO app.bookings (note) VALUES ('delivered')")
	require.Equal(t, []string{"delivered"}, notes(t, readSome(t, s, "", 1)))
	crash(t, server, pool)
	require.Equal(t, 1, pgtest.Value[int](t, pool, "SELECT count(*)::int FROM app.bookings"))
}

// The same of rows that a condition leaves out: the cursor passes them.
func TestRead_WhatIsPassedOutlivesACrash(t *testing.T) {
	t.Parallel()
	server, pool, producer := lazy(t)
	s := bookings(t, pool, Config{Order: ID, Where: "note <> 'left out'"})
	producer.do("INSERT INTO app.bookings (note) SELECT 'left out' FROM generate_series(1, $1::int)", 2*passRows)
	var passed cursor.Position
	await(t, "rows to be passed over", func() bool {
		passed = read(t, s, "", 10).Passed
		return passed != ""
	})
	crash(t, server, pool)
	require.NotZero(t, pgtest.Value[int](t, pool, "SELECT count(*) FROM app.bookings"))
}

// The rows that are left out are behind the reader, though the cursor has not passed them.
func TestRead_ASessionThatIsKilledTakesBackWhatWasLeftOut(t *testing.T) {
	t.Parallel()
	_, pool, producer := lazy(t)
	s := bookings(t, pool, Config{Order: ID, Where: "note <> 'left out'"})
	require.Empty(t, read(t, s, "", 10).Records)
	producer.do("INSERT INTO app.bookings (note) SELECT 'left out' FROM generate_series(1, 5)")
	await(t, "the rows to be read", func() bool {
		require.Empty(t, read(t, s, "", 10).Records)
		return s.stretch.to != ""
	})
	crashAlone(t, pool)
	exec(t, pool, "INSERT INTO app.bookings (note) SELECT 'taken' FROM generate_series(1, 6)")
	require.Equal(t, []string{"1", "2", "3", "4", "5", "6"}, ids(readSome(t, s, "", 6)))
}

// A transaction that was open has taken ids, and the server has forgotten it: all producers wait for the disk.
func TestRead_ASessionThatIsKilledEndsTheBoundsOfWriters(t *testing.T) {
	t.Parallel()
	_, pool, _ := lazy(t)
	s := bookings(t, pool, Config{Order: ID})
	open := begun(t, pool, "")
	open.do("INSERT INTO app.bookings (note) SELECT 'taken back' FROM generate_series(1, 40)")
	require.Empty(t, read(t, s, "", 100).Records)
	crashAlone(t, pool)
	early := begun(t, pool, "")
	early.do("INSERT INTO app.bookings (note) VALUES ('early')")
	exec(t, pool, "INSERT INTO app.bookings (note) SELECT 'late' FROM generate_series(1, 60)")
	require.Empty(t, read(t, s, "", 100).Records, "id 1 may still come")
	early.do("COMMIT")
	require.Equal(t, "early", notes(t, readSome(t, s, "", 61))[0])
}

// The page was read before the crash, and goes out after it.
func TestRead_APageOfBeforeACrashIsNotReturned(t *testing.T) {
	t.Parallel()
	_, pool, producer := lazy(t)
	s := bookings(t, pool, Config{Order: ID})
	var r *reading
	await(t, "a row to be read that is not on the disk", func() bool { // the server writes there by itself, too
		producer.do("INSERT INTO app.bookings (note) VALUES ('taken back')")
		s.mu.Lock()
		defer s.mu.Unlock()
		l, err := s.current(t.Context())
		require.NoError(t, err)
		r, err = s.readOnce(t.Context(), l, "", 1000)
		require.NoError(t, err)
		return len(r.page.Records) > 0 && !r.durable
	})
	crashAlone(t, pool)
	require.ErrorIs(t, s.keep(t.Context(), s.layout, r), errAnotherRun)
}

func TestEnd_OutlivesACrash(t *testing.T) {
	t.Parallel()
	server, pool, producer := lazy(t)
	s := bookings(t, pool, Config{Order: ID})
	producer.do("INSERT INTO app.bookings (note) VALUES ('before the end')")
	end := s.mustEnd(t)
	crash(t, server, pool)
	exec(t, pool, "INSERT INTO app.bookings (note) VALUES ('after the end')")
	require.Equal(t, []string{"after the end"}, notes(t, readSome(t, s, end, 1)))
}
