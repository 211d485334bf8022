package table

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
)

// questions are all calls of a source that ask the database, with what their errors
// say that was being done.
var questions = []struct {
	doing string
	call  func(context.Context, *Source, cursor.Position) error
}{
	{"inspect table app.bookings", func(ctx context.Context, s *Source, _ cursor.Position) error { _, err := s.Inspect(ctx); return err }},
	{"inspect the rows of", func(ctx context.Context, s *Source, at cursor.Position) error {
		_, err := s.InspectRows(ctx, at)
		return err
	}},
	{"find out what reading app.bookings needs", func(ctx context.Context, s *Source, _ cursor.Position) error { _, err := s.Needs(ctx); return err }},
	{"read ", func(ctx context.Context, s *Source, at cursor.Position) error {
		_, err := s.Read(ctx, at, 10)
		return err
	}},
	{"find the end of", func(ctx context.Context, s *Source, _ cursor.Position) error { _, err := s.End(ctx); return err }},
	{"count the lag of", func(ctx context.Context, s *Source, at cursor.Position) error { _, err := s.Lag(ctx, at); return err }},
	{"count the lag of", func(ctx context.Context, s *Source, _ cursor.Position) error { _, _, err := s.Count(ctx); return err }},
	{"list the writers of", func(ctx context.Context, s *Source, _ cursor.Position) error { _, err := s.Writers(ctx); return err }},
	{"ask for the fence of", func(ctx context.Context, s *Source, _ cursor.Position) error { _, err := s.Fence(ctx); return err }},
	{"look at", func(ctx context.Context, s *Source, at cursor.Position) error {
		_, err := s.Look(ctx, at, 10)
		return err
	}},
	{"find the last rows of", func(ctx context.Context, s *Source, _ cursor.Position) error { _, err := s.Tail(ctx, 10); return err }},
	{"list the records of", func(ctx context.Context, s *Source, at cursor.Position) error {
		_, err := s.Between(ctx, "", at, 10)
		return err
	}},
	{"step back in", func(ctx context.Context, s *Source, at cursor.Position) error {
		_, err := s.Back(ctx, at, 1)
		return err
	}},
	{"find a record of", func(ctx context.Context, s *Source, _ cursor.Position) error {
		_, err := s.Before(ctx, "1")
		return err
	}},
	{"find a time in", func(ctx context.Context, s *Source, _ cursor.Position) error {
		_, err := s.At(ctx, time.Now())
		return err
	}},
}

// warm is a source that has read once, so that it knows its table, and the position
// of the record that it read. From then on it waits for a connection no longer than
// this, and for an answer no longer than 1 s.
func warm(t *testing.T, pool *pgxpool.Pool, connection time.Duration) (*Source, cursor.Position) {
	t.Helper()
	s := bookings(t, pool, Config{})
	at := readSome(t, s, "", 1)[0].Position
	s.waits.ask = answer.Wait{Connection: connection, Answer: time.Second}
	s.waits.read = s.waits.ask
	return s, at
}

// within calls f with a context that ends far later than any wait of warm.
func within(t *testing.T, f func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return f(ctx)
}

func TestSource_NoQuestionToASilentDatabaseWaitsForEver(t *testing.T) {
	t.Parallel()
	for _, q := range questions {
		t.Run(q.doing, func(t *testing.T) {
			t.Parallel()
			database(t, bookingsSQL+`INSERT INTO app.bookings DEFAULT VALUES`)
			address, l := pgtest.Proxy(t, pgtest.URL(t))
			pool := pgtest.Pool(t, address, pgtest.PoolConfig{MaxConns: 1})
			t.Cleanup(l.Close) // first: what it holds up keeps the pool from closing
			s, at := warm(t, pool, patience)
			silent := l.Hold(link.Server, func(data []byte) bool { return !bytes.Contains(data, []byte("-- ping")) })
			err := within(t, func(ctx context.Context) error { return q.call(ctx, s, at) })
			waittest.Receive(t, silent, "the question is on its way")
			require.ErrorIs(t, err, cursor.ErrNoAnswer)
			require.ErrorContains(t, err, "no answer from the database within 1s")
			require.ErrorContains(t, err, q.doing)
		})
	}
}

func TestSource_NoQuestionWaitsForAConnectionForEver(t *testing.T) {
	t.Parallel()
	database(t, bookingsSQL+`INSERT INTO app.bookings DEFAULT VALUES`)
	small := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{MaxConns: 1})
	s, at := warm(t, small, time.Second)
	conn, err := small.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(conn.Release)
	for _, q := range questions {
		err := within(t, func(ctx context.Context) error { return q.call(ctx, s, at) })
		require.ErrorIs(t, err, cursor.ErrNoAnswer)
		require.ErrorContains(t, err, "no connection to the database, of a pool of 1, within 1s")
		require.ErrorContains(t, err, q.doing)
	}
}
