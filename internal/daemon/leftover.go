package daemon

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// leftoverSQL finds cursors of no process in the file that last read one table, by
// the index on (process_name, id).
const leftoverSQL = `/* daemon.leftover */
SELECT c.process_name
FROM {schema}.cursor c
CROSS JOIN LATERAL (
	SELECT detail
	FROM {schema}.cursor_event e
	WHERE e.process_name = c.process_name AND e.action = 'configure'
	ORDER BY e.id DESC
	LIMIT 1
) last
WHERE c.process_name <> ALL ($1::text[]) AND last.detail->>'source.table' = $2
ORDER BY c.process_name
LIMIT 100`

// leftover are the names of cursors that may be a process's own under an earlier
// name: they last read its table, and the file does not have them.
func (c *crew) leftover(ctx context.Context, p Process) (names []string, err error) {
	err = prepared.Within(ctx, c.pool, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, c.config.sql(leftoverSQL), c.config.Names(), p.Source.Table)
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return names, err
}

// warnOfNewNames warns of processes that are about to start where the file says,
// though the cursor of their earlier name may be there. Which of them have a cursor,
// and what reads their tables, is asked before any of them begins. That it cannot be
// asked is for the processes themselves to say.
func (c *crew) warnOfNewNames() {
	ctx, cancel := context.WithTimeout(c.ctx, lookTimeout)
	defer cancel()
	rows, err := c.store.List(ctx)
	if err != nil {
		return
	}
	for _, p := range c.config.Processes {
		has := slices.ContainsFunc(rows, func(row cursor.Row) bool { return row.Process == p.Name })
		if has || p.Start == "" { // without a start it is refused: see asUsage
			continue
		}
		names, err := c.leftover(ctx, p)
		if err != nil || len(names) == 0 {
			continue
		}
		c.log.Warn(fmt.Sprintf("this process has no cursor and begins at its `start`, and a cursor that no process of this file has reads the same table (%s). "+
			"If it is the same process under a new name: stop this worker, then `ordered-dispatcher process forget %s --reason …` "+
			"and `ordered-dispatcher process rename %s %[2]s`, and remove `start`", oneOf(names), visible.Shell(p.Name), visible.Shell(names[0])), "process", p.Name, "start", p.Start)
	}
}
