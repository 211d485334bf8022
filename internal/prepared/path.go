package prepared

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// PathSQL makes names without a schema mean PostgreSQL's own until the transaction ends. Without it, a role that may
// write to a schema of our search_path could put an operator or a function of its own in the place of PostgreSQL's,
// and our statement would run it with our rights. It does not change the session: session settings would stay at a
// pooler.
const PathSQL = `/* prepared.path */ SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)`

// Beginner is a connection, a pool, or a transaction.
type Beginner interface {
	Begin(context.Context) (pgx.Tx, error)
}

// Within runs f in a transaction in which names without a schema mean PostgreSQL's own, and commits it unless f returns
// an error.
func Within(ctx context.Context, db Beginner, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, PathSQL, pgx.QueryExecModeExec); err != nil {
			return err
		}
		return f(tx)
	})
}
