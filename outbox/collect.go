package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
)

// Querier is a pool or a connection of pgx, outside of a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// referredSQL reads a whole table, unless an index on (headers ->> 'claim-check') helps. It locks nothing.
const referredSQL = `/* outbox.referred */
SELECT headers ->> 'claim-check'
FROM %s
WHERE headers ->> 'claim-check' = ANY ($1::text[])`

// openSQL returns the age of the oldest transaction that this role can see. Add puts an object after its transaction
// has begun, so an object of an open transaction is not older than that.
const openSQL = `/* outbox.open */
SELECT coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)), 0)::float8
FROM pg_catalog.pg_stat_activity
WHERE datname = current_database()`

// clocksApart is how far the clocks of the store, of the server and of this program may be apart. Each of them measures
// an age. A file system's clock is some milliseconds late even on one machine.
const clocksApart = time.Minute

// Collect removes objects of Config.Claims that were put more than age ago and that no row refers to: those of rolled
// back transactions, and of rows that were deleted. It looks for references in the table of the outbox, and in others:
// name every table that may hold rows of it, such as the dispatcher's dead_letter and an archive. Each needs the jsonb
// column headers, and this role SELECT on it.
//
// age must be longer than any transaction that writes records. Collect keeps the objects of older transactions that are
// still open, as far as the role may see them: pg_read_all_stats shows those of other roles. Prepared transactions
// it never sees. An object is at least a minute old before it is removed. It returns how many objects it removed.
func (o *Outbox) Collect(ctx context.Context, db Querier, age time.Duration, others ...pgx.Identifier) (removed int, err error) {
	if o.config.Claims == nil {
		return 0, errors.New("outbox: collect: there are no Claims")
	}
	if age <= 0 {
		return 0, errors.New("outbox: collect: the age must be longer than any transaction, such as 24 hours")
	}
	open, err := openFor(ctx, db) // before the rows: what commits after this is among them, or young
	if err != nil {
		return 0, fmt.Errorf("collect: look for open transactions: %w", err)
	}
	age = max(age, open+clocksApart)
	return claim.Collect(ctx, o.config.Claims, age, func(ctx context.Context, names []string) (all []string, err error) {
		for _, table := range append([]pgx.Identifier{o.config.Table}, others...) {
			found, err := queryAll[string](ctx, db, fmt.Sprintf(referredSQL, table.Sanitize()), names)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", table.Sanitize(), err)
			}
			all = append(all, found...)
		}
		return all, nil
	})
}

// openFor is how long the oldest transaction has been open.
func openFor(ctx context.Context, db Querier) (time.Duration, error) {
	rows, err := db.Query(ctx, openSQL)
	if err != nil {
		return 0, err
	}
	seconds, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[float64])
	return time.Duration(seconds * float64(time.Second)), err
}

func queryAll[T any](ctx context.Context, db Querier, sql string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}
