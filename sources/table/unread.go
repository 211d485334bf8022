package table

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// unreadSQL finds tables below the table %[1]d whose DETACH … CONCURRENTLY did not end, and tables that were closed as
// partitions of one of these, and are none any more. The comment has one of the two forms of qualify. The query
// locks nothing.
const unreadSQL = "/* source.unread */" + treeSQL + `
SELECT n.nspname::text, c.relname::text
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid IN (SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhrelid = tree.oid WHERE i.inhdetachpending)
	OR NOT c.relispartition AND c.oid IN (
		SELECT o.conrelid
		FROM tree
		JOIN pg_class t ON t.oid = tree.oid
		JOIN pg_namespace m ON m.oid = t.relnamespace
		JOIN pg_constraint o ON o.conname = '` + Closing + `'
		WHERE obj_description(o.oid, 'pg_constraint') IN (m.nspname || '.' || t.relname, format('"%%s"."%%s"', replace(m.nspname, '"', '""'), replace(t.relname, '"', '""')))
			AND t.relowner = (SELECT p.relowner FROM pg_class p WHERE p.oid = o.conrelid)
	)
ORDER BY 1, 2
LIMIT %[2]d`

// Unread lists tables that have rows of a table, or had them, and that no read of it sees: a DETACH of them was begun and
// did not end, or retention has detached them and not dropped them yet. What an operator has detached, it does not list.
func Unread(ctx context.Context, tx pgx.Tx, oid uint32) (all []pgx.Identifier, err error) {
	found, err := run(ctx, tx, fmt.Sprintf(unreadSQL, oid, maxPartitions), nil)
	if err != nil {
		return nil, err
	}
	for _, values := range found.Rows {
		all = append(all, pgx.Identifier{string(values[0]), string(values[1])})
	}
	return all, nil
}
