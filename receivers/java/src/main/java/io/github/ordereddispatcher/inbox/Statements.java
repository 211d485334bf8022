package io.github.ordereddispatcher.inbox;

/** The statements of an inbox: those of package inbox in Go. {schema} is the schema of its tables. */
final class Statements {
    static final String KNOWN = """
            /* inbox.known */
            SELECT 1
            FROM {schema}.inbox_process
            WHERE receiver = ? AND process = ? AND stream = ?""";

    // Locks the row of a stream, or makes it. A call that waited for the lock sees the newest version. It notes a larger
    // epoch, unless the origin is another one. Such an epoch begins with this message, so the record before it is the
    // last one.
    static final String LOCK = """
            /* inbox.lock */
            INSERT INTO {schema}.inbox_process AS p (receiver, process, stream, origin, epoch, sequence)
            VALUES (?, ?, ?, ?, ?, 0)
            ON CONFLICT (receiver, process, stream) DO UPDATE SET
                epoch = CASE WHEN p.origin = excluded.origin THEN greatest(p.epoch, excluded.epoch) ELSE p.epoch END,
                sequence = CASE WHEN p.origin = excluded.origin AND excluded.epoch > p.epoch THEN least(p.sequence, ?) ELSE p.sequence END
            RETURNING origin, epoch, sequence""";

    static final String NOTE = """
            /* inbox.note */
            INSERT INTO {schema}.inbox (receiver, process, dedup_key)
            VALUES (?, ?, ?)
            ON CONFLICT DO NOTHING""";

    static final String ADVANCE = """
            /* inbox.advance */
            UPDATE {schema}.inbox_process
            SET sequence = greatest(sequence, ?)
            WHERE receiver = ? AND process = ? AND stream = ?""";

    // Returns the transaction, and its subtransaction that the last savepoint began: xmin is the lower 32 bits of its number,
    // which is a little larger than that of the transaction. It has noted the dedup key, too.
    static final String ADVANCE_RETURNING = ADVANCE + """

            RETURNING pg_catalog.txid_current() AS transaction,
                pg_catalog.txid_current() + ((xmin::text::bigint - pg_catalog.txid_current()) & 4294967295) AS subtransaction""";

    // Fails in a transaction that PostgreSQL would roll back. Finds nothing once the transaction of the notes has ended, or
    // their subtransaction was rolled back. It reads no table: the effect may have taken a role without rights to ours.
    static final String OPEN = """
            /* inbox.open */
            SELECT 1
            WHERE pg_catalog.txid_current_if_assigned() = ? AND pg_catalog.txid_status(?) = 'in progress'""";

    // Locks the process's own row, so that no stream begins meanwhile.
    static final String ADOPT = """
            /* inbox.adopt */
            INSERT INTO {schema}.inbox_process AS p (receiver, process, stream, origin, epoch, sequence)
            VALUES (?, ?, '', ?, 0, 0)
            ON CONFLICT (receiver, process, stream) DO UPDATE SET origin = excluded.origin, epoch = 0, sequence = 0
            WHERE p.origin <> excluded.origin""";

    static final String ADOPT_STREAMS = """
            /* inbox.adopt_streams */
            UPDATE {schema}.inbox_process
            SET origin = ?, epoch = 0, sequence = 0
            WHERE receiver = ? AND process = ? AND origin <> ?""";

    static final String RENAME = """
            /* inbox.rename */
            UPDATE {schema}.inbox_process
            SET process = ?
            WHERE receiver = ? AND process = ?""";

    static final String RENAME_KEYS = """
            /* inbox.rename_keys */
            UPDATE {schema}.inbox
            SET process = ?
            WHERE receiver = ? AND process = ?""";

    static final String PRUNE = """
            /* inbox.prune */
            DELETE FROM {schema}.inbox
            WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM {schema}.inbox
                WHERE receiver = ? AND received_at < clock_timestamp() - make_interval(secs => ?)
                ORDER BY received_at LIMIT ?
            ))""";

    private Statements() {}
}
