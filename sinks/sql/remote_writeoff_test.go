package sql_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// away has the worker let go of the lease, so that the rows are read again.
var away = processor.RetryAfter(processor.Unreached(errors.New("connection refused")), 1100*time.Millisecond)

// calls is a process whose calls go through a sink of the test.
func (s *source) calls(t *testing.T, checkpoint int, sink processor.BatchSinkFunc) *processor.Process {
	t.Helper()
	from, err := table.New(s.pool, table.Config{Table: "public.bookings", Columns: table.Columns{Type: "type"}})
	require.NoError(t, err)
	p, err := processor.New(processor.Config{
		Process: "sms", Store: s.store, Source: from, Start: processor.Beginning, Dispatch: processor.Pipeline(sink), Checkpoint: checkpoint,
		Poll: 5 * time.Millisecond, Retry: processor.Retry{Initial: time.Millisecond, Max: 5 * time.Millisecond},
	})
	require.NoError(t, err)
	return p
}

// through drains such a process, or is interrupted when the time is up.
func (s *source) through(t *testing.T, checkpoint int, sink processor.BatchSinkFunc) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return s.calls(t, checkpoint, sink).Drain(ctx)
}

func (s *source) drop(t *testing.T, rows string) {
	t.Helper()
	pgtest.Exec(t, s.pool, "DELETE FROM public.bookings WHERE "+rows)
}

// A number is written off when its row is gone. The target goes on, whether it has the
// record or never heard of it.
func TestRemote_GoesOnBehindRecordsThatAreWrittenOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		checkpoint int
		gone       string
		arrives    bool // and its answer is lost
		want       string
	}{
		"one, never sent":           {1, "id = 3", false, "1 2 4 5 6 7"},
		"the last of all":           {1, "id >= 3", false, "1 2 8"},
		"the first of a call":       {5, "id = 3", false, "1 2 4 5 6 7"},
		"one within a call":         {5, "id = 5", false, "1 2 3 4 6 7"},
		"several, one after others": {5, "id IN (3, 4, 6)", false, "1 2 5 7"},
		"applied, not heard of":     {1, "id = 3", true, "1 2 3 4 5 6 7"},
		"a call, not heard of":      {5, "id IN (3, 5)", true, "1 2 3 4 5 6 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSource(t)
			s.insert(t, "a", "a", "a", "a", "a", "a", "a")
			first := true
			sink := func(ctx context.Context, ds []processor.Delivery) (int, error) {
				if ds[0].ID == "1" && len(ds) > 2 {
					n, err := s.sink.DeliverBatch(ctx, ds[:2])
					return n, errors.Join(err, away)
				}
				if ds[0].ID != "3" || !first {
					return s.sink.DeliverBatch(ctx, ds)
				}
				first = false
				if c.arrives {
					_, err := s.sink.DeliverBatch(ctx, ds)
					require.NoError(t, err)
				}
				s.drop(t, c.gone)
				return 0, away
			}
			require.NoError(t, s.through(t, c.checkpoint, sink))
			if c.want == "1 2 8" {
				s.insert(t, "a")
				require.NoError(t, s.through(t, c.checkpoint, sink))
			}
			require.Equal(t, c.want, s.remote.ids(t))
		})
	}
}

// The third is refused, and the fifth, which was in its transaction, is deleted.
func TestRemote_GoesOnBehindARefusedCallOfWhichARowIsGone(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.remote.refuse(t, "refused")
	s.insert(t, "a", "a", "refused", "a", "a", "a", "a", "a")
	p := s.calls(t, 6, s.sink.DeliverBatch)
	ran := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ran <- p.Run(ctx) }()
	require.Eventually(t, func() bool {
		row, err := s.store.Look(ctx, "sms")
		return err == nil && row.State == cursor.Halted
	}, time.Minute, 5*time.Millisecond)
	s.drop(t, "id = 5")
	_, err := operator.New(s.store).Skip(t.Context(), "sms", decision)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.remote.ids(t) == "1 2 4 6 7 8" }, time.Minute, 5*time.Millisecond)
	cancel()
	require.NoError(t, <-ran)
}

// What is missing besides what was written off is still refused: the target is put back
// to where it was before the second record.
func TestRemote_AWriteOffExplainsNothingElseThatIsMissing(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.insert(t, "a", "a", "a", "a", "a")
	var missing error
	sink := func(ctx context.Context, ds []processor.Delivery) (int, error) {
		switch ds[0].ID {
		case "2":
			s.remote.exec(t, "CREATE TABLE public.backup AS SELECT * FROM public.ordered_dispatcher_applied")
		case "3":
			s.remote.exec(t, `DELETE FROM public.received WHERE id = '2'; DELETE FROM public.ordered_dispatcher_applied;
				INSERT INTO public.ordered_dispatcher_applied SELECT * FROM public.backup`)
			s.drop(t, "id = 3")
			return 0, away
		}
		n, err := s.sink.DeliverBatch(ctx, ds)
		if err != nil {
			missing, err = err, processor.Refused(err)
		}
		return n, err
	}
	require.Error(t, s.through(t, 1, sink))
	require.ErrorIs(t, missing, sql.ErrMissing)
	require.Equal(t, "1", s.remote.ids(t))
}
