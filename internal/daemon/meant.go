package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// meantKey is where the settings have what source.table meant, if it has no schema: the
// name with the one that the search_path gave it.
const meantKey = "source.table means"

// meantSQL reads what a name without a schema meant when the process last ran, under
// this name or an earlier one (see cursor.Store.History).
const meantSQL = `/* daemon.meant */
WITH RECURSIVE name (process_name, until) AS (
	SELECT $1::text COLLATE "C", 9223372036854775807
	UNION ALL
	SELECT renamed.old COLLATE "C", renamed.id
	FROM name n
	CROSS JOIN LATERAL (
		SELECT e.detail->>'old' AS old, e.id
		FROM {schema}.cursor_event e
		WHERE e.process_name = n.process_name AND e.action = 'rename' AND e.id < n.until
		ORDER BY e.id DESC
		LIMIT 1
	) renamed
)
SELECT e.detail->>'source.table', coalesce(e.detail->>'` + meantKey + `', '')
FROM name n
JOIN {schema}.cursor_event e ON e.process_name = n.process_name AND e.id < n.until
WHERE e.action = 'configure'
ORDER BY e.id DESC
LIMIT 1`

// meant is what the name of a process's table meant when it last ran; "" if that is not
// known, or if another name was configured. Where the cursor tables are missing, or may
// not be read, the process cannot run at all, and says so itself.
func (c Config) meant(ctx context.Context, pool *pgxpool.Pool, p Process) (string, error) {
	var table, meant string
	err := ask(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, c.sql(meantSQL), p.Name).Scan(&table, &meant)
	})
	var pgErr *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows), errors.As(err, &pgErr) && (pgErr.Code == "42P01" || pgErr.Code == "3F000" || pgErr.Code == "42501"):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the last configuration of process %q: %w", p.Name, err)
	case table != p.Source.Table:
		return "", nil
	default:
		return meant, nil
	}
}

// means is what the name of a process's table means, to be noted. While that is not
// certain, what it meant stays noted.
func (c Config) means(ctx context.Context, pool *pgxpool.Pool, p Process) (string, error) {
	source, err := c.source(p, pool, nil)
	if err != nil {
		return "", err
	}
	if source.Qualified() {
		return "", nil
	}
	name, err := source.Name(ctx)
	if err != nil || name != "" {
		return name, err
	}
	return c.meant(ctx, pool, p)
}
