package inbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const pruneSQL = `/* inbox.prune */
DELETE FROM {schema}.inbox
WHERE ctid = ANY (ARRAY(
	SELECT ctid FROM {schema}.inbox WHERE receiver = $1 AND received_at < clock_timestamp() - $2::interval ORDER BY received_at LIMIT $3
))`

// Prune forgets keys of the receiver that came longer ago than keep, at most limit of them, and returns how many. A
// record that comes again after that is applied again, unless its epoch is stale: keep more than you may seek back.
func (i *Inbox) Prune(ctx context.Context, tx pgx.Tx, keep time.Duration, limit int) (int64, error) {
	return i.exec(ctx, tx, i.sql.prune, i.config.Receiver, keep, limit)
}
