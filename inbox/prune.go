package inbox

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

const pruneSQL = `/* inbox.prune */
DELETE FROM {schema}.inbox
WHERE ctid OPERATOR(pg_catalog.=) ANY (ARRAY(
	SELECT ctid
	FROM {schema}.inbox
	WHERE receiver OPERATOR(pg_catalog.=) $1
		AND received_at OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) $2::pg_catalog.interval)
	ORDER BY received_at
	LIMIT $3
))`

// Prune forgets keys of the receiver that came longer ago than keep, at most limit of them, and returns how many.
//
// A record that comes again after that is refused if its request is an old one, by its epoch or its sequence. It is
// applied again if it was sent anew: after an operator's seek back, as a dead letter that is replayed, by a process
// whose last outcome was unknown and that was halted or paused since, or after a failover or a restore took back the
// advance of the cursor. So keep more than the longest of these may take.
func (i *Inbox) Prune(ctx context.Context, tx pgx.Tx, keep time.Duration, limit int) (int64, error) {
	if keep <= 0 || limit < 1 {
		return 0, fmt.Errorf("inbox: prune: keep and limit must be positive, got %v and %d", keep, limit)
	}
	return i.exec(ctx, tx, i.sql.prune, i.config.Receiver, keep, limit)
}

// PruneConfig describes RunPrune. Zero values mean defaults.
type PruneConfig struct {
	// Keep is how long a key stays: see Prune. Required.
	Keep time.Duration
	// Every is the time from the end of one run to the next. Default 1 h.
	Every time.Duration
	// Logger gets the errors of runs. Default slog.Default().
	Logger *slog.Logger
}

const (
	defaultEvery = time.Hour
	// pruneBatch is the number of keys in one transaction: it takes some milliseconds.
	pruneBatch = 500
)

// RunPrune prunes at once, and then again and again, in small transactions, until ctx ends. It returns the cause of
// that, or an error of its configuration. It logs any other error, and tries again at the next run.
func (i *Inbox) RunPrune(ctx context.Context, db Beginner, config PruneConfig) error {
	config.Every = cmp.Or(config.Every, defaultEvery)
	config.Logger = cmp.Or(config.Logger, slog.Default())
	if config.Keep <= 0 || config.Every < 0 || db == nil {
		return fmt.Errorf("inbox: prune: Keep must be positive, Every must not be negative, and a database is needed: got %v and %v", config.Keep, config.Every)
	}
	for {
		if err := i.pruneAll(ctx, db, config.Keep); err != nil && ctx.Err() == nil {
			config.Logger.ErrorContext(ctx, "the inbox was not pruned", "receiver", i.config.Receiver, "err", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(config.Every):
		}
	}
}

// pruneAll forgets all keys that are old enough.
func (i *Inbox) pruneAll(ctx context.Context, db Beginner, keep time.Duration) error {
	for n := int64(pruneBatch); n == pruneBatch; {
		err := pgx.BeginTxFunc(ctx, db, readCommitted, func(tx pgx.Tx) (err error) {
			n, err = i.Prune(ctx, tx, keep, pruneBatch)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
