package table

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
)

// waits bounds everything that a source asks the database. The server ends one of our statements after 30 s, and a
// wait for a lock after 5 s, and its error explains more than a deadline can. Anything longer means that the network,
// or the server, has fallen silent.
type waits struct {
	read answer.Wait // the whole of a read, which may carry MaxBytes
	ask  answer.Wait // everything else
	// The look for late rows gets these times from the server: floor for finding where it begins, look for the rest.
	floor, look time.Duration
	// A search for a record by a column that may have no index gets this time from the server.
	lookup time.Duration
}

func defaultWaits() waits {
	return waits{
		read: answer.Wait{Connection: 30 * time.Second, Answer: 90 * time.Second},
		ask:  answer.Wait{Connection: 30 * time.Second, Answer: 45 * time.Second},

		floor: 10 * time.Second,
		look:  30 * time.Second,

		lookup: 10 * time.Second,
	}
}

// inTx runs f in a transaction on a connection of the pool, bounded by waits.ask.
func (s *Source) inTx(ctx context.Context, options pgx.TxOptions, f func(context.Context, pgx.Tx) error) error {
	return answer.OnConn(ctx, s.pool, s.waits.ask, func(ctx context.Context, conn *pgxpool.Conn) error {
		return pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error { return f(ctx, tx) })
	})
}

// readOnly runs f in a transaction with the settings of a read.
func (s *Source) readOnly(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
	return s.inTx(ctx, options, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, settingsSQL); err != nil {
			return err
		}
		return f(ctx, tx)
	})
}
