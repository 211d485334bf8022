package inbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

const tablesSQL = `CREATE TABLE IF NOT EXISTS {schema}.inbox_process (
	receiver text   NOT NULL,
	process  text   NOT NULL,
	stream   text   NOT NULL,
	origin   text   NOT NULL,
	epoch    bigint NOT NULL,
	sequence bigint NOT NULL,
	PRIMARY KEY (receiver, process, stream)
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS {schema}.inbox (
	receiver    text        NOT NULL,
	process     text        NOT NULL,
	dedup_key   text        NOT NULL,
	received_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	PRIMARY KEY (receiver, process, dedup_key)
);

CREATE INDEX IF NOT EXISTS inbox_received_at ON {schema}.inbox (receiver, received_at);
`

// Statements of Handle, in this order. Their operators are qualified, as is all that a search_path could lead elsewhere.
const (
	knownSQL = `/* inbox.known */
SELECT 1
FROM {schema}.inbox_process
WHERE receiver OPERATOR(pg_catalog.=) $1 AND process OPERATOR(pg_catalog.=) $2 AND stream OPERATOR(pg_catalog.=) $3`

	// lockSQL locks the row of a stream, or makes it. A call that waited for the lock sees the newest version. It notes a
	// larger epoch, unless the origin is another one. Such an epoch begins with this message, so the record before it is
	// the last one: the epoch before may have given larger numbers to records that were deleted before they were
	// acknowledged.
	lockSQL = `/* inbox.lock */
INSERT INTO {schema}.inbox_process AS p (receiver, process, stream, origin, epoch, sequence)
VALUES ($1, $2, $3, $4, $5, 0)
ON CONFLICT (receiver, process, stream) DO UPDATE SET
	epoch = CASE WHEN p.origin OPERATOR(pg_catalog.=) excluded.origin THEN greatest(p.epoch, excluded.epoch) ELSE p.epoch END,
	sequence = CASE WHEN p.origin OPERATOR(pg_catalog.=) excluded.origin AND excluded.epoch OPERATOR(pg_catalog.>) p.epoch
		THEN least(p.sequence, $6::bigint) ELSE p.sequence END
RETURNING origin, epoch, sequence`

	noteSQL = `/* inbox.note */
INSERT INTO {schema}.inbox (receiver, process, dedup_key)
VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING`

	// advanceSQL returns the transaction, and the lower 32 bits of the subtransaction that the last savepoint began. It has
	// noted the dedup key, too.
	advanceSQL = `/* inbox.advance */
UPDATE {schema}.inbox_process
SET sequence = greatest(sequence, $4)
WHERE receiver OPERATOR(pg_catalog.=) $1 AND process OPERATOR(pg_catalog.=) $2 AND stream OPERATOR(pg_catalog.=) $3
RETURNING pg_catalog.txid_current(), xmin::pg_catalog.text::bigint`

	// openSQL finds nothing once the transaction $1 has ended, or its subtransaction $2 was rolled back, whose number is a
	// little larger. It reads no table: the effect may have taken a role without rights to ours.
	openSQL = `/* inbox.open */
SELECT 1
WHERE pg_catalog.txid_current_if_assigned() OPERATOR(pg_catalog.=) $1::bigint
	AND pg_catalog.txid_status($1::bigint OPERATOR(pg_catalog.+) (($2::bigint OPERATOR(pg_catalog.-) $1::bigint) OPERATOR(pg_catalog.&) 4294967295))
		OPERATOR(pg_catalog.=) 'in progress'`
)

// statements are those of an inbox, in its schema.
type statements struct{ known, lock, note, advance, adopt, adoptStreams, rename, renameKeys, prune string }

func statementsIn(schema string) statements {
	in := func(sql string) string { return within(schema, sql) }
	return statements{
		known: in(knownSQL), lock: in(lockSQL), note: in(noteSQL), advance: in(advanceSQL),
		adopt: in(adoptSQL), adoptStreams: in(adoptStreamsSQL), rename: in(renameSQL), renameKeys: in(renameKeysSQL), prune: in(pruneSQL),
	}
}

func within(schema, sql string) string {
	return strings.ReplaceAll(sql, "{schema}", pgx.Identifier{schema}.Sanitize())
}

// SQL returns the statements that make the two tables, where they are missing.
func (i *Inbox) SQL() string { return within(i.config.Schema, tablesSQL) }

// lock returns the notes of a message's stream, with a larger epoch noted. It returns an *OriginError if they belong to
// another origin.
func (i *Inbox) lock(ctx context.Context, tx pgx.Tx, m Message) (n notes, err error) {
	epoch := m.Epoch
	if m.Replay {
		epoch = 0 // its epoch begins with another record, whose number is not known yet
	}
	err = tx.QueryRow(ctx, i.sql.lock, i.config.Receiver, m.Process, noted(m.Stream), m.Origin, epoch, m.Sequence-1).
		Scan(&n.origin, &n.epoch, &n.sequence)
	switch {
	case err != nil:
		return n, fmt.Errorf("inbox of receiver %q: %w", i.config.Receiver, err)
	case n.origin != m.Origin:
		return n, &OriginError{Message: m, Noted: n.origin}
	}
	return n, nil
}

// exec returns how many rows a statement changed or found.
func (i *Inbox) exec(ctx context.Context, tx pgx.Tx, sql string, args ...any) (int64, error) {
	tag, err := tx.Exec(ctx, sql, args...)
	if err != nil {
		return 0, fmt.Errorf("inbox of receiver %q: %w", i.config.Receiver, err)
	}
	return tag.RowsAffected(), nil
}
