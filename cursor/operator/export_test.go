package operator

import (
	"context"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// ForgetGone is Forget after it has found no row.
func ForgetGone(ctx context.Context, o *Operator, process string, d cursor.Decision) (Change, error) {
	d, _ = d.Reasoned()
	return o.forgetGone(ctx, process, d, cursor.ErrUnknown)
}

// PassageOf is what Since makes of a row and of its events, the newest first.
func PassageOf(row cursor.Row, events []Event, sequence int64) Passage {
	return passage(row, events, sequence)
}

// HistorySQL is the statement of History.
func HistorySQL(o *Operator) string { return o.db.SQL(historySQL) }
