package io.github.ordereddispatcher.inbox;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.time.Clock;
import java.time.Duration;
import java.util.HexFormat;
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
        DUPLICATE,
        /** It is a test, and no record: the effect was not called, and nothing is noted. */
        TESTED
    }

    /** What is known of a process in a stream. */
    private record Notes(String origin, long epoch, long sequence) {}

    /** Where a message was noted. */
    private record Part(long transaction, long subtransaction) {}

    private static final int MAX_NOTED = 500; // bytes of a text in an index

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
     *     ordered-dispatcher. It is for receivers that get all records of a process in one stream, and whose program
     *     calls acceptGap when an operator says so. The first message of a process may have any number. A message with a
     *     stream is an error then: a stream has only some of the numbers.
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
     * unless the message has been applied, or is refused. After an exception, also one of effect, the caller rolls back;
     * else it commits, and then acknowledges the message. A rollback forgets the message's epoch, too. Over HTTP a
     * superseded worker may send at that moment, so handler keeps the epoch. A caller that puts the message aside calls
     * noteEpoch.
     *
     * @throws InboxException.Origin
     * @throws InboxException.Stale
     * @throws InboxException.Late
     * @throws InboxException.Gap
     * @throws InboxException.NoMessage
     * @throws IllegalStateException if the connection commits each statement by itself
     */
    public Outcome handle(Connection connection, Message message, Effect effect) throws Exception {
        if (message.test()) {
            message.validate();
            return Outcome.TESTED;
        }
        return settle(connection, enter(connection, message), message, effect);
    }

    /**
     * Notes the epoch of a message, unless it is a replay, and nothing else. It is for a program that puts a message of a
     * broker aside that it could not apply: then a message of a superseded worker that comes next is refused. The caller
     * commits.
     *
     * @throws InboxException.Origin
     * @throws InboxException.NoMessage
     */
    public void noteEpoch(Connection connection, Message message) throws SQLException, InboxException {
        if (!message.test()) {
            enter(connection, message);
        }
    }

    /**
     * Has handle accept messages of that origin from now on, and refuse those of the one before. It is for an operator
     * who knows that one database has replaced another. Epochs and sequences begin again, in all streams. The dedup keys
     * stay: a record that has been applied is a duplicate from either origin. So two senders that are both in use need
     * two names, and not this. The caller commits.
     */
    public void acceptOrigin(Connection connection, String process, String origin) throws SQLException {
        requireTransaction(connection);
        if (process.isEmpty() || origin.isEmpty()) {
            throw new IllegalArgumentException("accept an origin: a process and an origin are needed");
        }
        change(connection, Statements.ADOPT, receiver, process, origin);
        change(connection, Statements.ADOPT_STREAMS, origin, receiver, process, origin);
    }

    /**
     * Has handle accept the record after the number through, although records up to it have not come. It is for an
     * operator who knows why they have not: a skip, a record that was put aside, a promotion, a restore. The caller
     * commits, unless the connection does.
     *
     * @param stream "" where all records have one order
     * @throws IllegalArgumentException if nothing has come from the process in that stream: the first record may have any
     *     number
     */
    public void acceptGap(Connection connection, String process, String stream, long through) throws SQLException {
        if (change(connection, Statements.ADVANCE, through, receiver, process, noted(stream)) == 0) {
            throw new IllegalArgumentException("accept a gap: receiver \"" + receiver + "\" has no record of process \"" + process
                    + "\" in stream \"" + stream + "\"");
        }
    }

    /**
     * Moves what is noted of a process to another name, as an operator did with {@code process rename}. Call it before a
     * worker sends under the new name: otherwise records that come again are applied again. The caller commits.
     *
     * @throws IllegalArgumentException if the receiver has no record of the process, or has one under the new name
     */
    public void rename(Connection connection, String process, String to) throws SQLException {
        requireTransaction(connection);
        String what = "rename process \"" + process + "\": ";
        if (to.isEmpty()) {
            throw new IllegalArgumentException(what + "the new name is empty");
        }
        if (isKnown(connection, to, "")) {
            throw new IllegalArgumentException(what + "receiver \"" + receiver + "\" has records under the name \"" + to + "\" already");
        }
        if (change(connection, Statements.RENAME, to, receiver, process) == 0) {
            throw new IllegalArgumentException(what + "receiver \"" + receiver + "\" has no record of it");
        }
        change(connection, Statements.RENAME_KEYS, to, receiver, process);
    }

    /**
     * Forgets keys that came longer ago than keep, at most limit of them, and returns how many. A record that comes
     * again after that is refused if its request is an old one, by its epoch or its sequence. It is applied again if it
     * was sent anew: after an operator's seek back, as a dead letter that is replayed, by a process whose last outcome
     * was unknown and that was halted or paused since, or after a failover or a restore took back the advance of the
     * cursor. So keep more than the longest of these may take.
     *
     * @throws IllegalArgumentException unless keep and limit are positive
     */
    public int prune(Connection connection, Duration keep, int limit) throws SQLException {
        if (keep.isNegative() || keep.isZero() || limit < 1) {
            throw new IllegalArgumentException("prune: keep and limit must be positive, got " + keep + " and " + limit);
        }
        return change(connection, Statements.PRUNE, receiver, keep.getSeconds() + keep.getNano() / 1e9, limit);
    }

    /**
     * Returns a handler that applies what a webhook sink posts, each record in a transaction, and answers as docs/wire.md
     * of ordered-dispatcher says.
     *
     * @param secret of the sink, or several with spaces between
     * @throws IllegalArgumentException for a secret that is none
     */
    public InboxHandler handler(DataSource database, String secret, Effect effect) {
        Signature.parse(secret); // a bad one shows at the start, not at the first record
        return new InboxHandler(secret, message -> apply(database, message, effect), Clock.systemUTC());
    }

    /** Does the same, but checks no signature. Then anybody who reaches the handler can send records. */
    public InboxHandler unsignedHandler(DataSource database, Effect effect) {
        return new InboxHandler(null, message -> apply(database, message, effect), Clock.systemUTC());
    }

    /**
     * Commits the effect of a record together with the note of it. A record that is not applied leaves a larger epoch
     * noted, so that a superseded worker is refused from then on.
     */
    private void apply(DataSource database, Message message, Effect effect) throws Exception {
        try (Connection connection = database.getConnection()) {
            connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            connection.setAutoCommit(false);
            Exception failed;
            try {
                failed = attempt(connection, message, effect);
                connection.commit();
            } catch (Throwable e) {
                undo(e, connection::rollback);
                throw e;
            }
            if (failed != null) {
                throw failed;
            }
        }
    }

    /** Returns why a record was not applied, or null. The transaction can be committed. */
    private Exception attempt(Connection connection, Message message, Effect effect) throws Exception {
        Notes before = enter(connection, message);
        Savepoint entered = connection.setSavepoint();
        try {
            settle(connection, before, message, effect);
            return null;
        } catch (Exception e) {
            if (!undo(e, () -> connection.rollback(entered))) { // what was refused was not noted either, so it is no answer
                throw new SQLException("the transaction is lost: " + e.getMessage(), e);
            }
            return e;
        }
    }

    private interface Undo {
        void run() throws SQLException;
    }

    /** Undoes what failed, and returns whether it could. What fails here must not hide the cause. */
    private static boolean undo(Throwable cause, Undo undo) {
        try {
            undo.run();
            return true;
        } catch (SQLException e) {
            cause.addSuppressed(e);
            return false;
        }
    }

    /** Locks the notes of the stream, refuses another origin, and notes a larger epoch. */
    private Notes enter(Connection connection, Message message) throws SQLException, InboxException {
        requireTransaction(connection);
        message.validate();
        if (refuseGaps && !message.stream().isEmpty()) {
            throw new IllegalStateException("refuseGaps is set, and the message has a stream, in which numbers are missing by nature: "
                    + "leave the stream \"\" if all records of the process come in one order");
        }
        open(connection, message);
        return lock(connection, message, message.stream(), message.replay() ? 0 : message.epoch()); // a replay begins no epoch
    }

    /**
     * Compares the origin of the first message of a stream with the origin of the process. Dedup keys belong to the
     * process, so all its streams have one origin.
     */
    private void open(Connection connection, Message message) throws SQLException, InboxException {
        if (message.stream().isEmpty()) {
            return;
        }
        if (isKnown(connection, message.process(), message.stream())) {
            return;
        }
        lock(connection, message, "", 0); // this row is the process's own: it stays locked until the stream has a row
    }

    private boolean isKnown(Connection connection, String process, String stream) throws SQLException {
        try (PreparedStatement known = prepare(connection, Statements.KNOWN, receiver, process, noted(stream));
                ResultSet row = known.executeQuery()) {
            return row.next();
        }
    }

    /** Returns the notes of a stream, with a larger epoch noted. */
    private Notes lock(Connection connection, Message message, String stream, long epoch) throws SQLException, InboxException {
        long last = message.sequence() - 1;
        try (PreparedStatement lock = prepare(connection, Statements.LOCK, receiver, message.process(), noted(stream), message.origin(), epoch, last);
                ResultSet row = lock.executeQuery()) {
            row.next();
            Notes notes = new Notes(row.getString("origin"), row.getLong("epoch"), row.getLong("sequence"));
            if (!notes.origin.equals(message.origin())) {
                throw new InboxException.Origin(message, notes.origin);
            }
            return notes;
        }
    }

    /** Applies a message that enter has let in. The order of its cases is that of docs/wire.md. */
    private Outcome settle(Connection connection, Notes before, Message message, Effect effect) throws Exception {
        if (change(connection, Statements.NOTE, receiver, message.process(), noted(message.dedupKey())) == 0) {
            if (message.epoch() >= before.epoch) {
                advance(connection, message); // after a seek back, this number is the one before the next
            }
            return Outcome.DUPLICATE;
        }
        if (message.epoch() < before.epoch) { // before the sequence: a superseded worker's numbers mean nothing
            throw new InboxException.Stale(message, before.epoch);
        }
        if (!message.replay()) { // its number is an old one
            requireNext(before.sequence, message);
        }
        Part written = advance(connection, message); // before the effect, which may take a role without rights to the tables
        effect.apply(connection, message);
        requireOpen(connection, written);
        return Outcome.APPLIED;
    }

    /** Fails also where the effect has caught an error of a statement. */
    private void requireOpen(Connection connection, Part written) throws SQLException {
        try (PreparedStatement statement = prepare(connection, Statements.OPEN, written.transaction, written.subtransaction);
                ResultSet open = statement.executeQuery()) {
            if (!open.next()) {
                throw new IllegalStateException("the effect ended the transaction, or rolled back to a savepoint from before it: "
                        + "use a savepoint of the effect, and leave COMMIT and ROLLBACK to the inbox");
            }
        }
    }

    private void requireNext(long last, Message message) throws InboxException {
        if (message.sequence() <= last) {
            throw new InboxException.Late(message, last);
        }
        if (refuseGaps && last > 0 && message.sequence() > last + 1) {
            throw new InboxException.Gap(message, last);
        }
    }

    /**
     * Notes a larger sequence, and returns where it did. A replay is out of turn, so its number says nothing of the records
     * before it.
     */
    private Part advance(Connection connection, Message message) throws SQLException {
        long sequence = message.replay() ? 0 : message.sequence();
        try (PreparedStatement advance = prepare(connection, Statements.ADVANCE_RETURNING, sequence, receiver, message.process(), noted(message.stream()));
                ResultSet row = advance.executeQuery()) {
            row.next();
            return new Part(row.getLong("transaction"), row.getLong("subtransaction"));
        }
    }

    /** Returns a dedup key or a stream as the tables have it: itself, or its SHA-256 if it is long. */
    private static String noted(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return bytes.length <= MAX_NOTED ? text : "sha256:" + HexFormat.of().formatHex(Signature.sha256(bytes));
    }

    private static void requireTransaction(Connection connection) throws SQLException {
        if (connection.getAutoCommit()) {
            throw new IllegalStateException("the inbox needs an open transaction: call setAutoCommit(false) first");
        }
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
