package io.github.ordereddispatcher.inbox;

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

    /** A header is missing or wrong, the method is not POST, or the body is too large. */
    public static final class NoMessage extends InboxException {
        private static final long serialVersionUID = 1;

        public NoMessage(String why) {
            super("the request is no record: " + why);
        }

        @Override
        public int status() {
            return 400;
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

    /** A worker sent the message that has been superseded. */
    public static final class Stale extends InboxException {
        private static final long serialVersionUID = 1;
        private final long seen;

        public Stale(Message message, long seen) {
            super(message.name() + " has epoch " + message.epoch() + ", and epoch " + seen + " has come: another worker has taken over");
            this.seen = seen;
        }

        /** The largest epoch of the process. */
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

    /** Records before the message have not come. */
    public static final class Gap extends InboxException {
        private static final long serialVersionUID = 1;
        private final long last;

        public Gap(Message message, long last) {
            super(message.name() + " has number " + message.sequence() + ", and the last one applied is " + last);
            this.last = last;
        }

        /** The largest sequence that was applied. */
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
