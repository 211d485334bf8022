package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Retry makes the failing record due at once, counts its attempts and its back-off anew, and sets a halted
// process running. A new epoch begins. It returns ErrNotFailing if no record is failing. A process that halted
// because its database was restored (cursor.ClassRestored) goes on from its position, as after Restored. One whose ids
// have started again (cursor.ClassReset) goes on as after SeekAnew. One that halted because the clock was behind
// (cursor.ClassClock) looks for all rows that were stamped before its position, and halts again if there are any: see
// cursor.PromotedError.
func (o *Operator) Retry(ctx context.Context, process string, d cursor.Decision) (Change, error) {
	return o.operate(ctx, process, d, action{name: "retry", ofRecord: true, apply: func(row cursor.Row) (cursor.Row, error) {
		if row.Failure == nil && row.State != cursor.Halted {
			return row, notFailing(row)
		}
		var err error
		switch {
		case row.Displaced() && row.Failure.Restored():
			row, err = row.Begun(time.Now())
		case haltedAs(row, cursor.ClassReset):
			row, err = recounted(row, row.Position)
		default:
			row.Epoch++ // without it, a worker between two transactions would go on counting
		}
		return cleared(row), err
	}})
}

func notFailing(row cursor.Row) error {
	return fmt.Errorf("%w: the process is %s at %q", ErrNotFailing, row.State, visible.Cut(string(row.Position)))
}
