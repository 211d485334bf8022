package io.github.ordereddispatcher.inbox;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the vectors do not show. */
class InboxTest {
    private static final Map<String, String> HEADERS = Map.of(
            "ordered-version", "1", "ordered-process", "caf%C3%A9", "ordered-origin", "o", "ordered-sequence", "2", "ordered-epoch", "2", "ordered-dedup-key", "b");

    private final Inbox box = new Inbox("c");

    @BeforeEach
    void prepare() throws SQLException {
        Fixture.prepare();
    }

    private static Message message(long sequence, long epoch, String key) {
        return message("p", "o", sequence, epoch, key, "");
    }

    private static Message message(String process, String origin, long sequence, long epoch, String key, String stream) {
        return new Message(process, origin, sequence, epoch, key, false, stream, "", "", false, "", new byte[0]);
    }

    private Inbox.Outcome handle(Message message) throws Exception {
        return handle(box, message, Fixture::effect);
    }

    private static Inbox.Outcome handle(Inbox box, Message message, Inbox.Effect effect) throws Exception {
        try (Connection connection = Fixture.DATABASE.getConnection()) {
            connection.setAutoCommit(false);
            Inbox.Outcome outcome = box.handle(connection, message, effect); // else closing rolls back
            connection.commit();
            return outcome;
        }
    }

    @Test
    void appliesEachRecordOnce() throws Exception {
        assertEquals(Inbox.Outcome.APPLIED, handle(message(1, 1, "a")));
        assertEquals(Inbox.Outcome.DUPLICATE, handle(message(1, 2, "a")), "a take-over");
        assertEquals(Inbox.Outcome.APPLIED, handle(message(9, 2, "c")), "a gap");
        assertEquals(Inbox.Outcome.DUPLICATE, handle(message(10, 3, "a")), "a seek back");
        Message replay = new Message("p", "o", 3, 3, "d", true, "", "", "", false, "", new byte[0]);
        assertEquals(Inbox.Outcome.APPLIED, handle(replay), "a dead letter is replayed");
        assertEquals(Inbox.Outcome.DUPLICATE, handle(message(3, 1, "d")), "a broker was set back");
        replay = new Message("p", "o", 4, 4, "x", true, "", "", "", false, "", new byte[0]);
        assertEquals(Inbox.Outcome.APPLIED, handle(replay), "it was asked for, from a new worker: that epoch begins with y");
        assertEquals(Inbox.Outcome.APPLIED, handle(message(9, 4, "y")), "its number is of a row that was deleted");
        assertEquals(Inbox.Outcome.DUPLICATE, handle(message(10, 4, "a")));
        assertEquals(4, assertThrows(InboxException.Stale.class, () -> handle(message(11, 3, "e"))).seen());
        assertEquals(10, assertThrows(InboxException.Late.class, () -> handle(message(4, 4, "e"))).last());
        Message other = message("p", "other", 11, 4, "e", "");
        assertEquals("o", assertThrows(InboxException.Origin.class, () -> handle(other)).noted());
        assertEquals(List.of("a", "c", "d", "x", "y"), Fixture.effects());
    }

    @Test
    void notesTheEpochOfAMessageThatIsPutAside() throws Exception {
        handle(message(1, 1, "a"));
        try (Connection connection = Fixture.DATABASE.getConnection()) {
            connection.setAutoCommit(false);
            box.noteEpoch(connection, message(2, 2, "poison"));
            connection.commit();
        }
        assertThrows(InboxException.Stale.class, () -> handle(message(2, 1, "b")));
        assertEquals(new Fixture.Notes("o", 2, 1, List.of("a")), Fixture.noted("p"));
    }

    @Test
    void refusesNoGapsInStreams() throws Exception {
        Inbox strict = new Inbox("c", "public", true);
        var e = assertThrows(IllegalStateException.class, () -> handle(strict, message("p", "o", 1, 1, "a", "1"), Fixture::effect));
        assertTrue(e.getMessage().contains("numbers are missing by nature"), e.getMessage());
        assertEquals(0, Fixture.noted("p").epoch());
    }

