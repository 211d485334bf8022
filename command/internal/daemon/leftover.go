package daemon

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// leftoverSQL finds cursors of no process in the file that last read one table. It uses the index on (process_name,
// id).
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

// leftover returns the names of cursors that may belong to a process under an earlier name: they last read its table,
// and the file does not have them.
func (c Config) leftover(ctx context.Context, pool *pgxpool.Pool, p Process) (names []string, err error) {
	err = prepared.Within(ctx, pool, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, c.sql(leftoverSQL), c.Names(), p.Source.Table)
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return names, err
}

// refuseNewNames finds processes that are about to start where the file lets them, although the cursor of their
// earlier name may exist. A name that was changed in the file would send everything again, or pass over the records
// that came meanwhile. Before any process begins, it asks which of them have a cursor, and which cursors read their
// tables. If the question fails, the processes report the fault themselves.
func (c *crew) refuseNewNames() {
	ctx, cancel := context.WithTimeout(c.ctx, lookTimeout)
	defer cancel()
	rows, err := c.store.List(ctx)
	if err != nil {
		return
	}
	c.renamed = map[string]error{}
	for _, p := range c.config.Processes {
		has := slices.ContainsFunc(rows, func(row cursor.Row) bool { return row.Process == p.Name })
		if has || p.Start == "" || c.store.Past(ctx, p.Name) != nil {
			continue // without a start, asUsage refuses it; the same goes for a name that was given away
		}
		names, same := c.config.earlierNames(ctx, c.pool, p)
		switch {
		case len(same) > 0:
			c.renamed[p.Name] = newNameError(p, same)
			continue
		case len(names) == 0:
			continue
		}
		c.log.Warn(fmt.Sprintf("this process has no cursor and begins at its `start`, but a cursor without a process in this file reads the same table (%s), "+
			"with another configuration. If it is the same process under a new name: stop this worker, then `ordered-dispatcher process forget %s --reason …` "+
			"and `ordered-dispatcher process rename %s %[2]s`, and remove `start`", oneOf(names), visible.Shell(p.Name), visible.Shell(names[0])), "process", p.Name, "start", p.Start)
	}
}

// begins returns the processes that begin. The others leave no word in the audit: what stands there is of the cursor's
// own past.
func (c *crew) begins() []Process {
	return slices.DeleteFunc(slices.Clone(c.config.Processes), func(p Process) bool { return c.renamed[p.Name] != nil })
}

// earlierNames returns the cursors that a process without one may have left under an earlier name, if its table holds
// records. Those of the second result had the same source and the same sink, or recorded calls for it. A question that fails finds none.
func (c Config) earlierNames(ctx context.Context, pool *pgxpool.Pool, p Process) (names, same []string) {
	names, err := c.leftover(ctx, pool, p)
	if err != nil || len(names) == 0 || !c.holdsRecords(ctx, pool, p) {
		return nil, nil
	}
	for _, name := range names {
		last, err := c.lastConfigured(ctx, pool, name)
		if err != nil || last == nil {
			continue
		}
		last.settings = last.settings.live() // a shadow becomes a live process by a rename
		if name == p.Name+shadowSuffix || last.difference(p.settings(last.settings[saltKey]).live()) == "" {
			same = append(same, name)
		}
	}
	return names, same
}

// holdsRecords reports whether the table of a process holds records. The process itself reports an error.
func (c Config) holdsRecords(ctx context.Context, pool *pgxpool.Pool, p Process) bool {
	source, err := c.keys(p, pool)
	if err != nil {
		return false
	}
	records, _, err := source.Count(ctx)
	return err == nil && records > 0
}

func newNameError(p Process, names []string) error {
	name, old := visible.Shell(p.Name), visible.Shell(names[0])
	from := "start"
	if p.Start == processor.End {
		from = "end"
	}
	if recorded := p.Name + shadowSuffix; slices.Contains(names, recorded) {
		return recordedError(p, recorded, from)
	}
	return usage("process %q has no cursor, its table holds records, and a cursor without a process in this file has the same table and the same sink (%s). "+
		"If it is the same process under a new name: `ordered-dispatcher process rename %s %s -c FILE --reason …`. "+
		"If it is another process, make its cursor first: `ordered-dispatcher seek %[4]s -c FILE --to-%[5]s --reason …`. "+
		"If the old cursor is not needed any more: `ordered-dispatcher process forget %[3]s --reason …`", p.Name, oneOf(names), old, name, from)
}
