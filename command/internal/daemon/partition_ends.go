package daemon

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// lastOf returns where the records of the source's table end; "" if that is not known. In the order of the ids that
// is the last id that the table's sequence has made, unless a record is beyond it.
func (g *guard) lastOf(ctx context.Context, process string) (cursor.Position, error) {
	source := g.sources[process]
	i := slices.IndexFunc(g.config.Processes, func(p Process) bool { return p.Name == process })
	if g.config.Processes[i].Source.Order != table.ID {
		far, err := source.At(ctx, endOfTime)
		if err != nil {
			return "", err
		}
		return source.Back(ctx, far, 1)
	}
	end, err := source.End(ctx)
	if err != nil {
		return "", err
	}
	if beyond, err := source.First(ctx, end); err != nil || beyond != nil {
		return "", err
	}
	return end, nil
}

// endOfTime is later than any stamp of a record.
var endOfTime = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// lastEventSQL reads the index on (process_name, id).
const lastEventSQL = `/* daemon.partition_event */ SELECT coalesce(max(id), 0) FROM {schema}.cursor_event WHERE process_name = $1`

// lastEvent returns the number of a process's last event. A later event has a larger number, so no clock is needed.
func (g *guard) lastEvent(ctx context.Context, process string) (id int64, err error) {
	err = ask(ctx, g.pool, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, g.config.sql(lastEventSQL), binary, process).Scan(&id)
	})
	return id, err
}

// soughtSQL finds the last decision after an event where a process goes on. It reads the index on (process_name, id).
const soughtSQL = `/* daemon.partition_sought */
SELECT
	action,
	coalesce(to_position, '')
FROM {schema}.cursor_event
WHERE process_name = $1 AND action IN ('seek', 'forget') AND id > $2
ORDER BY id DESC
LIMIT 1`

// settled reports whether an operator has sent the process past the records of a partition since they were seen, or
// has given up its cursor. Otherwise it returns the records that are still to come. If the guard does not know how
// far the records reached, they count: a needless warning is better than a loss that is not named.
func (g *guard) settled(ctx context.Context, process string, r remainder) (left remainder, settled bool, err error) {
	var action, position string
	err = ask(ctx, g.pool, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, g.config.sql(soughtSQL), process, r.event).Scan(&action, &position)
	})
	to := cursor.Position(position)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return r, false, nil
	case err != nil:
		return r, false, err
	case action == "forget":
		return r, true, nil
	case to <= r.after:
		return r, false, nil
	case r.last != "" && r.last <= to:
		return r, true, nil
	}
	records, known := g.heldAfter(ctx, process, r, to)
	r.after = to
	if known {
		r.records = records
	}
	return r, known && records == 0, nil
}

// namedSQL checks whether a table still has its name.
const namedSQL = `/* daemon.partition_named */ SELECT coalesce(to_regclass($2) = $1::oid, false)`

// heldAfter asks a table that was detached what it holds after a position, if the table still has its name and all
// records. That needs a right to the table, which the role may lack.
func (g *guard) heldAfter(ctx context.Context, process string, r remainder, at cursor.Position) (records int64, known bool) {
	var named bool
	err := ask(ctx, g.pool, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, namedSQL, binary, r.OID(), r.Name()).Scan(&named)
	})
	if err != nil || !named {
		return 0, false
	}
	source, detached := g.sources[process], r.Partition
	detached.Detaching = true // so that the question goes to the table itself
	held, err := source.Undelivered(ctx, r.after, detached)
	if err != nil || held < r.records {
		return 0, false
	}
	records, err = source.Undelivered(ctx, at, detached)
	return records, err == nil
}
