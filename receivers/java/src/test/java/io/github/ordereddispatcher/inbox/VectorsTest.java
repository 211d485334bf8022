package io.github.ordereddispatcher.inbox;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.Gson;
import com.google.gson.JsonPrimitive;
import com.google.gson.annotations.SerializedName;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.Base64;
import java.util.HashMap;
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

    /** What is read in a record of a broker. */
    record Read(String process, String origin, long sequence, long epoch, @SerializedName("dedup_key") String dedupKey, boolean replay,
            @SerializedName("claim_check") boolean claimCheck, @SerializedName("content_encoding") String contentEncoding) {}

    record BrokerVector(String name, String protocol, List<List<JsonPrimitive>> headers, String outcome, Read message) {}

    record Vectors(int version, List<Vector> vectors, List<BrokerVector> messages) {}

    private static Vectors all() throws Exception {
        String file = Objects.requireNonNullElse(System.getenv("WIRE_VECTORS"), "../../docs/wire-vectors.json");
        Vectors all = new Gson().fromJson(Files.readString(Path.of(file)), Vectors.class);
        assertEquals(1, all.version);
        assertTrue(all.vectors.size() >= 70);
        assertTrue(all.messages.size() >= 30);
        return all;
    }

    @TestFactory
    Stream<DynamicTest> answersAsTheVectorsSay() throws Exception {
        return all().vectors.stream().map(vector -> DynamicTest.dynamicTest(vector.name, () -> check(vector)));
    }

    @TestFactory
    Stream<DynamicTest> readsMessagesOfBrokersAsTheVectorsSay() throws Exception {
        return all().messages.stream().map(vector -> DynamicTest.dynamicTest(vector.name, () -> check(vector)));
    }

    private static void check(BrokerVector vector) throws Exception {
        Map<String, Object> headers = new HashMap<>();
        vector.headers.forEach(pair -> headers.put(pair.get(0).getAsString(), value(vector.protocol, pair.get(1))));
        String outcome = "record";
        Message got = null;
        try {
            got = vector.protocol.equals("nats") ? Message.fromNats(headers::get, "", new byte[0]) : Message.fromHeaders(headers::get, "", new byte[0]);
        } catch (InboxException.Claim e) {
            outcome = "claim";
        } catch (InboxException.NoMessage e) {
            outcome = "no record";
        } catch (InboxException.OtherVersion e) {
            outcome = "another version";
        }
        assertEquals(vector.outcome, outcome);
        if (got != null) {
            assertEquals(vector.message, new Read(got.process(), got.origin(), got.sequence(), got.epoch(), got.dedupKey(), got.replay(),
                    got.claimCheck(), got.contentEncoding()));
        }
    }

    private static Object value(String protocol, JsonPrimitive value) {
        if (value.isNumber()) {
            return value.getAsLong();
        }
        return protocol.equals("kafka") ? value.getAsString().getBytes(StandardCharsets.UTF_8) : value.getAsString();
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