    @Test
    void anEffectMayTakeAnotherRole() throws Exception {
        Inbox.Effect limited = (connection, message) -> {
            Fixture.effect(connection, message);
            execute(connection, "SET LOCAL ROLE pg_monitor"); // without rights to the tables of the inbox
        };
        assertEquals(Inbox.Outcome.APPLIED, handle(box, message(1, 1, "a"), limited));
        assertEquals(1, Fixture.noted("p").sequence());
    }

    @Test
    void anEffectThatEndsTheTransactionIsNotApplied() throws Exception {
        Inbox.Effect ends = (connection, message) -> execute(connection, "ROLLBACK");
        assertThrows(IllegalStateException.class, () -> handle(box, message(1, 1, "a"), ends));
        assertEquals(Inbox.Outcome.APPLIED, handle(message(1, 1, "a")));
    }

    @Test
    void anEffectThatBeginsAnotherTransactionIsNotApplied() throws Exception {
        Inbox.Effect begins = (connection, message) -> {
            execute(connection, "COMMIT");
            Fixture.effect(connection, message); // in a transaction that the driver has begun
        };
        assertThrows(IllegalStateException.class, () -> handle(box, message(1, 1, "a"), begins));
        assertEquals(List.of(), Fixture.effects());
    }

    @Test
    void anEffectThatRollsBackItsNoteIsNotApplied() throws Exception {
        for (boolean replay : new boolean[] {false, true}) {
            try (Connection connection = Fixture.DATABASE.getConnection()) {
                connection.setAutoCommit(false);
                Savepoint mine = connection.setSavepoint();
                Inbox.Effect undoes = (on, message) -> {
                    on.rollback(mine);
                    Fixture.effect(on, message);
                    execute(on, "SET LOCAL ROLE pg_monitor"); // without rights to the tables of the inbox
                };
                Message one = new Message("p", "o", 1, 1, "a", replay, "", "", "", false, "", new byte[0]);
                var e = assertThrows(IllegalStateException.class, () -> box.handle(connection, one, undoes));
                assertTrue(e.getMessage().contains("or rolled back to a savepoint from before it"), e.getMessage());
            }
        }
        assertEquals(List.of(), Fixture.effects());
    }

    @Test
    void savepointsThatLeaveTheNoteAreNoFault() throws Exception {
        try (Connection connection = Fixture.DATABASE.getConnection()) {
            connection.setAutoCommit(false);
            Savepoint mine = connection.setSavepoint();
            assertEquals(Inbox.Outcome.APPLIED, box.handle(connection, message(1, 1, "a"), (on, message) -> {
                Savepoint own = on.setSavepoint();
                Fixture.effect(on, message);
                on.rollback(own);
                Fixture.effect(on, message);
                on.releaseSavepoint(mine);
            }));
            connection.commit();
        }
        assertEquals(List.of("a"), Fixture.effects());
        assertEquals(List.of("a"), Fixture.noted("p").dedup_keys());
    }

