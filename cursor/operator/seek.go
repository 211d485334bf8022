package operator

import (
	"context"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// Seek moves the cursor to a position, forward or back. The records after it are delivered next, again or for
// the first time. It sets a halted process running. The sequence goes on, with a gap of cursor.SeekGap, and a new
// epoch begins. After a halt over the server (cursor.ClassRestored, cursor.ClassClock) a new history begins, as after
// Restored, and after a halt over the ids (cursor.ClassReset) as after SeekAnew. After a halt over the clock, the
// source looks again for rows that were stamped before the position (see cursor.PromotedError), unless the seek
// answers the halt. Three seeks do: to where the process halted; to Failure.Position or before it; or, if
// Failure.Position is not "", to a position past where it halted.
//
// to must be a position of the process's source; only the source can check that. "" is before the first record.
// Records passed over are never delivered; records after to come again with the dedup keys they had. If records
// have no time of creation and their ids have started again, other rows had these keys: use SeekAnew there.
// If retention has removed records after to, Seek returns a *PrunedError: see Decision.Table.
func (o *Operator) Seek(ctx context.Context, process string, to cursor.Position, d cursor.Decision) (Change, error) {
	return o.operate(ctx, process, d, seekTo(to))
}

// seekTo is the action of Seek.
func seekTo(to cursor.Position) action {
	return action{name: "seek", needsReason: true, moves: true, to: &to, apply: func(row cursor.Row) (cursor.Row, error) {
		var err error
		switch {
		case haltedAs(row, cursor.ClassReset) && !row.Unsettled():
			row, err = recounted(row, to)
		case row.Displaced() || row.Unsettled():
			row.Position = min(row.Position, to) // the records between the two may differ, too
			row, err = row.Begun(time.Now())
			row.Position = to
		default:
			row = sought(row, to)
		}
		return cleared(row), err
	}}
}

// SeekAnew is Seek for a source whose ids have started again (TRUNCATE … RESTART IDENTITY, setval), or may
// have: a new history begins before all records. From now on, records without a time of creation come under
// dedup keys that no record had before. This includes records that were delivered before, and a receiver does
// not recognize them: where ids only grow, use Seek. Records with a time of creation keep their keys. For a
// table, table.Source.KeysMayRepeat finds out which of the two is needed.
func (o *Operator) SeekAnew(ctx context.Context, process string, to cursor.Position, d cursor.Decision) (Change, error) {
	seek := seekTo(to)
	sought := seek.apply
	seek.apply = func(row cursor.Row) (cursor.Row, error) {
		after, err := sought(row)
		if err != nil || after.Histories != row.Histories { // a new history begins already
			return after, err
		}
		anew, err := recounted(row, to)
		after.Histories = anew.Histories
		return after, err
	}
	return o.operate(ctx, process, d, seek)
}

// sought is the row moved to another position, under other numbers.
func sought(row cursor.Row, to cursor.Position) cursor.Row {
	row.Position = to
	row.Sequence += cursor.SeekGap
	row.Epoch++
	return row
}

// recounted is the row at a position, once ids have started again. It is not known which records are new: the
// ids may have passed the position since. So dedup keys change from the beginning on. Otherwise a later seek
// back would send new records under former keys.
func recounted(row cursor.Row, to cursor.Position) (cursor.Row, error) {
	var err error
	row.Histories, err = row.Histories.Begin("")
	return sought(row, to), err
}

const horizonSQL = `/* cursor.horizon */
SELECT CASE WHEN ` + tables.HorizonHoldsSQL + ` THEN horizon::text ELSE '' END
FROM {schema}.cursor
WHERE process_name = $1`

// Horizon returns a transaction id (xid8). Every transaction that wrote a record which the process has
// delivered, or an operator has passed over, has an id below it. Horizon returns "" if that is not known in
// this database, and cursor.ErrUnknown if there is no cursor.
func (o *Operator) Horizon(ctx context.Context, process string) (string, error) {
	results, err := o.ask(ctx, o.db.Statement(horizonSQL, process))
	if err == nil && len(results[0].Rows) == 0 {
		err = cursor.ErrUnknown
	}
	if err != nil {
		return "", o.db.Explain("read the horizon of", process, err)
	}
	return string(results[0].Rows[0][0]), nil
}
