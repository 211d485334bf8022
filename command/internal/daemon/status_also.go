package daemon

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// also returns further facts beside the hold of a process. They bear on what to do first, so they are not left for
// after the hold.
func (s Status) also() []Hold {
	switch {
	case s.Hold != nil && s.Hold.Kind == HoldNobody: // which includes it
		return nil
	case s.absent:
		return []Hold{*s.unwatched()}
	case s.promoted != "":
		return []Hold{{HoldPromoted, fmt.Sprintf("a standby was promoted since its last change of worker (%s), and workers may still deliver from the old primary", s.promoted),
			"fence the old primary, unless that is done", ""}}
	default:
		return nil
	}
}

// maxLooks bounds how many sources are looked at at once.
const maxLooks = 16

// each calls f for every process, for several at once: while tables are locked, each look waits.
func (r *StatusReader) each(ctx context.Context, all []Status, f func(context.Context, *Status)) {
	var group errgroup.Group
	group.SetLimit(int(min(maxLooks, r.pool.Config().MaxConns)))
	for i := range all {
		group.Go(func() error {
			f(ctx, &all[i])
			return nil
		})
	}
	_ = group.Wait() // f keeps the errors
}

// promotedSQL finds the processes that no worker has taken over since a standby was promoted. On a standby it finds
// none. The timeline is read as in doctor.identity. One below 1 is a mark.
const promotedSQL = `/* daemon.promoted */
SELECT c.process_name, c.timeline, t.timeline
FROM {schema}.cursor c
CROSS JOIN (
	SELECT CASE WHEN NOT pg_is_in_recovery()
		THEN ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
	END AS timeline
) t
WHERE c.timeline > 0 AND c.timeline <> $1 AND c.timeline <> t.timeline
ORDER BY c.process_name
LIMIT 10000`

// lookForPromotion finds out whether a process may have a worker elsewhere. While the old primary is not fenced,
// workers may still deliver there.
func (r *StatusReader) lookForPromotion(ctx context.Context, all []Status) error {
	var process string
	var before, now int
	err := ask(ctx, r.pool, func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, r.config.Config.sql(promotedSQL), cursor.RestoredTimeline)
		_, err := pgx.ForEachRow(rows, []any{&process, &before, &now}, func() error {
			if at := slices.IndexFunc(all, func(s Status) bool { return s.Process == process }); at >= 0 {
				all[at].promoted = fmt.Sprintf("timeline %d, now %d", before, now)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("look whether a standby was promoted: %w", err)
	}
	return nil
}
