package sql

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// letter is the target's note about a number that failed there.
type letter struct {
	noted    bool
	applied  string // "t": by a replay since, "f": no, "": an operator passed over the number, so it is not known
	dedupKey string // of the record; "" if an operator noted it
}

const letterSQL = `/* sql.letter */
SELECT applied, coalesce(dedup_key, '')
FROM {schema}.ordered_dispatcher_refused
WHERE process_name OPERATOR(pg_catalog.=) $1 AND sequence OPERATOR(pg_catalog.=) $2`

// replayedSQL keeps the note, as the proof that the replay was applied.
const replayedSQL = `/* sql.replayed */
UPDATE {schema}.ordered_dispatcher_refused
SET applied = true, dedup_key = $3
WHERE process_name OPERATOR(pg_catalog.=) $1 AND sequence OPERATOR(pg_catalog.=) $2`

// judgeReplay handles a dead letter. If it failed in the target and was not applied since, it is to be applied. It
// was applied if the target's own notes prove that; else that is not known.
func (r *Remote) judgeReplay(ctx context.Context, t turn, ds []processor.Delivery) (turn, error) {
	d := ds[0]
	l, err := r.letter(ctx, d.Process, d.Sequence)
	switch {
	case err != nil:
		return t, r.notBegun(ctx, err)
	case l.dedupKey != "" && l.dedupKey != d.DedupKey():
		return t, r.failed(r.unproven(d))
	case l.applied == "f":
		t.rest = ds
		return t, nil
	case l.applied == "t", !l.noted && t.proves(d):
		t.done = len(ds)
		return t, nil
	default:
		return t, r.failed(r.unproven(d))
	}
}

// proves reports whether a record that is not noted as refused was applied.
func (a applied) proves(d processor.Delivery) bool {
	another := d.Sequence == a.sequence && a.dedupKey != "" && a.dedupKey != d.DedupKey()
	return d.Sequence > a.since && !another
}

func (r *Remote) letter(ctx context.Context, process string, sequence int64) (letter, error) {
	var batch pgconn.Batch
	queue(&batch, r.sql(letterSQL), process, number(sequence))
	row, err := r.ask(ctx, &batch, 2)
	if err != nil || row == nil {
		return letter{}, err
	}
	return letter{noted: true, applied: string(row[0]), dedupKey: string(row[1])}, nil
}

func (r *Remote) unproven(d processor.Delivery) error {
	return fmt.Errorf("%w: its notes prove nothing of record %q, number %d of process %q. They begin later, or the record failed under another name of the process, "+
		"in another place, or before a restore. Nothing was written. Look there for the record: if it is there, `ordered-dispatcher dead-letter discard`. If it is not, "+
		"this has the next replay apply it: %s", ErrUnproven, visible.Cut(d.ID), d.Sequence, d.Process,
		r.sql(fmt.Sprintf("INSERT INTO {schema}.ordered_dispatcher_refused (process_name, sequence) VALUES (%s, %d) "+
			"ON CONFLICT (process_name, sequence) DO UPDATE SET applied = false, dedup_key = NULL", quote(d.Process), d.Sequence)))
}
