package io.github.ordereddispatcher.inbox;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Clock;

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

    InboxHandler(String secret, Apply apply) {
        this(secret, apply, Clock.systemUTC());
    }

    private InboxHandler(String secret, Apply apply, Clock clock) {
        if (secret != null) {
            Signature.parse(secret); // a bad one shows at the start, not at the first record
        }
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
            apply.apply(read(exchange));
        } catch (InboxException e) {
            status = e.status();
            text = e.getMessage();
            e.headers().forEach(exchange.getResponseHeaders()::set);
        } catch (Exception e) {
            LOG.log(System.Logger.Level.ERROR, "the record was not applied, and the dispatcher sends it again", e);
            status = 503;
            text = "the record was not applied: try again";
        }
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "text/plain; charset=utf-8");
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    private Message read(HttpExchange exchange) throws IOException, InboxException {
        if (!exchange.getRequestMethod().equals("POST")) {
            throw new InboxException.NoMessage("its method is " + exchange.getRequestMethod());
        }
        byte[] body = exchange.getRequestBody().readNBytes(MAX_BYTES + 1);
        if (body.length > MAX_BYTES) {
            throw new InboxException.NoMessage("its body is longer than " + MAX_BYTES + " bytes");
        }
        return Message.fromRequest(exchange.getRequestHeaders()::getFirst, body, secret, clock.instant());
    }
}
