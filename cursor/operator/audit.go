package operator

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// AuditQuery chooses events of all processes.
type AuditQuery struct {
	// Process, Actor and Action are those of the events; "" is any. An event has the name that its process had then.
	Process, Actor, Action string
	// Decisions leaves out what a worker notes of itself: its start, its configuration, a halt, a record put aside.
	Decisions bool
	// Before is the number of an event: only older ones are returned. 0 is any.
	Before int64
	// Limit bounds their number, between 1 and MaxHistory.
	Limit int
}

// auditSQL reads back along the primary key, or along the index on process and number. It takes no lock.
const auditSQL = `/* cursor.audit */
SELECT` + eventColumns + `
FROM {schema}.cursor_event
WHERE ($1::bigint = 0 OR id < $1::bigint)
	AND ($2::text = '' OR process_name = $2)
	AND ($3::text = '' OR actor = $3)
	AND ($4::text = '' OR action = $4)
	AND (NOT $5::boolean OR action NOT IN ('create', 'place', 'configure', 'watch', 'halt', 'promoted', 'settled', 'dead_letter', 'partition_gone', 'write_off'))
ORDER BY id DESC
LIMIT $6`

// Audit returns events of all processes, the newest first.
func (o *Operator) Audit(ctx context.Context, q AuditQuery) ([]Event, error) {
	if q.Limit < 1 || q.Limit > MaxHistory {
		return nil, o.db.WithFix("read the audit", fmt.Errorf("limit must be between 1 and %[2]d, got %[1]d", q.Limit, MaxHistory))
	}
	results, err := o.ask(ctx, o.db.Statement(auditSQL, strconv.FormatInt(q.Before, 10), q.Process, q.Actor, q.Action, strconv.FormatBool(q.Decisions), strconv.Itoa(q.Limit)))
	if err != nil {
		return nil, o.db.WithFix("read the audit", err)
	}
	events, err := parseEvents(results[0].Rows)
	if err != nil {
		return nil, o.db.WithFix("read the audit", err)
	}
	return events, nil
}

// recordLettersSQL finds the dead letters of one record. A process has few of them, so it reads all rows of the process
// that match; there is no index on the record.
var recordLettersSQL = `/* cursor.letters_of_record */
` + tables.LettersSQL + `WHERE ($1::text = '' OR process_name = $1) AND record_id = $2::text
ORDER BY id DESC
LIMIT $3::int`

// LettersOfRecord returns the last dead letters of the records with an id, of one process or, with "", of every process, open or resolved, the newest first, at most limit. They
// come without headers and payload: see DeadLetter.
func (o *Operator) LettersOfRecord(ctx context.Context, process, recordID string, limit int) ([]cursor.DeadLetter, error) {
	return o.listLetters(ctx, recordLettersSQL, process, recordID, limit)
}