    private static void execute(Connection connection, String sql) throws SQLException {
        try (var statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    @Test
    void streamsHaveEpochsAndSequencesOfTheirOwnAndOneOrigin() throws Exception {
        assertEquals(Inbox.Outcome.APPLIED, handle(message("p", "o", 7, 2, "a", "0")));
        assertEquals(Inbox.Outcome.APPLIED, handle(message("p", "o", 3, 1, "b", "1")));
        assertEquals(Inbox.Outcome.DUPLICATE, handle(message("p", "o", 4, 1, "a", "1")));
        assertThrows(InboxException.Stale.class, () -> handle(message("p", "o", 8, 1, "c", "0")));
        String longest = "s".repeat(501);
        for (String stream : List.of("0", "1", "2", longest)) {
            assertThrows(InboxException.Origin.class, () -> handle(message("p", "other", 9, 2, "d", stream)));
        }
        assertEquals(Inbox.Outcome.APPLIED, handle(message("p", "o", 1, 1, "d", longest)));
    }

    @Test
    void anOperatorAcceptsAnOrigin() throws Exception {
        handle(message(7, 5, "a"));
        handle(message("p", "o", 7, 5, "b", "1"));
        acceptOrigin("p", "other");
        for (String stream : List.of("", "1")) {
            assertThrows(InboxException.Origin.class, () -> handle(message("p", "o", 8, 5, "c", stream)));
            assertEquals(Inbox.Outcome.DUPLICATE, handle(message("p", "other", 1, 1, "a", stream)));
        }
        assertEquals(Inbox.Outcome.APPLIED, handle(message("p", "other", 2, 1, "c", "")));
        assertThrows(IllegalArgumentException.class, () -> acceptOrigin("p", ""));
    }

    @Test
    void aProcessGetsAnotherName() throws Exception {
        handle(message(1, 5, "a"));
        handle(message("p", "o", 2, 5, "b", "1"));
        handle(message("q", "o", 1, 1, "a", ""));
        rename("p", "new");
        assertEquals(Inbox.Outcome.DUPLICATE, handle(message("new", "o", 1, 5, "a", "")));
        assertThrows(InboxException.Stale.class, () -> handle(message("new", "o", 3, 4, "c", "1")));
        for (String[] c : new String[][] {{"new", "q", "already"}, {"p", "other", "no record of it"}, {"q", "", "empty"}}) {
            var e = assertThrows(IllegalArgumentException.class, () -> rename(c[0], c[1]));
            assertTrue(e.getMessage().contains(c[2]), e.getMessage());
        }
    }

    private void rename(String process, String to) throws SQLException {
        try (Connection connection = Fixture.DATABASE.getConnection()) {
            connection.setAutoCommit(false);
            box.rename(connection, process, to);
            connection.commit();
        }
    }

    private void acceptOrigin(String process, String origin) throws SQLException {
        try (Connection connection = Fixture.DATABASE.getConnection()) {
            connection.setAutoCommit(false);
            box.acceptOrigin(connection, process, origin);
            connection.commit();
        }
    }

    @Test
    void anOperatorAcceptsAGap() throws Exception {
        Inbox strict = new Inbox("c", "public", true);
        handle(strict, message(1, 1, "a"), Fixture::effect);
        assertEquals(1, assertThrows(InboxException.Gap.class, () -> handle(strict, message(5, 1, "e"), Fixture::effect)).last());
        try (Connection connection = Fixture.DATABASE.getConnection()) {
            strict.acceptGap(connection, "p", "", 4);
            assertThrows(IllegalArgumentException.class, () -> strict.acceptGap(connection, "p", "1", 4));
        }
        assertEquals(Inbox.Outcome.APPLIED, handle(strict, message(5, 1, "e"), Fixture::effect));
    }

    @Test
    void anEffectThatFailsLeavesNoNote() throws Exception {
        assertThrows(IllegalStateException.class, () -> handle(box, message(1, 1, "a"), (connection, message) -> {
            Fixture.effect(connection, message);
            throw new IllegalStateException("broken");
        }));
        assertEquals(Inbox.Outcome.APPLIED, handle(message(1, 1, "a")));
        assertEquals(List.of("a"), Fixture.effects());
    }

    @Test
    void twoAtOnceApplyOnce() throws Exception {
        var threads = Executors.newFixedThreadPool(4);
        try {
            for (int i = 1; i <= 10; i++) {
                int sequence = i;
                Callable<Inbox.Outcome> one = () -> handle(message(sequence, 1, "key " + sequence));
                int applied = 0;
                for (Future<Inbox.Outcome> outcome : threads.invokeAll(List.of(one, one, one, one))) {
                    applied += outcome.get() == Inbox.Outcome.APPLIED ? 1 : 0;
                }
                assertEquals(1, applied);
            }
        } finally {
            threads.shutdown();
        }
    }

    @Test
    void refusesAConnectionWithoutATransaction() throws SQLException {
        try (Connection connection = Fixture.DATABASE.getConnection()) {
            assertThrows(IllegalStateException.class, () -> box.handle(connection, message(1, 1, "a"), Fixture::effect));
        }
    }

    @Test
    void theSchemaMayHaveAnyName() throws Exception {
        Inbox odd = new Inbox("c", "odd \"?\"", false);
        Fixture.execute("DROP SCHEMA IF EXISTS \"odd \"\"?\"\"\" CASCADE; CREATE SCHEMA \"odd \"\"?\"\"\"");
        Fixture.execute(odd.sql());
        assertEquals(Inbox.Outcome.APPLIED, handle(odd, message(1, 1, "a"), Fixture::effect));
    }

    @Test
    void pruneNeedsATimeToKeep() {
        for (Duration keep : List.of(Duration.ZERO, Duration.ofHours(-1))) {
            assertThrows(IllegalArgumentException.class, () -> box.prune(null, keep, 1));
        }
        assertThrows(IllegalArgumentException.class, () -> box.prune(null, Duration.ofHours(1), 0));
    }

    @Test
    void pruneForgetsOldKeysALittleAtATime() throws Exception {
        long sequence = 1;
        for (String key : List.of("a", "b", "c")) {
            handle(message(sequence++, 1, key));
        }
        Fixture.execute("UPDATE public.inbox SET received_at = received_at - interval '2 hours' WHERE dedup_key <> 'c'");
        try (Connection connection = Fixture.DATABASE.getConnection()) {
            for (int want : new int[] {1, 1, 0}) {
                assertEquals(want, box.prune(connection, Duration.ofHours(1), 1));
            }
        }
    }

    @Test
    void logsAnEffectThatFailsAndKeepsTheEpoch() throws Exception {
        handle(message("café", "o", 1, 1, "a", ""));
        Map<Integer, Inbox.Effect> failing = Map.of(
                422, (connection, message) -> {
                    Fixture.effect(connection, message);
                    throw new InboxException.Poison("no such room");
                },
                503, (connection, message) -> {
                    Fixture.effect(connection, message);
                    throw new IllegalStateException("a secret detail");
                },
                // PostgreSQL rolls back.
                -503, (connection, message) -> assertThrows(SQLException.class, () -> connection.createStatement().execute("SELECT 1/0")));
        for (var one : failing.entrySet()) {
            List<LogRecord> logged = logged(() -> {
                var answer = post(one.getValue());
                assertEquals(Math.abs(one.getKey()), answer.statusCode());
                assertFalse(answer.body().contains("secret"));
            });
            assertEquals(Level.SEVERE, logged.get(0).getLevel());
            assertTrue(logged.get(0).getMessage().contains("record \"b\" of process \"café\", sequence 2, epoch 2"), logged.get(0).getMessage());
            assertEquals(new Fixture.Notes("o", 2, 1, List.of("a")), Fixture.noted("café"));
            assertEquals(List.of("a"), Fixture.effects());
        }
        assertEquals(200, post(Fixture::effect).statusCode());
        assertEquals(List.of("a", "b"), Fixture.effects());
    }

    @Test
    void logsWhatItRefuses() throws Exception {
        post(Fixture::effect);
        List<LogRecord> logged = logged(() -> {
            var late = post(Fixture::effect, Map.of("ordered-dedup-key", "c"));
            assertEquals(409, late.statusCode());
            assertEquals("2", late.headers().firstValue("ordered-sequence").orElse(""));
        });
        assertEquals(Level.WARNING, logged.get(0).getLevel());
        assertTrue(logged.get(0).getMessage().contains("comes late"), logged.get(0).getMessage());
    }

    @Test
    void escapesWhatCouldActOnALogOrATerminal() throws Exception {
        String escaped = "%0D%0A%1B[2J%C2%9B%22%E2%80%A8%E2%80%AE%F3%A0%80%81"; // C1, a line separator, bidi, a tag
        String shown = "\\u000d\\u000a\\u001b[2J\\u009b\\\"\\u2028\\u202e\\udb40\\udc01\"";
        post(Fixture::effect);
        for (var one : Map.of(
                Map.of("ordered-dedup-key", "%C3%BC" + escaped), "record \"ü" + shown + " of process",
                Map.of("ordered-process", "p" + escaped + "%00"), "\"p" + shown.substring(0, shown.length() - 1) + "\\u0000\" has a NUL",
                Map.of("ordered-sequence", escaped), "ordered-sequence is \"" + shown + ", which",
                Map.of("ordered-version", escaped), "version \"" + shown + " of the contract",
                Map.of("ordered-origin", escaped), "has origin \"" + shown + ", and").entrySet()) {
            String logged = logged(() -> post(Fixture::effect, one.getKey())).get(0).getMessage();
            assertTrue(logged.contains(one.getValue()), logged);
            assertTrue(logged.codePoints().allMatch(c -> c >= ' ' && c != 0x9B && c != 0x2028 && c != 0x202E), logged);
        }
    }

    @Test
    void logsARequestThatItRefuses() throws Exception {
        List<LogRecord> logged = logged(() -> assertEquals(400, post(Fixture::effect, Map.of("ordered-epoch", "0")).statusCode()));
        assertEquals(Level.WARNING, logged.get(0).getLevel());
        assertTrue(logged.get(0).getMessage().contains("the request was refused: remote /127.0.0.1:"), logged.get(0).getMessage());
        InboxHandler signed = box.handler(Fixture.DATABASE, "another-secret-of-the-sender", Fixture::effect);
        logged = logged(() -> assertEquals(401, Fixture.post(signed, HEADERS, "{}".getBytes()).statusCode()));
        assertTrue(logged.get(0).getMessage().contains("status 401"), logged.get(0).getMessage());
    }

    /** What fails after the cause must not hide it: a lost connection cannot roll back. */
    @Test
    void showsTheCauseIfTheConnectionIsLostAndTakesItForNoAnswer() throws Exception {
        for (Exception cause : List.of(new IllegalStateException("the cause"), new InboxException.Poison("the cause"))) {
            List<LogRecord> logged = logged(() -> assertEquals(503, post((connection, message) -> {
                connection.close();
                throw cause;
            }).statusCode()));
            assertEquals(cause, logged.get(0).getThrown().getCause());
            assertTrue(cause.getSuppressed().length > 0);
        }
    }

    private HttpResponse<String> post(Inbox.Effect effect) throws Exception {
        return post(effect, Map.of());
    }

    private HttpResponse<String> post(Inbox.Effect effect, Map<String, String> change) throws Exception {
        Map<String, String> headers = new HashMap<>(HEADERS);
        headers.putAll(change);
        return Fixture.post(box.unsignedHandler(Fixture.DATABASE, effect), headers, "{}".getBytes());
    }

    private interface Action {
        void run() throws Exception;
    }

    /** Returns what the handler logs meanwhile. */
    private static List<LogRecord> logged(Action action) throws Exception {
        List<LogRecord> records = new CopyOnWriteArrayList<>();
        Logger logger = Logger.getLogger(InboxHandler.class.getName());
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord record) {
                records.add(record);
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        logger.addHandler(handler);
        try {
            action.run();
        } finally {
            logger.removeHandler(handler);
        }
        assertEquals(1, records.size());
        return records;
    }

    @Test
    void aNotedOriginIsEscapedInTheAnswer() throws Exception {
        acceptOrigin("café", "a \"b\"%ü");
        assertEquals("a%20%22b%22%25%C3%BC", post(Fixture::effect).headers().firstValue("ordered-origin").orElse(""));
    }

    @Test
    void refusesWhatIsNoRecord() throws Exception {
        for (String[] change : new String[][] {
            {"ordered-sequence", "1x"}, {"ordered-epoch", "0"}, {"ordered-epoch", "9223372036854775808"}, {"ordered-dedup-key", ""},
            {"ordered-origin", ""}, {"ordered-process", "a%00b"}, {"ordered-origin", "a%FF"}
        }) {
            assertEquals(400, post(Fixture::effect, Map.of(change[0], change[1])).statusCode(), change[0] + ": " + change[1]);
        }
        assertEquals(List.of(), Fixture.effects());
    }

    @Test
    void takesNothingButPost() throws Exception {
        var answer = Fixture.send(box.unsignedHandler(Fixture.DATABASE, Fixture::effect), "PUT", List.of(), new byte[0]);
        assertEquals(405, answer.statusCode());
        assertEquals("POST", answer.headers().firstValue("allow").orElse(""));
    }

    @Test
    void refusesABodyThatIsTooLarge() throws Exception {
        int most = 64 << 20;
        var handler = box.unsignedHandler(Fixture.DATABASE, Fixture::effect);
        var answer = Fixture.post(handler, HEADERS, new byte[most + 1]);
        assertEquals(413, answer.statusCode());
        assertEquals("the body is too large: it may have " + most + " bytes", answer.body());
        assertEquals(List.of(), Fixture.effects());
        assertEquals(200, Fixture.post(handler, HEADERS, new byte[most]).statusCode());
    }

    /** The sender is gone by then, so nobody reads the answer: but a part of a body must not become a record. */
    @Test
    void doesNotApplyABodyThatIsCutOff() throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", box.unsignedHandler(Fixture.DATABASE, Fixture::effect));
        server.start();
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.getAddress().getPort())) {
            StringBuilder request = new StringBuilder("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n");
            HEADERS.forEach((name, value) -> request.append(name).append(": ").append(value).append("\r\n"));
            socket.getOutputStream().write(request.append("\r\n{}").toString().getBytes());
            socket.shutdownOutput();
            String answer = new String(socket.getInputStream().readAllBytes());
            assertTrue(answer.isEmpty() || answer.startsWith("HTTP/1.1 408"), answer);
        } finally {
            server.stop(0);
        }
        assertEquals(List.of(), Fixture.effects());
    }

    @Test
    void refusesAnotherVersionOfTheContract() {
        Map<String, String> headers = new HashMap<>(HEADERS);
        headers.put("ordered-version", "2");
        var e = assertThrows(InboxException.OtherVersion.class, () -> Message.fromHeaders(headers::get, "", new byte[0]));
        assertTrue(e.getMessage().contains("version \"2\" of the contract"), e.getMessage());
        headers.remove("ordered-version");
        assertThrows(InboxException.NoMessage.class, () -> Message.fromHeaders(headers::get, "", new byte[0]));
    }

    @Test
    void readsTheBytesOfKafka() throws Exception {
        Map<String, Object> headers = new HashMap<>(HEADERS);
        headers.put("ordered-process", "é".getBytes(StandardCharsets.UTF_8));
        assertEquals("é", Message.fromHeaders(headers::get, "", new byte[0]).process());
        headers.put("ordered-process", new byte[] {'a', (byte) 0xFF});
        assertThrows(InboxException.NoMessage.class, () -> Message.fromHeaders(headers::get, "", new byte[0]));
    }

    @Test
    void showsThatAPayloadIsNotWhole() throws Exception {
        Map<String, String> headers = new HashMap<>(HEADERS);
        assertFalse(Message.fromUnsignedRequest(single(headers), new byte[0]).claimCheck());
        headers.putAll(Map.of("ordered-claim-check", "true", "ordered-content-encoding", "zstd"));
        Message got = Message.fromUnsignedRequest(single(headers), new byte[0]);
        assertTrue(got.claimCheck());
        assertEquals("zstd", got.contentEncoding());
    }

    @Test
    void readsEscapedValuesAndLeavesTheRest() throws Exception {
        Map<String, String> headers = new HashMap<>(HEADERS);
        headers.putAll(Map.of("ordered-dedup-key", "a%20b+c", "Ordered-Key", "50%", "ordered-type", "\u00c3\u00a9", "ordered-replay", "true"));
        Message got = Message.fromUnsignedRequest(single(headers), "x".getBytes());
        assertEquals(List.of("café", "a b+c", "50%", "é"), List.of(got.process(), got.dedupKey(), got.key(), got.type()));
        assertTrue(got.replay());
        assertArrayEquals("x".getBytes(), got.body());
        headers.put("Ordered-Key", "%41".repeat(100_000) + "%4");
        headers.put("ordered-type", "%41".repeat(100_000));
        got = Message.fromUnsignedRequest(single(headers), new byte[0]);
        assertEquals(300_002, got.key().length(), "no escape");
        assertEquals("A".repeat(100_000), got.type());
    }

    private static Map<String, List<String>> single(Map<String, String> headers) {
        Map<String, List<String>> lists = new HashMap<>();
        headers.forEach((name, value) -> lists.put(name, List.of(value)));
        return lists;
    }

    @Test
    void namesSecretsThatAreNoneAndQuotesNothingOfThem() {
        for (String[] c : new String[][] {{null, "is missing"}, {"", "is missing"}, {" ", "is missing"}, {"whsec_!", "not base64"}, {"tooshort", "a key of 8 bytes"}}) {
            var e = assertThrows(IllegalArgumentException.class, () -> box.handler(Fixture.DATABASE, c[0], Fixture::effect));
            assertTrue(e.getMessage().contains(c[1]) && !e.getMessage().contains("tooshort"), e.getMessage());
        }
    }
}
