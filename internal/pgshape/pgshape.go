// Package pgshape reads which columns a table has. Who makes a table of a certain shape asks it whether another one has
// the name.
package pgshape

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Shape is what has a name.
type Shape struct {
	Kind    string   // as in pg_class: r, p, v …
	Columns []string // name and type
}

// shapeSQL finds something by its name. It locks nothing.
const shapeSQL = `/* pgshape */
SELECT
	c.relkind::text,
	array(
		SELECT a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
		FROM pg_attribute a
		WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		ORDER BY a.attnum
		LIMIT 2000
	)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2`

// Of returns the shape of what has a name with its schema; nil if nothing has it. The search_path of tx is pg_catalog.
func Of(ctx context.Context, tx pgx.Tx, name pgx.Identifier) (*Shape, error) {
	var found Shape
	err := tx.QueryRow(ctx, shapeSQL, pgx.QueryExecModeExec, name[0], name[1]).Scan(&found.Kind, &found.Columns)
	if err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			err = nil
		}
		return nil, err
	}
	return &found, nil
}

// Lacks returns the columns that it does not have. Further columns do no harm.
func (s *Shape) Lacks(columns ...string) (missing []string) {
	for _, column := range columns {
		if !slices.Contains(s.Columns, column) {
			missing = append(missing, column)
		}
	}
	return missing
}
