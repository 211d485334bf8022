package io.github.ordereddispatcher.inbox;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/** A record as a sink sends it. Sequence and epoch count from 1. Type and key are "" if it has none. */
public record Message(String process, long sequence, long epoch, String dedupKey, String type, String key, byte[] body) {
    private static final long TOLERANCE = 300; // seconds between a signature's time and the receiver's clock

    /**
     * Checks a request of the webhook sink, and returns the record in it.
     *
     * @param header returns the value of a header, whose name is in lower case; null or "" if it is absent
     * @param secret of the sink, or several with spaces between; with null, no signature is checked
     * @param now the receiver's clock
     * @throws InboxException.BadSignature
     * @throws InboxException.NoMessage
     * @throws IllegalArgumentException for a secret that is none
     */
    public static Message fromRequest(UnaryOperator<String> header, byte[] body, String secret, Instant now) throws InboxException {
        UnaryOperator<String> get = name -> text(header.apply(name));
        if (secret != null && !signed(get, body, Signature.parse(secret), now)) {
            throw new InboxException.BadSignature();
        }
        return fromHeaders(name -> unescape(get.apply(name)), body);
    }

    /**
     * Reads headers, properties or attributes.
     *
     * @param header returns the text of one; null or "" if it is absent
     * @throws InboxException.NoMessage
     */
    public static Message fromHeaders(UnaryOperator<String> header, byte[] body) throws InboxException {
        UnaryOperator<String> get = name -> text(header.apply(name));
        Message message = new Message(get.apply("ordered-process"), number(get, "ordered-sequence"), number(get, "ordered-epoch"),
                get.apply("ordered-dedup-key"), get.apply("ordered-type"), get.apply("ordered-key"), body);
        if (message.process.isEmpty() || message.dedupKey.isEmpty()) {
            throw new InboxException.NoMessage("it lacks a process or a dedup key");
        }
        return message;
    }

    /** What errors call the record. */
    String name() {
        return "record \"" + dedupKey + "\" of process \"" + process + "\"";
    }

    private static boolean signed(UnaryOperator<String> get, byte[] body, List<byte[]> keys, Instant now) {
        List<String> lines = Stream.of("webhook-id", "webhook-timestamp", "ordered-process", "ordered-sequence", "ordered-epoch").map(get).toList();
        String id = lines.get(0);
        String seconds = lines.get(1);
        return seconds.matches("[0-9]{1,15}")
                && Math.abs(now.getEpochSecond() - Long.parseLong(seconds)) <= TOLERANCE
                && unescape(id).equals(unescape(get.apply("ordered-dedup-key"))) // the signature covers webhook-id, which is the dedup key
                && Signature.verify(keys, get.apply("ordered-signature"), lines, body);
    }

    private static long number(UnaryOperator<String> get, String name) throws InboxException {
        String value = get.apply(name);
        try {
            long n = Long.parseLong(value);
            if (n >= 1) {
                return n;
            }
        } catch (NumberFormatException e) {
            // as below
        }
        throw new InboxException.NoMessage(name + " is \"" + value + "\", not a number from 1");
    }

    private static String text(String value) {
        return value == null ? "" : value;
    }

    /** Undoes what the webhook sink does to values of a record. What is no escape stays as it is. */
    private static String unescape(String value) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        byte[] escaped = value.getBytes(StandardCharsets.UTF_8);
        for (int i = 0; i < escaped.length; i++) {
            if (escaped[i] != '%') {
                bytes.write(escaped[i]);
                continue;
            }
            int high = i + 2 < escaped.length ? Character.digit(escaped[i + 1], 16) : -1;
            int low = high >= 0 ? Character.digit(escaped[i + 2], 16) : -1;
            if (low < 0) {
                return value;
            }
            bytes.write(high << 4 | low);
            i += 2;
        }
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes.toByteArray())).toString();
        } catch (CharacterCodingException e) {
            return value;
        }
    }
}
