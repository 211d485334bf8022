package inbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const tablesSQL = `CREATE TABLE IF NOT EXISTS {schema}.inbox_process (
	receiver text   NOT NULL,
	process  text   NOT NULL,
	epoch    bigint NOT NULL,
	sequence bigint NOT NULL,
	PRIMARY KEY (receiver, process)
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS {schema}.inbox (
	receiver    text        NOT NULL,
	process     text        NOT NULL,
	dedup_key   text        NOT NULL,
	received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (receiver, process, dedup_key)
);

CREATE INDEX IF NOT EXISTS inbox_received_at ON {schema}.inbox (receiver, received_at);
`

// Statements of Handle, in this order.
const (
	// enterSQL locks the row of the process, or makes it. A call that waited for the lock sees the newest version.
	enterSQL = `/* inbox.enter */
INSERT INTO {schema}.inbox_process AS p (receiver, process, epoch, sequence)
VALUES ($1, $2, $3, 0)
ON CONFLICT (receiver, process) DO UPDATE SET epoch = greatest(p.epoch, excluded.epoch)
RETURNING epoch, sequence`

	noteSQL = `/* inbox.note */
INSERT INTO {schema}.inbox (receiver, process, dedup_key)
VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING`

	advanceSQL = `/* inbox.advance */
UPDATE {schema}.inbox_process
SET sequence = greatest(sequence, $3)
WHERE receiver = $1 AND process = $2`
)

const pruneSQL = `/* inbox.prune */
DELETE FROM {schema}.inbox
WHERE ctid = ANY (ARRAY(
	SELECT ctid FROM {schema}.inbox WHERE receiver = $1 AND received_at < clock_timestamp() - $2::interval ORDER BY received_at LIMIT $3
))`

func within(schema, sql string) string {
	return strings.ReplaceAll(sql, "{schema}", pgx.Identifier{schema}.Sanitize())
}

// SQL returns the statements that make the two tables, where they are missing.
func (i *Inbox) SQL() string { return within(i.config.Schema, tablesSQL) }

// seen is what is known of a process.
type seen struct{ epoch, sequence int64 }

func (i *Inbox) lock(ctx context.Context, tx pgx.Tx, m Message) (s seen, err error) {
	if err := tx.QueryRow(ctx, i.enter, i.config.Receiver, m.Process, m.Epoch).Scan(&s.epoch, &s.sequence); err != nil {
		return s, fmt.Errorf("inbox of receiver %q: %w", i.config.Receiver, err)
	}
	return s, nil
}

// exec returns how many rows a statement changed.
func (i *Inbox) exec(ctx context.Context, tx pgx.Tx, sql string, args ...any) (int64, error) {
	tag, err := tx.Exec(ctx, sql, args...)
	if err != nil {
		return 0, fmt.Errorf("inbox of receiver %q: %w", i.config.Receiver, err)
	}
	return tag.RowsAffected(), nil
}

// Prune forgets keys of the receiver that came longer ago than keep, at most limit of them, and returns how many. A
// record that comes again after that is applied again, unless its epoch is stale: keep more than you may seek back.
func (i *Inbox) Prune(ctx context.Context, tx pgx.Tx, keep time.Duration, limit int) (int64, error) {
	return i.exec(ctx, tx, i.forget, i.config.Receiver, keep, limit)
}
