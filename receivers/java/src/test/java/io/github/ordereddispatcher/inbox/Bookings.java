package io.github.ordereddispatcher.inbox;

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.Executors;
import org.postgresql.ds.PGSimpleDataSource;

class Bookings {
    public static void main(String[] args) throws Exception {
        PGSimpleDataSource database = new PGSimpleDataSource();
        database.setURL(System.getenv("JDBC_URL"));
        Inbox box = new Inbox("bookings");
        try (Connection connection = database.getConnection()) {
            connection.createStatement().execute(box.sql());
        }
        System.setProperty("sun.net.httpserver.maxReqTime", "30"); // seconds, until a request has come
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(System.getenv("PORT"))), 0);
        server.setExecutor(Executors.newCachedThreadPool()); // a slow client has a thread of its own
        server.createContext("/", box.handler(database, System.getenv("SECRET"), Bookings::book));
        server.start();
    }

    static void book(Connection connection, Message message) throws SQLException, InboxException {
        if (message.claimCheck() || !message.contentEncoding().isEmpty()) {
            throw new InboxException.Poison("the body is a reference or compressed: set claims and compressed for the process");
        }
        String sql = """
                INSERT INTO public.booking (id, room)
                SELECT b.id, r.name FROM json_to_record(?::json) AS b (id bigint, room text) JOIN public.room r ON r.name = b.room""";
        try (var insert = connection.prepareStatement(sql)) {
            insert.setString(1, new String(message.body(), StandardCharsets.UTF_8));
            if (insert.executeUpdate() == 0) {
                throw new InboxException.Poison("there is no such room");
            }
        }
    }
}
