package tables

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// OpenTx is the transaction that a connection is in, for foreign code: Commit and Rollback return Refusal.
type OpenTx struct {
	pgx.Tx
	Refusal error
}

// Adopt returns the transaction that conn is in. pgx has no call to adopt an open transaction, so Adopt makes pgx begin
// one with a command that does nothing.
func Adopt(ctx context.Context, conn *pgx.Conn, refusal error) (OpenTx, error) {
	open, err := conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: "-- the transaction is open"})
	return OpenTx{open, refusal}, err
}

// Commit returns Refusal.
func (tx OpenTx) Commit(context.Context) error { return tx.Refusal }

// Rollback returns Refusal.
func (tx OpenTx) Rollback(context.Context) error { return tx.Refusal }
