package cursor

import (
	"context"
	"slices"
	"strings"
)

// advisorySQL finds the sessions that have one of the advisory locks of this database whose keys are the hashes of $1.
const advisorySQL = `/* cursor.advisory_lockers */
SELECT
	'',
	coalesce(l.pid, 0),
	coalesce(p.gid, ''),
	coalesce(a.application_name, ''),
	coalesce(a.usename::text, p.owner::text, ''),
	(extract(epoch FROM coalesce(a.xact_start, a.backend_start, p.prepared)) * 1000000)::bigint,
	(extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, a.backend_start, p.prepared)) * 1000000)::bigint,
	` + doingSQL + `,
	l.virtualtransaction,
	0,
	1,
	0,
	0
FROM pg_locks l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
LEFT JOIN (
	pg_prepared_xacts p
	JOIN pg_locks x ON x.locktype = 'transactionid' AND x.transactionid = p.transaction
) ON l.pid IS NULL AND x.pid IS NULL AND x.virtualtransaction = l.virtualtransaction
WHERE l.granted
	AND l.locktype = 'advisory'
	AND l.objsubid = 1
	AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND (l.classid::bigint << 32) | l.objid::bigint IN (SELECT hashtextextended(name, 0) FROM unnest($1::text[]) name)
ORDER BY 6 NULLS LAST, 2
LIMIT 100`

// AdvisoryLockers returns the sessions that have an advisory lock of one of these names, oldest first. A session may
// have it outside a transaction: then Since is when the session began.
func (s *Store) AdvisoryLockers(ctx context.Context, names ...string) ([]Locker, error) {
	quoted := slices.Clone(names)
	for i, name := range quoted {
		quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
	}
	return s.lockers(ctx, s.db.Statement(advisorySQL, "{"+strings.Join(quoted, ",")+"}"))
}
