package io.github.ordereddispatcher.inbox;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.function.Function;
import java.util.function.UnaryOperator;

/**
 * A record as a sink sends it.
 *
 * @param process the name of the process
 * @param origin identifies the cursor of the process
 * @param sequence its number in the process, from 1
 * @param epoch the fencing token, from 1
 * @param dedupKey identifies the record
 * @param replay true for a dead letter that is replayed, out of its turn
 * @param stream names the part of the process's records that has an order of its own: a partition of Kafka, or an
 *     ordering key of Pub/Sub; "" where all records have one order, as over HTTP
 * @param type "" if it has none
 * @param key "" if it has none
 * @param claimCheck true if body is a reference to an object, and not the payload
 * @param contentEncoding how the payload is encoded, such as "zstd"; "" if it is not
 * @param body the payload, or its reference
 * @param test true for a test, which is no record: an inbox applies and notes nothing
 */
public record Message(String process, String origin, long sequence, long epoch, String dedupKey, boolean replay, String stream,
        String type, String key, boolean claimCheck, String contentEncoding, byte[] body, boolean test) {
    /** Returns a record, and no test. */
    public Message(String process, String origin, long sequence, long epoch, String dedupKey, boolean replay, String stream,
            String type, String key, boolean claimCheck, String contentEncoding, byte[] body) {
        this(process, origin, sequence, epoch, dedupKey, replay, stream, type, key, claimCheck, contentEncoding, body, false);
    }

    /**
     * Checks a request of the webhook sink, and returns the record in it.
     *
     * @param headers the values of each header that came, with names in any case
     * @param secret of the sink, or several with spaces between
     * @param now the receiver's clock
     * @throws InboxException.BadSignature
     * @throws InboxException.NoMessage
     * @throws InboxException.OtherVersion
     * @throws IllegalArgumentException for a secret that is none
     */
    public static Message fromRequest(Map<String, List<String>> headers, byte[] body, String secret, Instant now) throws InboxException {
        List<byte[]> keys = Signature.parse(secret);
        SortedMap<String, String> found = Signature.single(headers);
        Signature.requireTimely(found, now);
        Signature.requireSigned(found, body, keys);
        return fromHeaders(name -> unescape(raw(found, name)), "", body);
    }

    /** Does the same, but checks no signature. Then anybody who reaches the receiver can send records. */
    public static Message fromUnsignedRequest(Map<String, List<String>> headers, byte[] body) throws InboxException {
        SortedMap<String, String> found = Signature.single(headers);
        return fromHeaders(name -> unescape(raw(found, name)), "", body);
    }

    /** Returns what came: servers read the bytes of a header as ISO 8859-1. */
    private static byte[] raw(SortedMap<String, String> headers, String name) {
        return headers.getOrDefault(name, "").getBytes(StandardCharsets.ISO_8859_1);
    }

    /**
     * Reads headers, properties or attributes. For NATS, call fromNats.
     *
     * @param header returns the value of one: a text, a number of AMQP, or the bytes of Kafka; null or "" if it is absent
     * @throws InboxException.NoMessage
     * @throws InboxException.OtherVersion
     */
    public static Message fromHeaders(Function<String, ?> header, String stream, byte[] body) throws InboxException {
        UnaryOperator<String> get = name -> text(header.apply(name));
        String process = get.apply("ordered-process");
        String dedupKey = get.apply("ordered-dedup-key");
        String version = get.apply("ordered-version");
        if (!process.isEmpty() && dedupKey.isEmpty() && version.isEmpty()) { // every record has these two
            throw new InboxException.Claim();
        }
        requireVersion(version);
        Message message = new Message(process, get.apply("ordered-origin"), number(get, "ordered-sequence"),
                number(get, "ordered-epoch"), dedupKey, get.apply("ordered-replay").equals("true"), stream,
                get.apply("ordered-type"), get.apply("ordered-key"), get.apply("ordered-claim-check").equals("true"),
                get.apply("ordered-content-encoding"), body, get.apply("ordered-test").equals("true"));
        message.validate();
        return message;
    }

    /**
     * Does what fromHeaders does with a message of NATS, whose values are percent-encoded.
     *
     * @param header getFirst of its Headers
     * @throws InboxException.Claim
     * @throws InboxException.NoMessage
     * @throws InboxException.OtherVersion
     */
    public static Message fromNats(Function<String, ?> header, String stream, byte[] body) throws InboxException {
        if (text(header.apply("ordered-version")).isEmpty() && !text(header.apply("Nats-Marker-Reason")).isEmpty()) {
            throw new InboxException.Claim();
        }
        return fromHeaders(name -> unescape(text(header.apply(name)).getBytes(StandardCharsets.UTF_8)), stream, body);
    }

    /** @throws InboxException.NoMessage if an inbox cannot note the message */
    void validate() throws InboxException {
        if (process.isEmpty() || origin.isEmpty() || dedupKey.isEmpty() || sequence < 1 || epoch < 1) {
            throw new InboxException.NoMessage("it lacks a process, an origin, a dedup key, a sequence or an epoch");
        }
        for (String text : List.of(process, origin, dedupKey, stream)) {
            if (text.indexOf('\0') >= 0 || !StandardCharsets.UTF_8.newEncoder().canEncode(text)) {
                throw new InboxException.NoMessage(quoted(text) + " has a NUL, or is not UTF-8");
            }
        }
    }

    /** What errors call the record. */
    String name() {
        return "record " + quoted(dedupKey) + " of process " + quoted(process);
    }

    /** Quotes a text of a sender for a log or a terminal: no line ends in it, and no control character acts. */
    static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        text.codePoints().forEach(c -> {
            switch (Character.getType(c)) {
                case Character.CONTROL, Character.FORMAT, Character.LINE_SEPARATOR, Character.PARAGRAPH_SEPARATOR, Character.SURROGATE -> {
                    for (char unit : Character.toChars(c)) {
                        quoted.append(String.format("\\u%04x", (int) unit));
                    }
                }
                default -> quoted.append(c == '"' || c == '\\' ? "\\" : "").appendCodePoint(c);
            }
        });
        return quoted.append('"').toString();
    }

    /** Comes first: in another version, names may be missing or mean something else. */
    private static void requireVersion(String version) throws InboxException {
        if (version.isEmpty()) {
            throw new InboxException.NoMessage("it lacks ordered-version");
        }
        if (!version.equals(InboxException.OtherVersion.KNOWN)) {
            throw new InboxException.OtherVersion(version);
        }
    }

    private static long number(UnaryOperator<String> get, String name) throws InboxException {
        String value = get.apply(name);
        try {
            if (value.matches("[0-9]{1,19}")) {
                return Long.parseLong(value);
            }
        } catch (NumberFormatException e) {
            // as below
        }
        throw new InboxException.NoMessage(name + " is " + quoted(value) + ", which is no number of 64 bits");
    }

    /** Returns a value as text. Bytes that are not UTF-8 become lone surrogates, which validate refuses where it matters. */
    private static String text(Object value) {
        if (!(value instanceof byte[] bytes)) {
            return value == null ? "" : value.toString();
        }
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
        } catch (CharacterCodingException e) {
            StringBuilder text = new StringBuilder();
            for (byte b : bytes) {
                text.append((char) (b < 0 ? 0xDC00 + (b & 0xFF) : b));
            }
            return text.toString();
        }
    }

    /** Undoes what the sinks webhook and nats do to values of a record. What is no escape stays as it is. */
    private static byte[] unescape(byte[] escaped) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (int i = 0; i < escaped.length; i++) {
            if (escaped[i] != '%') {
                bytes.write(escaped[i]);
                continue;
            }
            int high = i + 2 < escaped.length ? Character.digit(escaped[i + 1], 16) : -1;
            int low = high >= 0 ? Character.digit(escaped[i + 2], 16) : -1;
            if (low < 0) {
                return escaped;
            }
            bytes.write(high << 4 | low);
            i += 2;
        }
        return bytes.toByteArray();
    }
}
