package table

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
)

// waits bound all that a source asks the database. The server ends a statement of ours
// after 30 s and a wait for a lock after 5 s, and says more of it than a deadline can:
// what is longer is a network, or a server, that has fallen silent.
type waits struct {
	read answer.Wait // the whole of a read, which may carry MaxBytes
	ask  answer.Wait // everything else
	// The look for late rows has these of the server: where it begins, and the rest.
	floor, look time.Duration
}

func defaultWaits() waits {
	return waits{
		read: answer.Wait{Connection: 30 * time.Second, Answer: 90 * time.Second},
		ask:  answer.Wait{Connection: 30 * time.Second, Answer: 45 * time.Second},

		floor: 10 * time.Second,
		look:  30 * time.Second,
	}
}

// inTx runs f in a transaction on a connection of the pool, within the time of a
// question.
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
