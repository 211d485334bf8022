package sql_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// promoted are the deliveries of stamped records first to first+n-1 after a promotion that left the
// cursor before the first.
func promoted(first, n int) []processor.Delivery {
	all := inHistory(first, n)
	for i := range all {
		all[i].CreatedAt = time.UnixMicro(int64(1_700_000_000_000_000 + first - 1 + i)).UTC()
	}
	return all
}

// TestRemote_TakesNoRecordForAppliedThatItRefused: the target refused record 3, an operator passed it
// over, and the source has lost that. The record comes again, and may have another content.
func TestRemote_TakesNoRecordForAppliedThatItRefused(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func() []processor.Delivery{
		"after a promotion":              func() []processor.Delivery { return promoted(2, 5) },
		"after a promotion, the first":   func() []processor.Delivery { return promoted(3, 4) },
		"under its number":               func() []processor.Delivery { return sinktest.Under(9, stamped(sinktest.Deliveries(1, 6))[1:]) },
		"under its number, as the first": func() []processor.Delivery { return sinktest.Under(9, stamped(sinktest.Deliveries(1, 6))[2:]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			s := r.sink(t, nil)
			restore := r.refuse(t, "refused")
			before := stamped(sinktest.Deliveries(1, 5))
			before[2].Type = "refused"
			sinktest.Delivered(t, s, before[:2])
			_, err := sinktest.Deliver(t, s, before[2:3])
			require.True(t, processor.IsPermanent(err), err)
			sinktest.Delivered(t, s, before[3:])
			restore()

			for _, d := range again() { // one by one, as after a failed attempt
				n, err := sinktest.Deliver(t, s, []processor.Delivery{d})
				if d.ID == "2" {
					require.NoError(t, err, "it is there")
					continue
				}
				require.ErrorIs(t, err, sql.ErrHistory)
				require.ErrorContains(t, err, `refused record "3"`)
				require.True(t, processor.IsUnreached(err), err)
				require.Zero(t, n)
				break
			}
			_, err = sinktest.Deliver(t, s, again())
			require.ErrorIs(t, err, sql.ErrHistory)
			require.Equal(t, "1 2 4 5", r.ids(t))

			r.exec(t, "DELETE FROM public.received WHERE id IN ('4', '5')") // as the error says
			r.obey(t, err, "UPDATE ")
			ds := again()
			sinktest.Delivered(t, s, ds[len(ds)-4:])
			require.Equal(t, "1 2 3 4 5 6", r.ids(t))
		})
	}
}

// TestRemote_ARecordThatAReplayAppliedComesAgain: the target refused it, and has it since.
func TestRemote_ARecordThatAReplayAppliedComesAgain(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	r.withLetter(t, s)
	sinktest.Delivered(t, s, letter("sms", 3))
	sinktest.Delivered(t, s, sinktest.Under(9, sinktest.Deliveries(2, 5)))
	require.Equal(t, "1 2 4 5 3 6", r.ids(t))
}

// TestRemote_ASourceThatLostASkipDoesNotLoseTheRecord, with two servers: the source's cursor and audit
// are those of before the operator's skip, and the row was corrected.
func TestRemote_ASourceThatLostASkipDoesNotLoseTheRecord(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.remote.refuse(t, "refused")
	s.insert(t, "made", "made", "refused", "made", "made")
	var halt *processor.HaltError
	require.ErrorAs(t, s.drain(t, false), &halt)
	pgtest.Exec(t, s.pool, "CREATE TABLE public.backup AS SELECT * FROM public.cursor")
	_, err := operator.New(s.store).Skip(t.Context(), "sms", decision)
	require.NoError(t, err)
	require.NoError(t, s.drain(t, false))
	require.Equal(t, "1 2 4 5", s.remote.ids(t))

	pgtest.Exec(t, s.pool, `ALTER TABLE public.cursor DISABLE TRIGGER ALL;
		UPDATE public.cursor c SET position = b.position, sequence = b.sequence, epoch = c.epoch, state = 'running', failed_position = NULL FROM public.backup b;
		ALTER TABLE public.cursor ENABLE TRIGGER ALL;
		UPDATE public.bookings SET type = 'corrected' WHERE id = 3`)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	process := s.process(t, false)
	go func() { ran <- process.Run(ctx) }()
	var row cursor.Row
	require.Eventually(t, func() bool {
		row = s.row(t)
		return row.Sequence >= 5 || row.Failure != nil && row.Failure.Attempts > 2
	}, time.Minute, 5*time.Millisecond)
	cancel()
	require.NoError(t, <-ran)
	require.Less(t, row.Sequence, int64(3), "record 3 was passed, and the target does not have it")
	require.Contains(t, row.Failure.Error, sql.ErrHistory.Error())
}

// TestRemote_ARefusalIsNotedAlsoIfTheTargetHangsThen: the connection was given up while the failed transaction was to end. The record
// was put aside without a note in the target, which then took it for lost, and refused all that followed.
func TestRemote_ARefusalIsNotedAlsoIfTheTargetHangsThen(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	r.refuse(t, "refused")
	ds := stamped(sinktest.Deliveries(1, 4))
	ds[2].Type = "refused"
	sinktest.Delivered(t, s, ds[:2])
	hangs := r.link.Hold(link.Server, func(data []byte) bool { return bytes.Contains(data, []byte("ROLLBACK")) })
	_, err := sinktest.Deliver(t, s, ds[2:3])
	<-hangs
	require.True(t, processor.IsPermanent(err), err)
	require.Equal(t, "2/3 refused 3", r.noted(t))
	sinktest.Delivered(t, s, ds[3:])
	require.Equal(t, "1 2 4", r.ids(t))
}
