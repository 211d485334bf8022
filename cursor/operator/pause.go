package operator

import (
	"context"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Pause stops a process at its next checkpoint. When it returns, no delivery is under way, and none starts
// until Resume. Pause leaves a paused process as it is. It refuses one that is halted (cursor.ErrHalted): that process
// delivers nothing anyway, and its failing record needs a decision of its own.
func (o *Operator) Pause(ctx context.Context, process string, d cursor.Decision) (Change, error) {
	return o.operate(ctx, process, d, action{name: "pause", apply: func(row cursor.Row) (cursor.Row, error) {
		if row.State == cursor.Halted {
			return row, haltedAt(row)
		}
		row.State = cursor.Paused
		return row, nil
	}})
}

// Resume sets a paused process running. A new epoch begins, so that workers look anew at a table that may have
// been changed meanwhile. Resume leaves a running process as it is. It refuses one that is halted (cursor.ErrHalted):
// its record needs Retry, Skip or Seek. It also refuses one whose server's clock was seen to be behind while it
// was paused (cursor.ClassClock).
func (o *Operator) Resume(ctx context.Context, process string, d cursor.Decision) (Change, error) {
	return o.operate(ctx, process, d, action{name: "resume", apply: func(row cursor.Row) (cursor.Row, error) {
		if row.State == cursor.Halted || row.Displaced() {
			return row, haltedAt(row)
		}
		if row.State == cursor.Paused {
			row.Epoch++
		}
		row.State = cursor.Running
		return row, nil
	}})
}

func haltedAt(row cursor.Row) error {
	if row.Failure == nil {
		return cursor.ErrHalted
	}
	if row.Failure.OfServer() {
		return fmt.Errorf("%w over its database, and delivers nothing: %s", cursor.ErrHalted, row.Failure.Error)
	}
	if row.Failure.OfUs() {
		return fmt.Errorf("%w, and delivers nothing: %s", cursor.ErrHalted, refusedBecause(row))
	}
	return fmt.Errorf("%w at record %s, and delivers nothing: %s", cursor.ErrHalted, visible.Cut(row.Failure.RecordID), row.Failure.Error)
}
