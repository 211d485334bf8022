package io.github.ordereddispatcher.inbox;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** The signature over the headers that begin with ordered-, and the body: docs/wire.md of ordered-dispatcher, "Signatures". */
final class Signature {
    private static final String PREFIX = "whsec_";
    private static final int MIN_KEY = 24;
    private static final int MAX_KEY = 64;
    private static final long TOLERANCE = 300; // seconds between a signature's time and the receiver's clock

    private Signature() {}

    /** Returns the keys of a secret: one or more, with spaces between. Its errors quote nothing of it. */
    static List<byte[]> parse(String secret) {
        if (secret == null || secret.isBlank()) {
            throw new IllegalArgumentException("the secret is missing: is its environment variable unset? The methods for unsigned requests take records from anybody");
        }
        List<byte[]> keys = new ArrayList<>();
        for (String one : secret.strip().split("\\s+")) {
            keys.add(parseKey(one));
        }
        return keys;
    }

    private static byte[] parseKey(String secret) {
        byte[] key = secret.getBytes(StandardCharsets.UTF_8);
        if (secret.startsWith(PREFIX)) {
            try {
                key = Base64.getDecoder().decode(secret.substring(PREFIX.length()));
            } catch (IllegalArgumentException e) {
                throw new IllegalArgumentException("the secret is not base64 after whsec_: copy it again, with the = at its end");
            }
        }
        if (key.length < MIN_KEY || key.length > MAX_KEY) {
            throw new IllegalArgumentException("the secret has a key of " + key.length + " bytes, not " + MIN_KEY + " to " + MAX_KEY
                    + ": make one with `openssl rand -base64 32` and put whsec_ before it");
        }
        return key;
    }

    /**
     * Returns headers by their names in lower case, sorted.
     *
     * @throws InboxException.NoMessage if one that is signed, or a signature, is there twice
     */
    static SortedMap<String, String> single(Map<String, List<String>> headers) throws InboxException {
        SortedMap<String, String> found = new TreeMap<>();
        for (Map.Entry<String, List<String>> header : headers.entrySet()) {
            if (header.getKey() == null) {
                continue; // java.net.URLConnection has the line of the status there
            }
            String name = header.getKey().toLowerCase(Locale.ROOT);
            boolean signed = name.startsWith("ordered-") || name.equals("webhook-id") || name.equals("webhook-timestamp");
            for (String value : header.getValue()) {
                if (found.put(name, value == null ? "" : value) != null && signed) {
                    throw new InboxException.NoMessage(Message.quoted(name) + " is there twice");
                }
            }
        }
        return found;
    }

    /** @throws InboxException.BadSignature unless there is a signature, and a time that is near enough to the clock */
    static void requireTimely(Map<String, String> headers, Instant now) throws InboxException {
        String seconds = headers.getOrDefault("webhook-timestamp", "");
        if (headers.getOrDefault("ordered-signature", "").isEmpty()
                || !seconds.matches("[0-9]{1,19}")
                || Math.abs(now.toEpochMilli() / 1000.0 - Double.parseDouble(seconds)) > TOLERANCE) {
            throw new InboxException.BadSignature();
        }
    }

    /** @throws InboxException.BadSignature unless one of the signatures is by one of the keys */
    static void requireSigned(SortedMap<String, String> headers, byte[] body, List<byte[]> keys) throws InboxException {
        byte[] lines = lines(headers, body);
        boolean right = false;
        for (byte[] key : keys) {
            byte[] want = ("v1," + Base64.getEncoder().encodeToString(mac(key, lines))).getBytes(StandardCharsets.ISO_8859_1);
            for (String one : headers.getOrDefault("ordered-signature", "").split(" ")) {
                right |= MessageDigest.isEqual(want, one.getBytes(StandardCharsets.ISO_8859_1));
            }
        }
        if (!right) {
            throw new InboxException.BadSignature();
        }
    }

    private static byte[] lines(SortedMap<String, String> headers, byte[] body) {
        StringBuilder lines = new StringBuilder("ordered-v1\n");
        lines.append(headers.getOrDefault("webhook-id", "")).append('\n').append(headers.getOrDefault("webhook-timestamp", "")).append('\n');
        headers.forEach((name, value) -> {
            if (name.startsWith("ordered-") && !name.equals("ordered-signature")) {
                lines.append(name).append(':').append(value).append('\n');
            }
        });
        lines.append(HexFormat.of().formatHex(sha256(body)));
        return lines.toString().getBytes(StandardCharsets.ISO_8859_1); // what came: servers read the bytes of a header as that
    }

    static byte[] sha256(byte[] bytes) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(bytes);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }

    private static byte[] mac(byte[] key, byte[] text) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            return mac.doFinal(text);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every JDK has HmacSHA256", e);
        }
    }
}
