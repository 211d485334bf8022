package shadow

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
)

// eraseSQL finds the rows by the primary key.
const eraseSQL = `/* shadow.erase */
DELETE FROM {table}
WHERE process = $1 AND position = ANY ($2::text[])`

// Erase deletes what a process has recorded of records, and returns how many calls that were.
func Erase(ctx context.Context, tx pgx.Tx, table pgx.Identifier, process string, positions []cursor.Position) (int64, error) {
	all := make([]string, len(positions))
	for i, position := range positions {
		all[i] = string(position)
	}
	tag, err := tx.Exec(ctx, on(eraseSQL, table), pgx.QueryExecModeExec, process, all)
	if err != nil {
		return 0, fmt.Errorf("delete calls from %s: %w", table.Sanitize(), err)
	}
	return tag.RowsAffected(), nil
}

// EraseNeeds are the privileges of a role that erases.
func EraseNeeds(table pgx.Identifier) []privilege.Privilege {
	return append(CompareNeeds(table), privilege.Privilege{On: privilege.Table, Name: table.Sanitize(), Right: "DELETE"})
}
