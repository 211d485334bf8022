package operator

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

const unloggedSQL = `/* doctor.unlogged */
SELECT c.relname::pg_catalog.text
FROM pg_catalog.pg_namespace n
JOIN pg_catalog.pg_class c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid
WHERE n.nspname OPERATOR(pg_catalog.=) $1
	AND c.relname OPERATOR(pg_catalog.=) ANY ($2::pg_catalog.name[])
	AND c.relpersistence OPERATOR(pg_catalog.=) 'u'
ORDER BY 1
LIMIT 100`

// unlogged warns of cursor tables that the server keeps out of its write-ahead log. The server empties them
// when it recovers from a crash, and does not replicate them.
func (d *diagnosis) unlogged(ctx context.Context) error {
	rows, err := d.conn.Query(ctx, unloggedSQL, d.op.config.Schema, ourTables())
	if err != nil {
		return err
	}
	var table string
	_, err = pgx.ForEachRow(rows, []any{&table}, func() error {
		whole := d.op.db.Schema + "." + pgx.Identifier{table}.Sanitize()
		d.find(cursor.Warn, fmt.Sprintf("ALTER TABLE %s SET LOGGED", whole),
			"%s is unlogged: a crash of the server empties it, and a standby has none of its rows. Positions, epochs or what operators decided are lost with it", whole)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for cursor tables that are unlogged: %w", err)
	}
	return nil
}
