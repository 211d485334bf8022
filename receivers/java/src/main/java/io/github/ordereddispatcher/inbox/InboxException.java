package io.github.ordereddispatcher.inbox;

import java.nio.charset.StandardCharsets;
import java.util.Map;

/** A message that is not applied. The sink acts on the status of the answer: see docs/wire.md of ordered-dispatcher. */
public abstract sealed class InboxException extends Exception {
    private static final long serialVersionUID = 1;

    private InboxException(String message) {
        super(message);
    }

    /** The status of the answer. */
    public abstract int status();

    /** The headers of the answer. */
    public Map<String, String> headers() {
        return Map.of();
    }

    /** The signature is missing, wrong, or too far from the clock. */
    public static final class BadSignature extends InboxException {
        private static final long serialVersionUID = 1;

        public BadSignature() {
            super("the signature is missing, wrong, or too far from the clock");
        }

        @Override
        public int status() {
            return 401;
        }
    }

    /** A header is missing, wrong, or there twice. */
    public static sealed class NoMessage extends InboxException {
        private static final long serialVersionUID = 1;

        public NoMessage(String why) {
            super("the request is no record: " + why);
        }

        @Override
        public int status() {
            return 400;
        }
    }

    /**
     * The message is a claim of a worker, and not a record, or the server of NATS wrote it in the place of one: the sink nats
     * keeps claims in its stream. Acknowledge it, and go on.
     */
    public static final class Claim extends NoMessage {
        private static final long serialVersionUID = 1;

        Claim() {
            super("it is the claim of a worker");
        }
    }

    /** The message follows another version of the contract than this package knows. The record is not at fault. */
    public static final class OtherVersion extends InboxException {
        private static final long serialVersionUID = 1;
        static final String KNOWN = "1";

        OtherVersion(String version) {
            super("the record follows version " + Message.quoted(version.substring(0, Math.min(version.length(), 50)))
                    + " of the contract, and this receiver knows version " + KNOWN + ": upgrade the one that is older");
        }

        @Override
        public int status() {
            return 409;
        }

        @Override
        public Map<String, String> headers() {
            return Map.of("Ordered-Version", KNOWN);
        }
    }

    /** The method is not POST, or the body is too large or did not come in whole. It says nothing about the record. */
    public static final class NoRequest extends InboxException {
        private static final long serialVersionUID = 1;
        private final int status;
        private final transient Map<String, String> headers;

        NoRequest(int status, String text, Map<String, String> headers) {
            super(text);
            this.status = status;
            this.headers = headers;
        }

        @Override
        public int status() {
            return status;
        }

        @Override
        public Map<String, String> headers() {
            return headers;
        }
    }

    /** The record can never be applied. An effect throws it, and its text goes into the answer. */
    public static final class Poison extends InboxException {
        private static final long serialVersionUID = 1;

        public Poison(String why) {
            super(why);
        }

        @Override
        public int status() {
            return 422;
        }
    }

    /** Another cursor sent the message than the one before: two senders use one name. */
    public static final class Origin extends InboxException {
        private static final long serialVersionUID = 1;
        private final String noted;

        public Origin(Message message, String noted) {
            super(message.name() + " has origin " + Message.quoted(message.origin()) + ", and the records before have " + Message.quoted(noted)
                    + ": two senders use one name. If this one has replaced the other, accept its origin (acceptOrigin)");
            this.noted = noted;
        }

        /** The origin of the records before. */
        public String noted() {
            return noted;
        }

        @Override
        public int status() {
            return 409;
        }

        @Override
        public Map<String, String> headers() {
            return Map.of("Ordered-Origin", escape(noted));
        }

        /** Encodes a value as the webhook sink does: all bytes except printable ASCII, and the space, " and %. */
        private static String escape(String value) {
            StringBuilder escaped = new StringBuilder();
            for (byte b : value.getBytes(StandardCharsets.UTF_8)) {
                if (b > ' ' && b < 0x7F && b != '"' && b != '%') {
                    escaped.append((char) b);
                } else {
                    escaped.append(String.format("%%%02X", b));
                }
            }
            return escaped.toString();
        }
    }

    /** A worker sent the message that has been superseded. */
    public static final class Stale extends InboxException {
        private static final long serialVersionUID = 1;
        private final long seen;

        public Stale(Message message, long seen) {
            super(message.name() + " has epoch " + message.epoch() + ", and epoch " + seen + " has come: another worker has taken over");
            this.seen = seen;
        }

        /** The largest epoch of the process, in this stream. */
        public long seen() {
            return seen;
        }

        @Override
        public int status() {
            return 409;
        }

        @Override
        public Map<String, String> headers() {
            return Map.of("Ordered-Epoch", Long.toString(seen));
        }
    }

    /** The message comes after a record that was sent after it: meanwhile its own record was put aside or skipped. */
    public static final class Late extends InboxException {
        private static final long serialVersionUID = 1;
        private final long last;

        public Late(Message message, long last) {
            super(message.name() + " comes late: it has number " + message.sequence() + ", and number " + last + " has come");
            this.last = last;
        }

        /** The sequence of the last record. */
        public long last() {
            return last;
        }

        @Override
        public int status() {
            return 409;
        }

        @Override
        public Map<String, String> headers() {
            return Map.of("Ordered-Sequence", Long.toString(last));
        }
    }

    /** Records before the message have not come. */
    public static final class Gap extends InboxException {
        private static final long serialVersionUID = 1;
        private final long last;

        public Gap(Message message, long last) {
            super(message.name() + " has number " + message.sequence() + ", and the last one that came is " + last
                    + ": seek back to before that one, or accept the gap (acceptGap)");
            this.last = last;
        }

        /** The sequence of the last record. */
        public long last() {
            return last;
        }

        @Override
        public int status() {
            return 428;
        }

        @Override
        public Map<String, String> headers() {
            return Map.of("Ordered-Sequence", Long.toString(last));
        }
    }
}
