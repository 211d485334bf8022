package operator

import (
	"context"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// Restored records that the database was restored from a backup or a snapshot: what the process sent since the
// backup is not known here. The process goes on from its position, with numbers past all that may have been
// used (by a multiple of cursor.HistoryGap), and a new history begins. As after a promotion, its worker first looks
// for rows that were stamped before the position: see cursor.PromotedError. A process that halted over the server
// (cursor.ClassRestored, cursor.ClassClock, cursor.ClassReset) runs again; one that is paused or halted over something else stays
// so.
func (o *Operator) Restored(ctx context.Context, process string, d cursor.Decision) (Change, error) {
	return o.operate(ctx, process, d, action{name: "restored", needsReason: true, moves: true, apply: func(row cursor.Row) (cursor.Row, error) {
		next, err := row.Begun(time.Now())
		if row.Displaced() {
			next = cleared(next)
		}
		return next, err
	}})
}
