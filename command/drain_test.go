package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// TestDrain_CountsRecordsAndNoLeaps: through a new worker, a seek, and the first run of a process.
func TestDrain_CountsRecordsAndNoLeaps(t *testing.T) {
	t.Parallel()
	d := newDrain()
	seconds := 0
	look := func(waiting int64, rows ...cursor.Row) daemon.Counted {
		seconds++
		now := daemon.Counted{At: time.Unix(int64(seconds), 0), Rows: map[string]cursor.Row{}}
		var all []daemon.Status
		for _, row := range rows {
			now.Rows[row.Process] = row
			all = append(all, daemon.Status{Row: row, New: row.UpdatedAt.IsZero(), Lag: &daemon.Lag{Records: waiting}})
		}
		d.begin(all, now)
		return now
	}
	at := func(process string, sequence int64, epoch cursor.Epoch) cursor.Row {
		return cursor.Row{Process: process, Sequence: sequence, Epoch: epoch, UpdatedAt: time.Unix(1, 0)}
	}
	look(40_000, at("a", 100, 1), cursor.Row{Process: "b"})
	look(39_994, at("a", 106, 1), at("b", 28*cursor.HistoryGap+2, 28_000_001))
	require.EqualValues(t, 40_000+2+39_994, d.progress().Total)
	require.EqualValues(t, 8, d.progress().Delivered)
	for n, row := range []cursor.Row{at("a", 6_106, 1), at("a", 12_106, 2), at("a", 18_106, 2), at("a", 18_106+cursor.SeekGap, 3), at("a", 18_107+cursor.SeekGap, 3)} {
		d.note(look(0, row))
		require.EqualValues(t, []int64{6_008, 12_008, 18_008, 18_008, 18_009}[n], d.progress().Delivered)
	}
}
