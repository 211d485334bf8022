"""The statements of an inbox: those of package inbox in Go. {schema} is the schema of its tables."""

KNOWN = """/* inbox.known */
SELECT 1
FROM {schema}.inbox_process
WHERE receiver = %(receiver)s AND process = %(process)s AND stream = %(stream)s"""

# LOCK locks the row of a stream, or makes it. A call that waited for the lock sees the newest version. It notes a larger
# epoch, unless the origin is another one. Such an epoch begins with this message, so the record before it is the last one.
LOCK = """/* inbox.lock */
INSERT INTO {schema}.inbox_process AS p (receiver, process, stream, origin, epoch, sequence)
VALUES (%(receiver)s, %(process)s, %(stream)s, %(origin)s, %(epoch)s, 0)
ON CONFLICT (receiver, process, stream) DO UPDATE SET
    epoch = CASE WHEN p.origin = excluded.origin THEN greatest(p.epoch, excluded.epoch) ELSE p.epoch END,
    sequence = CASE WHEN p.origin = excluded.origin AND excluded.epoch > p.epoch THEN least(p.sequence, %(last)s) ELSE p.sequence END
RETURNING origin, epoch, sequence"""

NOTE = """/* inbox.note */
INSERT INTO {schema}.inbox (receiver, process, dedup_key)
VALUES (%(receiver)s, %(process)s, %(dedup_key)s)
ON CONFLICT DO NOTHING"""

# ADVANCE returns the transaction, and the lower 32 bits of the subtransaction that the last savepoint began. It has noted
# the dedup key, too.
ADVANCE = """/* inbox.advance */
UPDATE {schema}.inbox_process
SET sequence = greatest(sequence, %(sequence)s)
WHERE receiver = %(receiver)s AND process = %(process)s AND stream = %(stream)s
RETURNING pg_catalog.txid_current(), xmin::text::bigint"""

# OPEN fails in a transaction that PostgreSQL would roll back. It finds nothing once the transaction of the notes has ended,
# or their subtransaction was rolled back, whose number is a little larger. It reads no table: the effect may have taken a
# role without rights to ours.
OPEN = """/* inbox.open */
SELECT 1
WHERE pg_catalog.txid_current_if_assigned() = %(transaction)s::bigint
    AND pg_catalog.txid_status(%(transaction)s::bigint + ((%(subtransaction)s::bigint - %(transaction)s::bigint) & 4294967295)) = 'in progress'"""

# ADOPT locks the process's own row, so that no stream begins meanwhile.
ADOPT = """/* inbox.adopt */
INSERT INTO {schema}.inbox_process AS p (receiver, process, stream, origin, epoch, sequence)
VALUES (%(receiver)s, %(process)s, '', %(origin)s, 0, 0)
ON CONFLICT (receiver, process, stream) DO UPDATE SET origin = excluded.origin, epoch = 0, sequence = 0
WHERE p.origin <> excluded.origin"""

ADOPT_STREAMS = """/* inbox.adopt_streams */
UPDATE {schema}.inbox_process
SET origin = %(origin)s, epoch = 0, sequence = 0
WHERE receiver = %(receiver)s AND process = %(process)s AND origin <> %(origin)s"""

RENAME = """/* inbox.rename */
UPDATE {schema}.inbox_process
SET process = %(to)s
WHERE receiver = %(receiver)s AND process = %(process)s"""

RENAME_KEYS = """/* inbox.rename_keys */
UPDATE {schema}.inbox
SET process = %(to)s
WHERE receiver = %(receiver)s AND process = %(process)s"""

PRUNE = """/* inbox.prune */
DELETE FROM {schema}.inbox
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {schema}.inbox
    WHERE receiver = %(receiver)s AND received_at < clock_timestamp() - %(keep)s::interval
    ORDER BY received_at LIMIT %(limit)s
))"""

READ_COMMITTED = "/* inbox.isolation */ SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
