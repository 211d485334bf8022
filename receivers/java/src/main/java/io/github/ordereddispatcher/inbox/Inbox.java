package io.github.ordereddispatcher.inbox;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import javax.sql.DataSource;

/**
 * Applies records for one receiver: two tables in the receiver's database, and the checks in the receiver's transaction.
 * Two receivers in one database each apply every record. Safe for several threads, each with a connection of its own.
 */
public final class Inbox {
    /** Applies a record on the connection whose transaction also notes it. */
    @FunctionalInterface
    public interface Effect {
        void apply(Connection connection, Message message) throws Exception;
    }

    /** What became of a message. */
    public enum Outcome {
        /** The effect is part of the transaction. */
        APPLIED,
        /** The record was applied before, and the effect was not called. */
        DUPLICATE
    }

    // Locks the row of the process, or makes it. A call that waited for the lock sees the newest version.
    private static final String ENTER = """
            /* inbox.enter */
            INSERT INTO {schema}.inbox_process AS p (receiver, process, epoch, sequence)
            VALUES (?, ?, ?, 0)
            ON CONFLICT (receiver, process) DO UPDATE SET epoch = greatest(p.epoch, excluded.epoch)
            RETURNING epoch, sequence""";

    private static final String NOTE = """
            /* inbox.note */
            INSERT INTO {schema}.inbox (receiver, process, dedup_key)
            VALUES (?, ?, ?)
            ON CONFLICT DO NOTHING""";

    private static final String ADVANCE = """
            /* inbox.advance */
            UPDATE {schema}.inbox_process
            SET sequence = greatest(sequence, ?)
            WHERE receiver = ? AND process = ?""";

    private static final String PRUNE = """
            /* inbox.prune */
            DELETE FROM {schema}.inbox
            WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM {schema}.inbox
                WHERE receiver = ? AND received_at < clock_timestamp() - make_interval(secs => ?)
                ORDER BY received_at LIMIT ?
            ))""";

    private final String receiver;
    private final String schema;
    private final boolean refuseGaps;

    /** An inbox in the schema public that notes gaps and goes on. */
    public Inbox(String receiver) {
        this(receiver, "public", false);
    }

    /**
     * @param receiver names who applies records
     * @param schema has the two tables
     * @param refuseGaps has handle throw a Gap where a number is missing. Not every gap is a loss: see docs/wire.md of
     *     ordered-dispatcher. The first message of a process may have any number.
     */
    public Inbox(String receiver, String schema, boolean refuseGaps) {
        if (receiver.isEmpty()) {
            throw new IllegalArgumentException("receiver is missing: name who applies the records");
        }
        this.receiver = receiver;
        this.schema = '"' + schema.replace("\"", "\"\"") + '"';
        this.refuseGaps = refuseGaps;
    }

    /** Returns the statements that make the two tables, where they are missing. */
    public String sql() {
        try (InputStream text = Inbox.class.getResourceAsStream("tables.sql")) {
            return within(new String(text.readAllBytes(), StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * Applies a message in the transaction that is open on a connection, which has to be READ COMMITTED. Calls effect
     * unless the message is stale, repeated, or after a gap that is refused. After an exception, also one of effect, the
     * caller rolls back; else it commits, and then acknowledges the message.
     *
     * @throws InboxException.Stale
     * @throws InboxException.Gap
     * @throws IllegalStateException if the connection commits each statement by itself
     */
    public Outcome handle(Connection connection, Message message, Effect effect) throws Exception {
        if (connection.getAutoCommit()) {
            throw new IllegalStateException("handle needs an open transaction: call setAutoCommit(false) first");
        }
        long last = enter(connection, message);
        if (change(connection, NOTE, receiver, message.process(), message.dedupKey()) == 0) {
            return Outcome.DUPLICATE;
        }
        if (refuseGaps && last > 0 && message.sequence() > last + 1) {
            throw new InboxException.Gap(message, last);
        }
        effect.apply(connection, message);
        // Last, since this statement fails where the effect has caught an error of a statement.
        change(connection, ADVANCE, message.sequence(), receiver, message.process());
        return Outcome.APPLIED;
    }

    /** Returns the largest sequence that was applied. */
    private long enter(Connection connection, Message message) throws SQLException, InboxException {
        try (PreparedStatement enter = prepare(connection, ENTER, receiver, message.process(), message.epoch());
                ResultSet seen = enter.executeQuery()) {
            seen.next();
            if (message.epoch() < seen.getLong("epoch")) {
                throw new InboxException.Stale(message, seen.getLong("epoch"));
            }
            return seen.getLong("sequence");
        }
    }

    /**
     * Forgets keys that came longer ago than keep, at most limit of them, and returns how many. A record that comes
     * again after that is applied again, unless its epoch is stale: keep more than you may seek back.
     */
    public int prune(Connection connection, Duration keep, int limit) throws SQLException {
        return change(connection, PRUNE, receiver, keep.toMillis() / 1000.0, limit);
    }

    /**
     * Returns a handler that applies what a webhook sink posts, each record in a transaction, and answers as docs/wire.md
     * of ordered-dispatcher says.
     *
     * @param secret of the sink, or several with spaces between. With null, no signature is checked, and anybody who
     *     reaches the handler can send records.
     * @throws IllegalArgumentException for a secret that is none
     */
    public InboxHandler handler(DataSource database, String secret, Effect effect) {
        return new InboxHandler(secret, message -> {
            try (Connection connection = database.getConnection()) {
                connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
                connection.setAutoCommit(false);
                try {
                    handle(connection, message, effect);
                    connection.commit();
                } catch (Throwable e) {
                    connection.rollback();
                    throw e;
                }
            }
        });
    }

    private int change(Connection connection, String sql, Object... args) throws SQLException {
        try (PreparedStatement statement = prepare(connection, sql, args)) {
            return statement.executeUpdate();
        }
    }

    private PreparedStatement prepare(Connection connection, String sql, Object... args) throws SQLException {
        PreparedStatement statement = connection.prepareStatement(within(sql));
        for (int i = 0; i < args.length; i++) {
            statement.setObject(i + 1, args[i]);
        }
        return statement;
    }

    private String within(String sql) {
        return sql.replace("{schema}", schema);
    }
}
