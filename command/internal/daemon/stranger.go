package daemon

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// strangersSQL finds a table, at $1 or below it, of a role that has no part in this: it is neither a superuser, nor the role
// itself, nor the owner of the database, of the cursors ($2), or of one of the tables $3.
const strangersSQL = `/* daemon.strangers */
WITH RECURSIVE tree (oid) AS (
	SELECT coalesce(pg_partition_root(to_regclass($1)), to_regclass($1))::oid
	UNION
	SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhparent = tree.oid
)
SELECT n.nspname, c.relname, w.rolname
FROM tree
JOIN pg_class c ON c.oid = tree.oid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_roles w ON w.oid = c.relowner
JOIN pg_database d ON d.datname = current_database()
WHERE NOT w.rolsuper
	AND w.rolname <> current_user
	AND w.oid <> d.datdba
	AND w.oid NOT IN (SELECT k.relowner FROM pg_class k WHERE k.oid = to_regclass($2) OR k.oid IN (SELECT to_regclass(name) FROM unnest($3::text[]) name))
ORDER BY 1, 2
LIMIT 1`

// stranger returns a table, at a name or below it, and its owner, if that is a role that has no part in the cursors and in
// the tables named; "" if there is none. Such a role can run code with the rights of those who use its table.
func (c Config) stranger(ctx context.Context, pool *pgxpool.Pool, table string, named []string) (owned, owner string, err error) {
	var schema, name string
	err = ask(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, strangersSQL, binary, table, c.name("cursor"), named).Scan(&schema, &name, &owner)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return "", "", nil
	}
	return pgx.Identifier{schema, name}.Sanitize(), owner, err
}
