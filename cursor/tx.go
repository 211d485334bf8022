package cursor

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// ErrTx is what Commit and Rollback of a lease's transaction return: Advance commits it, together with the new
// position.
var ErrTx = errors.New("the transaction belongs to the lease: return nil to have it committed, an error to have it rolled back")

// tx is the transaction of a lease, as a sink sees it.
type tx struct{ pgx.Tx }

// leaseTx wraps the transaction that conn is in. pgx has no call to adopt an open transaction, so leaseTx makes
// pgx begin one with a command that does nothing.
func leaseTx(ctx context.Context, conn *pgx.Conn) (pgx.Tx, error) {
	open, err := conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: "-- the lease's transaction is open"})
	if err != nil {
		return nil, err
	}
	return tx{open}, nil
}

func (tx) Commit(context.Context) error   { return ErrTx }
func (tx) Rollback(context.Context) error { return ErrTx }
