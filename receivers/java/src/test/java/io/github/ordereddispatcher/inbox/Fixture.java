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

    /** What is noted of a process. */
    record Notes(String origin, long epoch, long sequence, List<String> dedup_keys) {}

    /** Makes these the only notes. */
    static void put(String process, Notes notes) throws SQLException {
        prepare();
        if (!notes.origin.isEmpty()) {
            execute("INSERT INTO public.inbox_process VALUES ('c', ?, '', ?, ?, ?)", process, notes.origin, notes.epoch, notes.sequence);
        }
        for (String key : notes.dedup_keys) {
            execute("INSERT INTO public.inbox (receiver, process, dedup_key) VALUES ('c', ?, ?)", process, key);
        }
    }

    static Notes noted(String process) throws SQLException {
        String sql = """
                SELECT coalesce(max(origin), '') AS origin, coalesce(max(epoch), 0) AS epoch, coalesce(max(sequence), 0) AS sequence,
                    (SELECT coalesce(array_agg(dedup_key ORDER BY dedup_key COLLATE "C"), '{}') FROM public.inbox WHERE process = ?) AS keys
                FROM public.inbox_process WHERE process = ?""";
        try (Connection connection = DATABASE.getConnection(); var select = connection.prepareStatement(sql)) {
            select.setString(1, process);
            select.setString(2, process);
            try (var row = select.executeQuery()) {
                row.next();
                List<String> keys = List.of((String[]) row.getArray("keys").getArray());
                return new Notes(row.getString("origin"), row.getLong("epoch"), row.getLong("sequence"), keys);
            }
        }
    }

    /** Sends one request to a handler. */
    static HttpResponse<String> post(HttpHandler handler, Map<String, String> headers, byte[] body) throws Exception {
        return send(handler, "POST", headers.entrySet().stream().map(header -> List.of(header.getKey(), header.getValue())).toList(), body);
    }

    /** Sends one request to a handler, with headers in pairs: a name may come twice. */
    static HttpResponse<String> send(HttpHandler handler, String method, List<List<String>> headers, byte[] body) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", handler);
        server.start();
        try {
            URI address = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/");
            HttpRequest.Builder request = HttpRequest.newBuilder(address).method(method, HttpRequest.BodyPublishers.ofByteArray(body));
            headers.forEach(header -> request.header(header.get(0), header.get(1)));
            return HttpClient.newHttpClient().send(request.build(), HttpResponse.BodyHandlers.ofString());
        } finally {
            server.stop(0);
        }
    }
}
