package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// Event is one row of the audit: what was done to a cursor, when, and by whom.
type Event struct {
	ID      int64
	Process string
	// At is the database's time.
	At time.Time
	// Actor is a worker, or the person who decided.
	Actor string
	// User is the role that was logged in; "" if the event is older than that column.
	User string
	// Action is what was done: create, place, configure, watch, halt, promoted, settled, dead_letter,
	// dead_letter_replayed, dead_letter_discarded, partition_gone, pause, resume, retry, skip, seek, amend, unamend, restored,
	// rename (noted for the new name), renamed (for the old one), switched_to (noted for the new version),
	// switched_from (for the old one), forget or downgrade (by `migrate down`), erase (rows of a key were deleted or
	// blanked), or write_off (records that may have been sent are gone from the source). Newer versions may add others.
	Action string
	// Reason is the operator's reason, or the error that caused a halt; "" if there is none.
	Reason string
	// From and To are positions of the cursor; To of a halt is the position of the record.
	From, To cursor.Position
	// Detail is a JSON object with further facts about the action.
	Detail json.RawMessage
}

// MaxHistory bounds the number of events in one History.
const MaxHistory = 10_000

// eventRow are the columns of an event, and eventColumns the same as parseEvents reads them.
const (
	eventRow     = `id, process_name, at, actor, action, reason, from_position, to_position, detail, db_user`
	eventColumns = `
	id,
	process_name,
	(extract(epoch FROM at) * 1000000)::bigint,
	actor,
	action,
	reason,
	coalesce(from_position, ''),
	coalesce(to_position, ''),
	detail,
	coalesce(db_user, '')`
)

// historySQL follows a cursor back through its names. Of each name it takes the last events before the cursor was
// renamed from it: those of each of some actions, with commas between, or, if $3 is null, all. It takes no lock.
//
// It reads the indexes on (process_name, id) and on (process_name, action, id), and no event of another process. With
// = instead of BETWEEN, the planner knows that the order of the ids is enough. It may walk back along the primary key
// then, through the events of all processes.
const historySQL = `/* cursor.history */
WITH RECURSIVE name (process_name, until) AS (
	SELECT $1::text COLLATE "C", 9223372036854775807
	UNION ALL
	SELECT renamed.old COLLATE "C", renamed.id
	FROM name n
	CROSS JOIN LATERAL (
		SELECT e.detail->>'old' AS old, e.id
		FROM {schema}.cursor_event e
		WHERE e.process_name = n.process_name AND e.action = 'rename' AND e.id < n.until
		ORDER BY e.id DESC
		LIMIT 1
	) renamed
)
SELECT` + eventColumns + `
FROM (SELECT process_name, max(until) FROM name GROUP BY process_name) n (name, until)
CROSS JOIN LATERAL (
	(
		SELECT ` + eventRow + `
		FROM {schema}.cursor_event
		WHERE $3::text IS NULL AND process_name BETWEEN n.name AND n.name AND id < n.until
		ORDER BY process_name DESC, id DESC
		LIMIT $2
	)
	UNION ALL
	SELECT ` + eventRow + `
	FROM unnest(string_to_array($3, ',')) wanted (name)
	CROSS JOIN LATERAL (
		SELECT ` + eventRow + `
		FROM {schema}.cursor_event
		WHERE process_name = n.name AND action BETWEEN wanted.name AND wanted.name AND id < n.until
		ORDER BY action DESC, id DESC
		LIMIT $2
	) of_action
) e
ORDER BY id DESC
LIMIT $2`

// History returns the last events of a process, the newest first: at most limit of them, between 1 and
// MaxHistory. A deleted cursor still has a history, and a renamed one also has the history of its old names. A
// process that never existed has none.
func (o *Operator) History(ctx context.Context, process string, limit int) ([]Event, error) {
	if limit < 1 || limit > MaxHistory {
		return nil, o.db.Explain("read the history of", process, fmt.Errorf("limit must be between 1 and %[2]d, got %[1]d", limit, MaxHistory))
	}
	return o.events(ctx, process, tables.Null, limit)
}

// Last returns the last event of an action in the history of a process, and whether there is one.
func (o *Operator) Last(ctx context.Context, process, action string) (last Event, found bool, err error) {
	events, err := o.events(ctx, process, action, 1)
	if len(events) == 0 {
		return Event{}, false, err
	}
	return events[0], true, nil
}

// Events returns the last events of an action in the history of a process, the newest first: at most limit of
// them.
func (o *Operator) Events(ctx context.Context, process, action string, limit int) ([]Event, error) {
	return o.events(ctx, process, action, limit)
}

func (o *Operator) events(ctx context.Context, process, actions string, limit int) ([]Event, error) {
	results, err := o.ask(ctx, o.db.Statement(historySQL, process, strconv.Itoa(limit), actions))
	if err != nil {
		return nil, o.db.Explain("read the history of", process, err)
	}
	events, err := parseEvents(results[0].Rows)
	if err != nil {
		return nil, o.db.Explain("read the history of", process, err)
	}
	return events, nil
}

// parseEvents reads rows of eventColumns.
func parseEvents(rows [][][]byte) (events []Event, err error) {
	for _, values := range rows {
		p := tables.Parser{Values: values}
		events = append(events, Event{
			ID: p.Int(0), Process: p.Text(1), At: p.Time(2), Actor: p.Text(3), Action: p.Text(4), Reason: p.Text(5),
			From: cursor.Position(p.Text(6)), To: cursor.Position(p.Text(7)), Detail: json.RawMessage(p.Text(8)),
			User: p.Text(9),
		})
		if p.Err != nil {
			return nil, p.Err
		}
	}
	return events, nil
}
