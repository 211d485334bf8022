// The statements of an inbox: those of package inbox in Go. {schema} is the schema of its tables.

export const knownSQL = `/* inbox.known */
SELECT 1
FROM {schema}.inbox_process
WHERE receiver = $1 AND process = $2 AND stream = $3`;

// lockSQL locks the row of a stream, or makes it. A call that waited for the lock sees the newest version. It notes a
// larger epoch, unless the origin is another one. Such an epoch begins with this message, so the record before it is
// the last one.
export const lockSQL = `/* inbox.lock */
INSERT INTO {schema}.inbox_process AS p (receiver, process, stream, origin, epoch, sequence)
VALUES ($1, $2, $3, $4, $5, 0)
ON CONFLICT (receiver, process, stream) DO UPDATE SET
  epoch = CASE WHEN p.origin = excluded.origin THEN greatest(p.epoch, excluded.epoch) ELSE p.epoch END,
  sequence = CASE WHEN p.origin = excluded.origin AND excluded.epoch > p.epoch THEN least(p.sequence, $6::bigint) ELSE p.sequence END
RETURNING origin, epoch::text, sequence::text`;

export const noteSQL = `/* inbox.note */
INSERT INTO {schema}.inbox (receiver, process, dedup_key)
VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING`;

// advanceSQL returns the transaction, and the lower 32 bits of the subtransaction that the last savepoint began. It has
// noted the dedup key, too.
export const advanceSQL = `/* inbox.advance */
UPDATE {schema}.inbox_process
SET sequence = greatest(sequence, $4)
WHERE receiver = $1 AND process = $2 AND stream = $3
RETURNING pg_catalog.txid_current()::text AS transaction, xmin::text AS subtransaction`;

// openSQL fails in a transaction that PostgreSQL would roll back. It finds nothing once the transaction $1 of the notes has
// ended, or their subtransaction $2 was rolled back, whose number is a little larger. It reads no table: the effect may
// have taken a role without rights to ours.
export const openSQL = `/* inbox.open */
SELECT 1
WHERE pg_catalog.txid_current_if_assigned() = $1::bigint
  AND pg_catalog.txid_status($1::bigint + (($2::bigint - $1::bigint) & 4294967295)) = 'in progress'`;

// adoptSQL locks the process's own row, so that no stream begins meanwhile.
export const adoptSQL = `/* inbox.adopt */
INSERT INTO {schema}.inbox_process AS p (receiver, process, stream, origin, epoch, sequence)
VALUES ($1, $2, '', $3, 0, 0)
ON CONFLICT (receiver, process, stream) DO UPDATE SET origin = excluded.origin, epoch = 0, sequence = 0
WHERE p.origin <> excluded.origin`;

export const adoptStreamsSQL = `/* inbox.adopt_streams */
UPDATE {schema}.inbox_process
SET origin = $3, epoch = 0, sequence = 0
WHERE receiver = $1 AND process = $2 AND origin <> $3`;

export const renameSQL = `/* inbox.rename */
UPDATE {schema}.inbox_process
SET process = $3
WHERE receiver = $1 AND process = $2`;

export const renameKeysSQL = `/* inbox.rename_keys */
UPDATE {schema}.inbox
SET process = $3
WHERE receiver = $1 AND process = $2`;

export const pruneSQL = `/* inbox.prune */
DELETE FROM {schema}.inbox
WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM {schema}.inbox WHERE receiver = $1 AND received_at < clock_timestamp() - make_interval(secs => $2) ORDER BY received_at LIMIT $3
))`;
