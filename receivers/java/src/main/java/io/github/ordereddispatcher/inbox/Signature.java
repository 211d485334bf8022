package io.github.ordereddispatcher.inbox;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** The signature over process, sequence, epoch and body: docs/wire.md of ordered-dispatcher, "Signatures". */
final class Signature {
    private static final String PREFIX = "whsec_";
    private static final int MIN_KEY = 24;
    private static final int MAX_KEY = 64;

    private Signature() {}

    /** Returns the keys of a secret: one or more, with spaces between. Its errors quote nothing of it. */
    static List<byte[]> parse(String secret) {
        List<byte[]> keys = new ArrayList<>();
        for (String one : secret.strip().split("\\s+")) {
            keys.add(parseKey(one));
        }
        return keys;
    }

    private static byte[] parseKey(String secret) {
        if (secret.isEmpty()) {
            throw new IllegalArgumentException("the secret is blank: is its environment variable unset? null checks no signature");
        }
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
     * Reports whether one of the given signatures is by one of the keys. The lines are id, time, process, sequence and
     * epoch, as they were sent.
     */
    static boolean verify(List<byte[]> keys, String given, List<String> lines, byte[] body) {
        try {
            String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(body));
            byte[] text = ("ordered-v1\n" + String.join("\n", lines) + "\n" + digest).getBytes(StandardCharsets.UTF_8);
            boolean right = false;
            for (byte[] key : keys) {
                Mac mac = Mac.getInstance("HmacSHA256");
                mac.init(new SecretKeySpec(key, "HmacSHA256"));
                byte[] want = ("v1," + Base64.getEncoder().encodeToString(mac.doFinal(text))).getBytes(StandardCharsets.UTF_8);
                for (String one : given.split("\\s+")) {
                    right |= MessageDigest.isEqual(want, one.getBytes(StandardCharsets.UTF_8));
                }
            }
            return right;
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every JDK has SHA-256 and HmacSHA256", e);
        }
    }
}
