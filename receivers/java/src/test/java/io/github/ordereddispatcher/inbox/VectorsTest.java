package io.github.ordereddispatcher.inbox;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.Gson;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Answers as docs/wire-vectors.json says. */
class VectorsTest {
    record Vector(String name, List<String> secrets, double now, boolean refuse_gaps, String process, Fixture.Notes before,
            List<List<String>> headers, String body_base64, String effect, int status, Map<String, String> answer_headers, boolean applied,
            Fixture.Notes after) {}

    record Vectors(int version, List<Vector> vectors) {}

    @TestFactory
    Stream<DynamicTest> answersAsTheVectorsSay() throws Exception {
        String file = Objects.requireNonNullElse(System.getenv("WIRE_VECTORS"), "../../docs/wire-vectors.json");
        Vectors all = new Gson().fromJson(Files.readString(Path.of(file)), Vectors.class);
        assertEquals(1, all.version);
        assertTrue(all.vectors.size() >= 70);
        return all.vectors.stream().map(vector -> DynamicTest.dynamicTest(vector.name, () -> check(vector)));
    }

    private static void check(Vector vector) throws Exception {
        Fixture.put(vector.process, vector.before);
        byte[] body = Base64.getDecoder().decode(vector.body_base64);
        var handler = new Inbox("c", "public", vector.refuse_gaps).handler(Fixture.DATABASE, String.join(" ", vector.secrets), (connection, message) -> {
            assertArrayEquals(body, message.body());
            Fixture.effect(connection, message);
            switch (vector.effect) {
                case "fails" -> throw new IllegalStateException("the account is locked");
                case "fails for good" -> throw new InboxException.Poison("no such account");
                default -> assertEquals("applies", vector.effect);
            }
        }).withClock(Clock.fixed(Instant.ofEpochMilli((long) (vector.now * 1000)), ZoneOffset.UTC));
        var answer = Fixture.send(handler, "POST", vector.headers, body);
        assertEquals(vector.status, answer.statusCode(), answer.body());
        for (String name : List.of("ordered-version", "ordered-origin", "ordered-epoch", "ordered-sequence")) {
            assertEquals(vector.answer_headers.get(name), answer.headers().firstValue(name).orElse(null));
        }
        assertEquals(vector.applied ? 1 : 0, Fixture.effects().size());
        assertEquals(vector.after, Fixture.noted(vector.process));
    }
}
