package sql

import (
	"errors"
	"math"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

const (
	clearSQL = `/* sql.clear */
DELETE FROM {schema}.ordered_dispatcher_refused
WHERE process_name OPERATOR(pg_catalog.=) $1 AND sequence OPERATOR(pg_catalog.>=) $2 AND sequence OPERATOR(pg_catalog.<=) $3`

	refuseSQL = `/* sql.refuse */
INSERT INTO {schema}.ordered_dispatcher_refused (process_name, sequence, dedup_key)
VALUES ($1, $2, $3)
ON CONFLICT (process_name, sequence) DO UPDATE SET applied = false, dedup_key = $3`

	doneSQL = `/* sql.done */
UPDATE {schema}.ordered_dispatcher_applied
SET
	position = $2,
	sequence = $3,
	epoch = $4,
	dedup_key = CASE WHEN $5::pg_catalog.text OPERATOR(pg_catalog.<>) '' THEN $5 END,
	since = $6,
	origin = CASE WHEN $7::pg_catalog.text OPERATOR(pg_catalog.<>) '' THEN $7 END,
	recent = $8::pg_catalog.bytea,
	updated_at = pg_catalog.clock_timestamp()
WHERE process_name OPERATOR(pg_catalog.=) $1`
)

// keptSQL raises 22P02 unless the tables contain the noted values. A trigger, a rule or a policy there may drop or
// change them, or a view may have a table's place. COMMIT travels in the same flush. After a note that changed
// nothing, the server would run it, with the effects. keptSQL runs after the notes, and so sees the changes that
// triggers made after them.
//
// It also removes the time-out for that COMMIT. If a COMMIT were cut short while it waits for a synchronous standby,
// it would claim something that no standby has.
const (
	keptSQL = `/* sql.kept */
SELECT
	pg_catalog.set_config('statement_timeout', '0', true),
	CASE WHEN a.rows OPERATOR(pg_catalog.=) 1 AND r.rows OPERATOR(pg_catalog.=) $10::pg_catalog.int8 THEN 1
	ELSE ('` + notKept + `' OPERATOR(pg_catalog.||) a.rows OPERATOR(pg_catalog.||) '/' OPERATOR(pg_catalog.||) r.rows)::pg_catalog.int4 END
FROM
	(SELECT pg_catalog.count(*) AS rows
	FROM {schema}.ordered_dispatcher_applied
	WHERE process_name OPERATOR(pg_catalog.=) $1
		AND position OPERATOR(pg_catalog.=) $2
		AND sequence OPERATOR(pg_catalog.=) $3
		AND epoch OPERATOR(pg_catalog.=) $4
		AND coalesce(dedup_key, '') OPERATOR(pg_catalog.=) $5
		AND since OPERATOR(pg_catalog.=) $6
		AND coalesce(origin, '') OPERATOR(pg_catalog.=) $7) a,
	(SELECT pg_catalog.count(*) AS rows
	FROM {schema}.ordered_dispatcher_refused
	WHERE process_name OPERATOR(pg_catalog.=) $1
		AND sequence OPERATOR(pg_catalog.>=) $8
		AND sequence OPERATOR(pg_catalog.<=) $9
		AND NOT applied) r`

	notKept = "the notes are not there: "
)

// refusals counts the records with numbers in [from, to] that are noted as refused, and were not applied since.
type refusals struct{ from, to, rows int64 }

func noRefusals() refusals { return refusals{from: 1, to: 0} }

// queueDone notes the records that the turn applies.
func (r *Remote) queueDone(batch *pgconn.Batch, t turn, process string) {
	if n := len(t.rest); n == 0 {
		r.queueRow(batch, process, t.applied, noRefusals())
	} else if first, last := t.rest[0], t.rest[n-1]; isReplay(first) && first.Sequence <= t.sequence {
		queue(batch, r.sql(replayedSQL), process, number(first.Sequence), first.DedupKey())
		r.queueRow(batch, process, t.applied, refusals{from: first.Sequence, to: first.Sequence})
	} else {
		left := refusals{from: first.Sequence, to: last.Sequence}
		if first.Sequence <= t.sequence { // the source was restored: the numbers above belong to another time
			left.to = math.MaxInt64
		}
		queue(batch, r.sql(clearSQL), process, number(left.from), number(left.to))
		r.queueRow(batch, process, t.with(t.rest), left)
	}
}

// queueRefused notes that a record failed, and the records before it: none of those is missing, or the record would
// not have been tried.
func (r *Remote) queueRefused(batch *pgconn.Batch, t turn, d processor.Delivery) {
	now, left := t.applied, noRefusals()
	batch.ExecParams(constraintsSQL, nil, nil, nil, nil)
	if len(t.rest) > 0 {
		left = refusals{from: d.Sequence, to: d.Sequence, rows: 1}
		queue(batch, r.sql(refuseSQL), d.Process, number(d.Sequence), d.DedupKey())
		if !isReplay(d) && d.Sequence != now.sequence+1 {
			now.recent = now.recent.past(now.gap(d))
			now.position, now.sequence, now.dedupKey = d.After, d.Sequence-1, ""
		}
	}
	r.queueRow(batch, d.Process, now, left)
}

// queueRow notes how far a process has come. It makes the transaction fail unless the target keeps that and the
// earlier notes.
func (r *Remote) queueRow(batch *pgconn.Batch, process string, a applied, left refusals) {
	row := []string{process, string(a.position), number(a.sequence), number(int64(a.epoch)), a.dedupKey, number(a.since), a.origin}
	queue(batch, r.sql(doneSQL), append(row[:len(row):len(row)], a.recent.text())...)
	queue(batch, r.sql(keptSQL), append(row, number(left.from), number(left.to), number(left.rows))...)
}

// isNotKept reports that keptSQL raised its error.
func isNotKept(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "22P02" && strings.Contains(pgErr.Message, notKept)
}
