package operator

import (
	"context"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Skip passes over the failing record, only that one, and sets a halted process running. The record is never
// delivered; it keeps its number in the sequence, and a new epoch begins. Skip returns ErrNotFailing if no
// record is failing. It does so, too, if the receiver refused us (cursor.ClassRefused): the record was not at fault,
// and passing over it would lose it for nothing.
func (o *Operator) Skip(ctx context.Context, process string, d cursor.Decision) (Change, error) {
	return o.operate(ctx, process, d, action{name: "skip", needsReason: true, moves: true, ofRecord: true, apply: func(row cursor.Row) (cursor.Row, error) {
		if row.Displaced() {
			return row, fmt.Errorf("%w: the process is halted over its database, and delivers nothing: %s", ErrNotFailing, row.Failure.Error)
		}
		if row.Failure == nil {
			return row, notFailing(row)
		}
		if row.Failure.OfUs() {
			return row, fmt.Errorf("%w: %s", ErrNotFailing, refusedBecause(row))
		}
		if row.Failure.Position <= row.Position {
			return row, fmt.Errorf("%w: the failing record in the cursor's row is at %s, and the cursor is past it", ErrNotFailing, visible.Cut(string(row.Failure.Position)))
		}
		row.Position = row.Failure.Position
		row.Sequence++
		row.Epoch++
		return cleared(row), nil
	}})
}

// refusedBecause is why no record is at fault.
func refusedBecause(row cursor.Row) string {
	return fmt.Sprintf("the receiver or a setting is at fault, not record %s: %s", visible.Cut(row.Failure.RecordID), row.Failure.Error)
}
