package cursor

import (
	"context"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// pastSQL reads what last happened to a name, by the index on (process_name, id), and whether a cursor has the
// name. It is one statement, so it sees a new row and its event together, or neither. Otherwise a row that is
// made meanwhile would look like one that was deleted.
const pastSQL = `/* cursor.past */
SELECT
	EXISTS (SELECT 1 FROM {schema}.cursor WHERE process_name = $1),
	coalesce(past.action, ''),
	coalesce(past.renamed, '')
FROM (SELECT) one
LEFT JOIN (
	SELECT
		action,
		detail->>'new' AS renamed
	FROM {schema}.cursor_event
	WHERE process_name = $1 AND action IN ('create', 'rename', 'renamed', 'forget')
	ORDER BY id DESC
	LIMIT 1
) past ON true`

// Past reports what became of the cursor that had a name: ErrRenamed or ErrDeleted. It returns ErrExists if a
// cursor has the name now, even if an earlier look found none. nil means that no cursor had it, or that Forget
// gave it up, so Create may use it.
func (s *Store) Past(ctx context.Context, process string) error {
	var there bool
	var action, to string
	results, err := s.ask(ctx, s.db.Statement(pastSQL, process))
	if err == nil {
		p := tables.Parser{Values: results[0].Rows[0]}
		there, action, to = p.Text(0) == "t", p.Text(1), p.Text(2)
	}
	switch {
	case err != nil:
	case there:
		err = exists(process)
	case action == "renamed":
		return fmt.Errorf("%w to %q", ErrRenamed, to)
	case action != "" && action != "forget":
		err = fmt.Errorf("%w, and a new one would send its records a second time: put the row back, "+
			"or give the cursor up with `ordered-dispatcher process forget %s --reason …`", ErrDeleted, visible.Shell(process))
	}
	if err != nil {
		return s.db.Explain("make", process, err)
	}
	return nil
}

func exists(process string) error { return fmt.Errorf("%w: %q", ErrExists, process) }

const forgottenSQL = `/* cursor.forgotten */
SELECT coalesce(past.position, ''), coalesce(past.horizon, '')
FROM (
	SELECT action, from_position AS position, detail->>'horizon' AS horizon
	FROM {schema}.cursor_event
	WHERE process_name = $1 AND (
		action IN ('rename', 'renamed')
		OR action = 'create' AND to_position IS DISTINCT FROM '` + string(Unplaced) + `'
		OR action = 'forget' AND from_position IS DISTINCT FROM '` + string(Unplaced) + `'
	)
	ORDER BY id DESC
	LIMIT 1
) past
WHERE past.action = 'forget' AND NOT EXISTS (SELECT 1 FROM {schema}.cursor WHERE process_name = $1 AND position <> '` + string(Unplaced) + `')`

// Forgotten returns the position and the Horizon that the cursor of a process had when Forget gave it up. Both
// are "" if its row was gone by then. The error is ErrUnknown if no cursor was given up, or if the process has
// another one by now. A cursor that is Unplaced does not count: it has delivered nothing.
func (s *Store) Forgotten(ctx context.Context, process string) (at Position, horizon string, err error) {
	results, err := s.ask(ctx, s.db.Statement(forgottenSQL, process))
	if err != nil {
		return "", "", s.db.Explain("read the past of", process, err)
	}
	if len(results[0].Rows) == 0 {
		return "", "", ErrUnknown
	}
	p := tables.Parser{Values: results[0].Rows[0]}
	return Position(p.Text(0)), p.Text(1), nil
}
