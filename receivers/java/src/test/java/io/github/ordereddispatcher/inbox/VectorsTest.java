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
    record Before(long epoch, long sequence, List<String> dedup_keys) {}

    record Vector(String name, List<String> secrets, long now, boolean refuse_gaps, Before before, Map<String, String> headers,
            String body_base64, int status, boolean applied, Map<String, String> answer_headers) {}

    record Vectors(int version, List<Vector> vectors) {}

    @TestFactory
    Stream<DynamicTest> answersAsTheVectorsSay() throws Exception {
        String file = Objects.requireNonNullElse(System.getenv("WIRE_VECTORS"), "../../docs/wire-vectors.json");
        Vectors all = new Gson().fromJson(Files.readString(Path.of(file)), Vectors.class);
        assertEquals(1, all.version);
        assertTrue(all.vectors.size() >= 30);
        return all.vectors.stream().map(vector -> DynamicTest.dynamicTest(vector.name, () -> check(vector)));
    }

    private static void check(Vector vector) throws Exception {
        Fixture.prepare();
        String process = vector.headers.get("ordered-process").replace("refunds", "payments"); // one vector has changed it
        if (vector.before.epoch > 0) {
            Fixture.execute("INSERT INTO public.inbox_process VALUES ('c', ?, ?, ?)", process, vector.before.epoch, vector.before.sequence);
        }
        for (String key : vector.before.dedup_keys) {
            Fixture.execute("INSERT INTO public.inbox (receiver, process, dedup_key) VALUES ('c', ?, ?)", process, key);
        }
        byte[] body = Base64.getDecoder().decode(vector.body_base64);
        var handler = new Inbox("c", "public", vector.refuse_gaps).handler(Fixture.DATABASE, String.join(" ", vector.secrets), (connection, message) -> {
            assertArrayEquals(body, message.body());
            Fixture.effect(connection, message);
        }).withClock(Clock.fixed(Instant.ofEpochSecond(vector.now), ZoneOffset.UTC));
        var answer = Fixture.post(handler, vector.headers, body);
        assertEquals(vector.status, answer.statusCode(), answer.body());
        vector.answer_headers.forEach((name, value) -> assertEquals(value, answer.headers().firstValue(name).orElse("")));
        assertEquals(vector.applied ? 1 : 0, Fixture.effects().size());
    }
}
