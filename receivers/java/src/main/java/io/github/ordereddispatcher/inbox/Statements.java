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
    // last one. It returns the number of the transaction, too: an effect may end it, and begin another one.
    static final String LOCK = """
            /* inbox.lock */
            INSERT INTO {schema}.inbox_process AS p (receiver, process, stream, origin, epoch, sequence)
            VALUES (?, ?, ?, ?, ?, 0)
            ON CONFLICT (receiver, process, stream) DO UPDATE SET
                epoch = CASE WHEN p.origin = excluded.origin THEN greatest(p.epoch, excluded.epoch) ELSE p.epoch END,
                sequence = CASE WHEN p.origin = excluded.origin AND excluded.epoch > p.epoch THEN least(p.sequence, ?) ELSE p.sequence END
            RETURNING origin, epoch, sequence, pg_catalog.txid_current() AS transaction""";

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

    // Fails in a transaction that PostgreSQL would roll back, and finds nothing in another one than that of the notes.
    static final String OPEN = """
            /* inbox.open */
            SELECT 1
            WHERE pg_catalog.txid_current_if_assigned() = ?""";

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
