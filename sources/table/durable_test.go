package table

import (
	"testing"

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
			require.Equal(t, "delivered", value[string](t, pool, "SELECT coalesce(max(note), 'lost') FROM app.bookings"))
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
	require.Equal(t, 1, value[int](t, pool, "SELECT count(*)::int FROM app.bookings"))
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
	require.NotZero(t, value[int](t, pool, "SELECT count(*) FROM app.bookings"))
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
