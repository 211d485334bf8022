package daemon

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const backendSQL = `/* doctor.backend */ SELECT pg_catalog.pg_backend_pid()`

// pooler finds out whether a pooler is between us and the server, and whether it lets transactions through. A pooler
// greets with a process id of its own.
func (d *doctor) pooler(ctx context.Context) error {
	return onConn(ctx, d.pool, func(ctx context.Context, conn *pgxpool.Conn) error {
		if pooled, err := pooled(ctx, conn); err != nil || !pooled {
			return err
		}
		d.pooled = true
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT 1")
			return err
		})
		if err != nil {
			d.find("", Refuse, "set pool_mode = transaction, or connect to the server directly", "the pooler in between does not let a transaction through: %v", err)
			return nil
		}
		d.find("", Note, "", "a pooler stands between: it must hold %d server connections for each worker, and let a transaction be idle for as long as a sink call takes; "+
			"migrate needs a connection without it", connsFor(len(d.config.Processes)))
		return nil
	})
}
