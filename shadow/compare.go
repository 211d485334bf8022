package shadow

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// DB begins transactions: a *pgxpool.Pool or a *pgx.Conn.
type DB interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Comparison is what the calls of a process have in common with those of another one.
type Comparison struct {
	// Calls is how many calls were compared, and Differing how many of them differ.
	Calls, Differing int64
	// Last is the position of the last one; "" if there is none.
	Last cursor.Position
	// First are the first that differ, in the order of the records.
	First []Difference
}

// Difference is a record for which two processes make different calls.
type Difference struct {
	Sequence int64
	DedupKey string
	// Differs names what differs, without values: target, header X, body.x.y.
	Differs []string
}

const (
	// countSQL reads all rows of a process, by the primary key.
	countSQL = `/* shadow.count */
SELECT count(*), count(*) FILTER (WHERE differs <> '{}'), coalesce(max(position), '')
FROM {table}
WHERE process = $1 AND other = $2 AND differs IS NOT NULL`

	// firstSQL reads rows of a process in their order, by the primary key, until it has enough.
	firstSQL = `/* shadow.first */
SELECT sequence, dedup_key, differs
FROM {table}
WHERE process = $1 AND other = $2 AND differs <> '{}'
ORDER BY process, position
LIMIT $3`
)

// Compare sums up what was recorded for a process beside another one, with at most limit differences.
func Compare(ctx context.Context, db DB, table pgx.Identifier, process, other string, limit int) (c Comparison, err error) {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, db, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, prepared.PathSQL, pgx.QueryExecModeExec); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, on(countSQL, table), pgx.QueryExecModeExec, process, other).Scan(&c.Calls, &c.Differing, &c.Last); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, on(firstSQL, table), pgx.QueryExecModeExec, process, other, limit)
		c.First, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Difference])
		return err
	})
	if err != nil {
		return Comparison{}, fmt.Errorf("compare the calls in %s: %w", table.Sanitize(), err)
	}
	return c, nil
}
