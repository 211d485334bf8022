package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// maxLetters bounds the count of the open dead letters of all processes.
const maxLetters = 100_000

// lettersSQL counts the open ones by their index.
const lettersSQL = `/* daemon.letters */
SELECT process_name, pg_catalog.count(*)
FROM (SELECT process_name FROM {schema}.dead_letter WHERE resolution IS NULL LIMIT $1::int) open
GROUP BY process_name
ORDER BY process_name
LIMIT 10000`

// openLetters counts the open dead letters by process; nil if the role may not read
// them, as one that only delivers.
func (c Config) openLetters(ctx context.Context, pool *pgxpool.Pool) (map[string]int64, error) {
	rows, err := pool.Query(ctx, c.sql(lettersSQL), maxLetters)
	if err != nil {
		return nil, fmt.Errorf("count the dead letters: %w", err)
	}
	counts := map[string]int64{}
	var process string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&process, &n}, func() error {
		counts[process] = n
		return nil
	})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "42501" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("count the dead letters: %w", err)
	}
	return counts, nil
}

// lettersNote names the open dead letters; "" if there are none.
func (s Status) lettersNote() string {
	switch {
	case s.DeadLetters == nil || *s.DeadLetters == 0:
		return ""
	case *s.DeadLetters == 1:
		return fmt.Sprintf("1 dead letter is open; next: `ordered-dispatcher dead-letter list %s`", s.Process)
	default:
		return fmt.Sprintf("%d dead letters are open; next: `ordered-dispatcher dead-letter list %s`", *s.DeadLetters, s.Process)
	}
}
