package sql

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// firstRefusedSQL finds the first of some numbers whose record failed in the target and is not known to be there
// since, by the primary key.
const firstRefusedSQL = `/* sql.again */
SELECT coalesce(pg_catalog.min(sequence), 0)
FROM {schema}.ordered_dispatcher_refused
WHERE process_name OPERATOR(pg_catalog.=) $1 AND sequence OPERATOR(pg_catalog.=) ANY ($2::pg_catalog.int8[]) AND applied IS NOT TRUE`

// judgeDone handles records that come again although they are before the last applied one. That proves that they were
// applied only if the target has no note that it refused them. An operator passed such a refused record over, and the
// source has lost that decision: the row may have been corrected since.
func (r *Remote) judgeDone(ctx context.Context, a applied, done []processor.Delivery) error {
	if len(done) == 0 {
		return nil
	}
	numbers := make([]string, len(done))
	for i, d := range done {
		numbers[i] = number(a.numberOf(d))
	}
	var batch pgconn.Batch
	queue(&batch, r.sql(firstRefusedSQL), done[0].Process, "{"+strings.Join(numbers, ",")+"}")
	row, err := r.ask(ctx, &batch, 1)
	if err == nil && row == nil {
		err = errAnswer
	}
	if err != nil {
		return r.notBegun(ctx, err)
	}
	first, err := strconv.ParseInt(string(row[0]), 10, 64)
	if err != nil {
		return r.failed(err)
	}
	for _, d := range done {
		if first > 0 && a.numberOf(d) == first {
			return r.failed(r.refusedBefore(a, d))
		}
	}
	return nil
}

// gap returns how many numbers are between the last applied record and another one. It is below 0 if the other record
// comes before the last applied one. In a new history the numbers continue with the same remainder.
func (a applied) gap(d processor.Delivery) int64 {
	gap := d.Sequence - 1 - a.sequence
	if !a.isOfEarlierHistory(d) {
		return gap
	}
	if gap %= cursor.HistoryGap; gap > cursor.HistoryGap/2 {
		gap -= cursor.HistoryGap
	}
	return gap
}

// isBehind reports that the cursor has passed more than the target has, by numbers and by positions.
func (a applied) isBehind(d processor.Delivery) bool {
	return a.gap(d) > 0 && d.After > a.position
}

// numberOf returns the number that a record which comes again had when the target first received it.
func (a applied) numberOf(d processor.Delivery) int64 {
	return a.sequence + 1 + a.gap(d)
}

func (r *Remote) refusedBefore(a applied, d processor.Delivery) error {
	return fmt.Errorf("%w: it refused record %q of process %q, number %d, and went on after it, up to position %s. Now the record comes again: a standby was promoted "+
		"or the database was restored, and the source has lost that the record was passed over. Nothing was written. If it need not come: `ordered-dispatcher seek %s --to-position %s -c FILE --reason …`. "+
		"If it shall come: take out of the target what follows position %s, and then: %s", ErrHistory, visible.Cut(d.ID), d.Process, a.numberOf(d), visible.Cut(string(a.position)),
		visible.Shell(d.Process), visible.Quoted(string(a.position)), visible.Cut(string(d.After)), r.standAt(a, d))
}

// standAt returns the SQL after which a record comes next, if the target's position is still the same.
func (r *Remote) standAt(a applied, d processor.Delivery) string {
	return r.sql(fmt.Sprintf("UPDATE {schema}.ordered_dispatcher_applied SET position = %s, dedup_key = NULL, recent = NULL WHERE process_name = %s AND position = %s",
		quote(string(d.After)), quote(d.Process), quote(string(a.position))))
}
