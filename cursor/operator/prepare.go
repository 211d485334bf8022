package operator

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// prepareSQL is createSQL for an operator.
var prepareSQL = `/* cursor.prepare */
WITH past AS (
	SELECT action
	FROM {schema}.cursor_event
	WHERE process_name = $1 AND action IN ('create', 'rename', 'renamed', 'forget')
	ORDER BY id DESC
	LIMIT 1
), created AS (
	INSERT INTO {schema}.cursor (process_name, position, state, system_identifier, timeline, database_oid, epoch, sequence, histories)
	SELECT $1, $2, $3, ` + tables.PlaceOfSQL + `, ` + tables.BornSQL("$7", "$8", "$9", "$10") + `
	WHERE NOT EXISTS (SELECT 1 FROM past WHERE action <> 'forget')
	ON CONFLICT (process_name) DO NOTHING
	RETURNING process_name, position, state
), event AS (
	INSERT INTO {schema}.cursor_event (process_name, actor, action, reason, to_position, detail)
	SELECT process_name, $4, 'create', $5, position, jsonb_build_object('by', $6::text, 'to_state', state) FROM created
	RETURNING 1
)
SELECT
	EXISTS (SELECT 1 FROM created),
	EXISTS (SELECT 1 FROM {schema}.cursor WHERE process_name = $1),
	CASE WHEN (SELECT count(*) FROM event) = (SELECT count(*) FROM created) THEN 1 ELSE ('` + tables.NoEvent + `, rows: ' || (SELECT count(*) FROM event))::int END`

// Prepare makes the cursor of a process before its first run, in the given state and at the given position. The
// position is cursor.Unplaced if the start is not known yet. by names the command that asks for it. Prepare returns
// cursor.ErrExists if there is a cursor, and cursor.ErrDeleted or cursor.ErrRenamed if the name was used before. With
// Decision.Table it refuses a place whose records retention has removed, as Seek does.
func (o *Operator) Prepare(ctx context.Context, process string, at cursor.Position, state cursor.State, by string, d cursor.Decision) (Change, error) {
	return o.prepare(ctx, process, at, state, by, d, false)
}

// PrepareAnew is Prepare for a source whose ids have started again since the cursor was forgotten, or may have:
// see SeekAnew.
func (o *Operator) PrepareAnew(ctx context.Context, process string, at cursor.Position, state cursor.State, by string, d cursor.Decision) (Change, error) {
	return o.prepare(ctx, process, at, state, by, d, true)
}

func (o *Operator) prepare(ctx context.Context, process string, at cursor.Position, state cursor.State, by string, d cursor.Decision, anew bool) (Change, error) {
	d, err := d.Checked()
	if err != nil {
		return Change{}, o.db.Explain(by, process, err)
	}
	if d.DryRun {
		if _, err := o.store.Look(ctx, process); !errors.Is(err, cursor.ErrUnknown) {
			return Change{}, o.db.Explain(by, process, errors.Join(err, exists(process)))
		}
		row := cursor.Row{Process: process, Position: at, State: state}
		err := o.store.Past(ctx, process)
		if err == nil {
			err = o.rehearsePruned(ctx, process, cursor.Unplaced, at, d)
		}
		return Change{Before: cursor.Row{Process: process}, After: row, Changed: true}, err
	}
	created, stood, err := o.make(ctx, process, at, state, by, d, anew)
	if err != nil {
		return Change{}, o.db.Explain("make", process, tables.Unaudited(err))
	}
	switch {
	case !created && !stood:
		if err := o.store.Past(ctx, process); err != nil {
			return Change{}, err
		}
		return Change{}, o.db.Explain("make", process, exists(process)) // made and given up at this moment
	case !created:
		return Change{}, o.db.Explain("make", process, exists(process))
	}
	row, err := o.store.Look(ctx, process)
	return Change{Before: cursor.Row{Process: process}, After: row, Changed: true}, err
}

// make inserts the row, unless records after its place are gone. It reports whether it made the row, and whether there
// was one.
func (o *Operator) make(ctx context.Context, process string, at cursor.Position, state cursor.State, by string, d cursor.Decision, anew bool) (created, stood bool, err error) {
	born, err := cursor.Row{}.Begun(time.Now())
	if err != nil {
		return false, false, err
	}
	err = o.db.OnConnection(ctx, func(c *pgxpool.Conn) error {
		if _, err := tables.Flush(ctx, c.Conn(), tables.Begin, tables.Pin); err != nil {
			return err
		}
		if err := o.checkPruned(ctx, c.Conn(), process, cursor.Unplaced, at, d); err != nil {
			return err
		}
		results, err := tables.Flush(ctx, c.Conn(),
			o.db.Statement(prepareSQL, process, string(at), string(state), d.Actor, d.Reason, by,
				text(born.Epoch), strconv.FormatInt(born.Sequence, 10), string(born.Histories), strconv.FormatBool(anew)),
			tables.Commit)
		if err == nil && !tables.Committed(results, 1) {
			err = tables.ErrNotAsLocked
		}
		if err != nil {
			return err
		}
		p := tables.Parser{Values: results[0].Rows[0]}
		created, stood = p.True(0), p.True(1)
		return p.Err
	})
	return created, stood, err
}
