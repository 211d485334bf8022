package sql_test

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
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// source is a process that delivers from a server of its own.
type source struct {
	pool   *pgxpool.Pool
	store  *cursor.Store
	sink   *sql.Remote
	remote *remote
	lose   bool // the answers of the sink
}

func newSource(t *testing.T) *source {
	t.Helper()
	return newSourceTo(t, newRemote(t))
}

func newSourceTo(t *testing.T, r *remote) *source {
	t.Helper()
	address := pgtest.Server(t, nil).URL()
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: address})
	require.NoError(t, err)
	s := &source{pool: pgtest.Pool(t, address, pgtest.PoolConfig{}), remote: r, sink: r.sink(t, nil)}
	pgtest.Exec(t, s.pool, `CREATE TABLE public.bookings (
		id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), type text NOT NULL);
		CREATE INDEX ON public.bookings (created_at, id)`)
	s.store, err = cursor.NewStore(s.pool, cursor.Config{})
	require.NoError(t, err)
	return s
}

// insert makes records of these types.
func (s *source) insert(t *testing.T, types ...string) {
	t.Helper()
	for _, typ := range types {
		pgtest.Exec(t, s.pool, "INSERT INTO public.bookings (type) VALUES ($1)", typ)
	}
}

// DeliverBatch delivers, and may have the worker believe that it has not.
func (s *source) DeliverBatch(ctx context.Context, ds []processor.Delivery) (int, error) {
	n, err := s.sink.DeliverBatch(ctx, ds)
	if s.lose {
		return 0, errors.New("the answer was lost")
	}
	return n, err
}

func (s *source) process(t *testing.T, deadLetter bool) *processor.Process {
	t.Helper()
	from, err := table.New(s.pool, table.Config{Table: "public.bookings", Columns: table.Columns{Type: "type"}})
	require.NoError(t, err)
	p, err := processor.New(processor.Config{
		Process: "sms", Store: s.store, Source: from, Start: processor.Beginning, Dispatch: processor.Pipeline(s), DeadLetter: deadLetter, Checkpoint: 3,
		Poll: 5 * time.Millisecond, Retry: processor.Retry{Initial: time.Millisecond, Max: 5 * time.Millisecond},
	})
	require.NoError(t, err)
	return p
}

// drain returns when all is delivered, or the time is up.
func (s *source) drain(t *testing.T, deadLetter bool) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return s.process(t, deadLetter).Drain(ctx)
}

func (s *source) row(t *testing.T) cursor.Row {
	t.Helper()
	row, err := s.store.Look(t.Context(), "sms")
	require.NoError(t, err)
	return row
}

// before is the position to seek to, so that a record is delivered next.
func (s *source) before(t *testing.T, id int) cursor.Position {
	t.Helper()
	from, err := table.New(s.pool, table.Config{Table: "public.bookings"})
	require.NoError(t, err)
	position, err := from.Before(t.Context(), strconv.Itoa(id))
	require.NoError(t, err)
	return position
}

var decision = cursor.Decision{Actor: "me", Reason: "a test"}

func TestRemote_FollowsWhatAnOperatorDecides(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	restore := s.remote.refuse(t, "refused")
	s.insert(t, "made", "made", "refused", "refused", "made", "made", "refused")
	require.NoError(t, s.drain(t, true))
	require.Equal(t, "1 2 5 6", s.remote.ids(t))

	s.insert(t, "refused", "made")
	var halt *processor.HaltError
	require.ErrorAs(t, s.drain(t, false), &halt)
	require.Equal(t, "8", halt.Failure.RecordID)
	_, err := operator.New(s.store).Skip(t.Context(), "sms", decision)
	require.NoError(t, err)
	require.NoError(t, s.drain(t, false))
	require.Equal(t, "1 2 5 6 9", s.remote.ids(t))

	restore()
	letters, err := operator.New(s.store).DeadLetters(t.Context(), "sms", false, 10)
	require.NoError(t, err)
	require.Len(t, letters, 3)
	for _, letter := range letters[:2] {
		s.lose = true
		require.ErrorContains(t, s.process(t, true).Replay(t.Context(), letter.ID, decision), "lost")
		s.lose = false
		require.NoError(t, s.process(t, true).Replay(t.Context(), letter.ID, decision))
	}
	require.Equal(t, "1 2 5 6 9 3 4", s.remote.ids(t))

	s.insert(t, "made", "made", "made")
	_, err = operator.New(s.store).Seek(t.Context(), "sms", s.before(t, 6), decision)
	require.NoError(t, err)
	require.NoError(t, s.drain(t, false))
	require.Equal(t, "1 2 5 6 9 3 4 6 7 8 9 10 11 12", s.remote.ids(t))

	s.insert(t, "made", "made", "made")
	for _, id := range []int{13, 15} { // a second thought
		_, err = operator.New(s.store).Seek(t.Context(), "sms", s.before(t, id), decision)
		require.NoError(t, err)
	}
	require.NoError(t, s.drain(t, false))
	require.Equal(t, "1 2 5 6 9 3 4 6 7 8 9 10 11 12 15", s.remote.ids(t))
	require.NoError(t, s.process(t, true).Replay(t.Context(), letters[2].ID, decision))
	require.Equal(t, "1 2 5 6 9 3 4 6 7 8 9 10 11 12 15 7", s.remote.ids(t))
}

// The target is put back to a backup while the process has gone on: nothing is
// delivered until an operator seeks to where it stands.
func TestRemote_ATargetThatWasRestoredGetsWhatItLacks(t *testing.T) {
	t.Parallel()
	for name, promote := range map[string]func(*testing.T, *source){
		"alone": func(*testing.T, *source) {},
		"and so was the source, to a later one": func(t *testing.T, s *source) {
			_, err := operator.New(s.store).Restored(t.Context(), "sms", decision)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			restoreTarget(t, promote)
		})
	}
}

func restoreTarget(t *testing.T, promote func(*testing.T, *source)) {
	t.Helper()
	s := newSource(t)
	for range 3 {
		s.insert(t, "made", "made", "made")
		require.NoError(t, s.drain(t, false))
		if len(s.remote.ids(t)) == len("1 2 3") {
			s.remote.exec(t, "CREATE TABLE public.backup AS SELECT * FROM public.ordered_dispatcher_applied")
		}
	}
	s.remote.exec(t, `DELETE FROM public.received WHERE id::int > 3; DELETE FROM public.ordered_dispatcher_applied;
		INSERT INTO public.ordered_dispatcher_applied SELECT * FROM public.backup`)
	promote(t, s)
	s.insert(t, "made")
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	process := s.process(t, false)
	go func() { ran <- process.Run(ctx) }()
	require.Eventually(t, func() bool { f := s.row(t).Failure; return f != nil && f.Attempts > 2 }, time.Minute, 5*time.Millisecond)
	require.Contains(t, s.row(t).Failure.Error, "records are missing in the target")
	require.Equal(t, "1 2 3", s.remote.ids(t))

	stands := cursor.Position(s.remote.text(t, "SELECT position FROM public.ordered_dispatcher_applied"))
	_, err := operator.New(s.store).Seek(t.Context(), "sms", stands, decision)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.remote.ids(t) == "1 2 3 4 5 6 7 8 9 10" }, time.Minute, 5*time.Millisecond, func() string { return fmt.Sprint(s.row(t)) })
	cancel()
	require.NoError(t, <-ran)
}
