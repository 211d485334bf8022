package io.github.ordereddispatcher.inbox;

import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.postgresql.ds.PGSimpleDataSource;

/** A database whose inbox tables may be emptied: JDBC_URL. The receiver is c, and its effect is a row. */
final class Fixture {
    static final PGSimpleDataSource DATABASE = new PGSimpleDataSource();

    static {
        DATABASE.setURL(System.getenv("JDBC_URL"));
    }

    private Fixture() {}

    static void prepare() throws SQLException {
        execute(new Inbox("c").sql());
        execute("CREATE TABLE IF NOT EXISTS public.effect (n int GENERATED ALWAYS AS IDENTITY, key text)");
        execute("TRUNCATE public.inbox, public.inbox_process, public.effect");
    }

    static void execute(String sql, Object... args) throws SQLException {
        try (Connection connection = DATABASE.getConnection(); var statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < args.length; i++) {
                statement.setObject(i + 1, args[i]);
            }
            statement.execute();
        }
    }

    static void effect(Connection connection, Message message) throws SQLException {
        try (var insert = connection.prepareStatement("INSERT INTO public.effect (key) VALUES (?)")) {
            insert.setString(1, message.dedupKey());
            insert.executeUpdate();
        }
    }

    static List<String> effects() throws SQLException {
        List<String> keys = new ArrayList<>();
        try (Connection connection = DATABASE.getConnection();
                var select = connection.prepareStatement("SELECT key FROM public.effect ORDER BY n");
                var rows = select.executeQuery()) {
            while (rows.next()) {
                keys.add(rows.getString(1));
            }
        }
        return keys;
    }

    /** Sends one request to a handler. */
    static HttpResponse<String> post(HttpHandler handler, Map<String, String> headers, byte[] body) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", handler);
        server.start();
        try {
            URI address = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/");
            HttpRequest.Builder request = HttpRequest.newBuilder(address).POST(HttpRequest.BodyPublishers.ofByteArray(body));
            headers.forEach(request::header);
            return HttpClient.newHttpClient().send(request.build(), HttpResponse.BodyHandlers.ofString());
        } finally {
            server.stop(0);
        }
    }
}
