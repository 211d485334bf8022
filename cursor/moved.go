package cursor

import (
	"context"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// Moved is a cursor whose position was made in another database, or before a standby was promoted, and no worker and no
// operator has noted that.
type Moved struct {
	Process string
	// Elsewhere: the position was made in another database. Which has both, for people.
	Elsewhere bool
	Which     string
	// From and To are the timelines of the position and of the server. Some values of From are no timeline: see
	// RestoredTimeline and PromotedError.Retried.
	From, To int64
}

// Problem describes a cursor that is Elsewhere.
func (m Moved) Problem() string {
	return fmt.Sprintf("the database is not the one its cursor belongs to (%s): it was restored or copied", m.Which)
}

// Promoted reports that a standby was promoted, or the server restored to a point in time.
func (m Moved) Promoted() bool {
	return !m.Elsewhere && m.From > 0 && m.From != RestoredTimeline && m.From != m.To
}

const movedSQL = `/* cursor.moved */
SELECT
	c.process_name,
	coalesce(c.system_identifier <> now.system, false) OR coalesce(c.database_oid <> now.oid, false),
	format('system identifier %s, now %s; oid %s, now %s', c.system_identifier, now.system, coalesce(c.database_oid::text, 'not noted'), now.oid),
	coalesce(c.timeline, 1),
	now.timeline
FROM {schema}.cursor c
CROSS JOIN (SELECT ` + tables.SystemSQL + `, ` + tables.TimelineSQL + `, ` + tables.DatabaseSQL + `) now (system, timeline, oid)
WHERE c.system_identifier <> now.system OR c.database_oid <> now.oid OR c.timeline <> now.timeline
ORDER BY c.process_name
LIMIT 10000`

// Moved reads which cursors came here with a copy of their database, or with a promotion that is not noted yet: at most
// 10,000 of them, by name.
func (s *Store) Moved(ctx context.Context) (all []Moved, err error) {
	results, err := s.ask(ctx, s.db.Statement(movedSQL))
	if err != nil {
		return nil, s.db.WithFix("find out where cursors belong", tables.Standby(err))
	}
	for _, values := range results[0].Rows {
		p := tables.Parser{Values: values}
		all = append(all, Moved{Process: p.Text(0), Elsewhere: p.True(1), Which: p.Text(2), From: p.Int(3), To: p.Int(4)})
		if p.Err != nil {
			return nil, p.Err
		}
	}
	return all, nil
}
