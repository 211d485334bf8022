package io.github.ordereddispatcher.inbox;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the vectors do not show. */
class InboxTest {
    private static final Map<String, String> HEADERS = Map.of(
            "ordered-process", "caf%C3%A9", "ordered-sequence", "1", "ordered-epoch", "1", "ordered-dedup-key", "a");

    private final Inbox box = new Inbox("c");

    @BeforeEach
    void prepare() throws SQLException {
        Fixture.prepare();
    }

    private static Message message(long sequence, long epoch, String key) {
        return new Message("p", sequence, epoch, key, "", "", new byte[0]);
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
        assertEquals(Inbox.Outcome.APPLIED, handle(message(3, 3, "d")), "a dead letter is replayed");
        assertEquals(3, assertThrows(InboxException.Stale.class, () -> handle(message(11, 2, "e"))).seen());
        Inbox strict = new Inbox("c", "public", true);
        assertEquals(9, assertThrows(InboxException.Gap.class, () -> handle(strict, message(11, 3, "e"), Fixture::effect)).last());
        assertEquals(List.of("a", "c", "d"), Fixture.effects());
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
            for (String key : "abcdefghij".split("")) {
                Callable<Inbox.Outcome> one = () -> handle(message(1, 1, key));
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
    void saysWhetherTheRecordMayComeAgain() throws Exception {
        var never = Fixture.post(box.handler(Fixture.DATABASE, null, (connection, message) -> {
            throw new InboxException.Poison("no such room");
        }), HEADERS, new byte[0]);
        assertEquals(422, never.statusCode());
        assertEquals("no such room", never.body());
        var later = Fixture.post(box.handler(Fixture.DATABASE, null, (connection, message) -> {
            throw new IllegalStateException("a detail that is nobody's business");
        }), HEADERS, new byte[0]);
        assertEquals(503, later.statusCode());
        assertFalse(later.body().contains("detail"));
        var careless = Fixture.post(box.handler(Fixture.DATABASE, null, (connection, message) -> {
            assertThrows(SQLException.class, () -> connection.createStatement().execute("SELECT 1/0"));
        }), HEADERS, new byte[0]);
        assertEquals(503, careless.statusCode(), "PostgreSQL rolls back");
        var done = Fixture.post(box.handler(Fixture.DATABASE, null, (connection, message) -> {
            assertEquals("café", message.process());
            Fixture.effect(connection, message);
        }), HEADERS, "{}".getBytes());
        assertEquals(200, done.statusCode(), done.body());
        assertEquals(List.of("a"), Fixture.effects());
    }

    @Test
    void refusesWhatIsNoRecord() throws Exception {
        for (String[] change : new String[][] {
            {"ordered-sequence", "1x"}, {"ordered-epoch", "0"}, {"ordered-epoch", "9223372036854775808"}, {"ordered-dedup-key", ""}
        }) {
            Map<String, String> headers = new HashMap<>(HEADERS);
            headers.put(change[0], change[1]);
            assertEquals(400, Fixture.post(box.handler(Fixture.DATABASE, null, Fixture::effect), headers, new byte[0]).statusCode());
        }
        assertEquals(List.of(), Fixture.effects());
    }

    @Test
    void readsEscapedValuesAndLeavesTheRest() throws Exception {
        Map<String, String> headers = new HashMap<>(HEADERS);
        headers.putAll(Map.of("ordered-dedup-key", "a%20b+c", "ordered-key", "50%", "ordered-type", "%FF"));
        Message got = Message.fromRequest(headers::get, "x".getBytes(), null, null);
        assertEquals(List.of("café", "a b+c", "50%", "%FF"), List.of(got.process(), got.dedupKey(), got.key(), got.type()));
        assertArrayEquals("x".getBytes(), got.body());
        headers.put("ordered-key", "%41".repeat(100_000) + "%4");
        headers.put("ordered-type", "%41".repeat(100_000));
        got = Message.fromRequest(headers::get, new byte[0], null, null);
        assertEquals(300_002, got.key().length(), "no escape");
        assertEquals("A".repeat(100_000), got.type());
    }

    @Test
    void namesSecretsThatAreNoneAndQuotesNothingOfThem() {
        for (String[] c : new String[][] {{"", "is blank"}, {"whsec_!", "not base64"}, {"tooshort", "a key of 8 bytes"}}) {
            var e = assertThrows(IllegalArgumentException.class, () -> box.handler(Fixture.DATABASE, c[0], Fixture::effect));
            assertTrue(e.getMessage().contains(c[1]) && !e.getMessage().contains("tooshort"), e.getMessage());
        }
    }
}
