package cursor

import (
	"context"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// pastSQL reads what happened last to a name, by the index on (process_name, id).
const pastSQL = `/* cursor.past */
SELECT
	action,
	coalesce(detail->>'new', '')
FROM {schema}.cursor_event
WHERE process_name = $1 AND action IN ('create', 'rename', 'renamed', 'forget')
ORDER BY id DESC
LIMIT 1`

// Past reports what became of the cursor that had a name, where no cursor has it
// now: ErrRenamed or ErrDeleted. nil: none had it, or Forget gave it up, so that
// Create may use it.
func (s *Store) Past(ctx context.Context, process string) error {
	var action, to string
	results, err := s.ask(ctx, statement{sql: s.sql(pastSQL), args: []string{process}})
	if err == nil && len(results[0].Rows) > 0 {
		p := parser{values: results[0].Rows[0]}
		action, to = p.text(0), p.text(1)
	}
	switch {
	case err != nil:
	case action == "renamed":
		err = fmt.Errorf("%w to %q", ErrRenamed, to)
	case action != "" && action != "forget":
		err = fmt.Errorf("%w, and a new one would send its records a second time: put the row back, "+
			"or give the cursor up with `ordered-dispatcher process forget %s`", ErrDeleted, visible.Shell(process))
	}
	if err != nil {
		return s.explain("make", process, err)
	}
	return nil
}
