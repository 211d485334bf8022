package io.github.ordereddispatcher.inbox;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Instant;
import java.util.Map;

/** Checks requests, has each record committed, and answers. */
public final class InboxHandler implements HttpHandler {
    private static final int MAX_BYTES = 64 << 20; // of a body: as max_record_bytes of the dispatcher
    private static final System.Logger LOG = System.getLogger(InboxHandler.class.getName());

    /** Commits a record, or throws. */
    interface Apply {
        void apply(Message message) throws Exception;
    }

    private final String secret;
    private final Apply apply;
    private final Clock clock;

    /** @param secret null for requests without a signature */
    InboxHandler(String secret, Apply apply, Clock clock) {
        this.secret = secret;
        this.apply = apply;
        this.clock = clock;
    }

    /** Returns the same handler with another clock. */
    InboxHandler withClock(Clock clock) {
        return new InboxHandler(secret, apply, clock);
    }

    @Override
    public void handle(HttpExchange exchange) throws IOException {
        int status = 200;
        String text = "";
        try {
            Message message = readLogged(exchange);
            if (!message.test()) {
                applyLogged(message);
            }
        } catch (InboxException e) {
            status = e.status();
            text = e.getMessage();
            e.headers().forEach(exchange.getResponseHeaders()::set);
        } catch (Exception e) {
            status = 503;
            text = "the record was not applied: try again";
        }
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "text/plain; charset=utf-8");
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    /**
     * Logs a request that is refused before its record is looked at: otherwise a wrong secret would leave no trace here.
     * Another method than POST is no record, but a health check or a probe.
     */
    private Message readLogged(HttpExchange exchange) throws InboxException {
        try {
            return read(exchange);
        } catch (InboxException e) {
            if (e.status() != 405) {
                LOG.log(System.Logger.Level.WARNING, "the request was refused: remote " + exchange.getRemoteAddress() + ", status " + e.status() + ": " + e.getMessage());
            }
            throw e;
        } catch (RuntimeException e) {
            LOG.log(System.Logger.Level.ERROR, "the request could not be read: remote " + exchange.getRemoteAddress(), e);
            throw e;
        }
    }

    /** Logs a record that is not applied: the sender gets no details of what failed here. */
    private void applyLogged(Message message) throws Exception {
        try {
            apply.apply(message);
        } catch (InboxException.Origin | InboxException.Stale | InboxException.Late | InboxException.Gap e) {
            LOG.log(System.Logger.Level.WARNING, "the record was refused: " + described(message) + ": " + e.getMessage());
            throw e;
        } catch (Exception e) {
            LOG.log(System.Logger.Level.ERROR, "the record was not applied: " + described(message), e);
            throw e;
        }
    }

    private static String described(Message message) {
        return message.name() + ", sequence " + message.sequence() + ", epoch " + message.epoch();
    }

    /** Reads the body last, so that a request without a signature, or an old one, costs nothing. */
    private Message read(HttpExchange exchange) throws InboxException {
        if (!exchange.getRequestMethod().equals("POST")) {
            String text = "send records with POST, and not with " + Message.quoted(exchange.getRequestMethod());
            throw new InboxException.NoRequest(405, text, Map.of("Allow", "POST"));
        }
        if (secret == null) {
            return Message.fromUnsignedRequest(exchange.getRequestHeaders(), body(exchange));
        }
        Instant now = clock.instant();
        Signature.requireTimely(Signature.single(exchange.getRequestHeaders()), now);
        return Message.fromRequest(exchange.getRequestHeaders(), body(exchange), secret, now);
    }

    /** Reads a body. One that is cut off or comes too slowly is not the record's fault, so it may come again. */
    private static byte[] body(HttpExchange exchange) throws InboxException {
        byte[] body;
        try {
            body = exchange.getRequestBody().readNBytes(MAX_BYTES + 1);
        } catch (IOException e) {
            throw new InboxException.NoRequest(408, "the body did not come in whole", Map.of());
        }
        if (body.length > MAX_BYTES) {
            throw new InboxException.NoRequest(413, "the body is too large: it may have " + MAX_BYTES + " bytes", Map.of());
        }
        return body;
    }
}
