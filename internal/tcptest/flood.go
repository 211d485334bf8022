package tcptest

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// PostgresFlood speaks the protocol of PostgreSQL up to a moment. Then it sends messages until the other side hangs
// up or 256 MiB are sent. It returns the address, and a function that returns how many bytes the session received
// that got the most.
func PostgresFlood(t testing.TB, at Moment, message func(i int) pgproto3.BackendMessage) (address string, sent func() int64) {
	t.Helper()
	var most atomic.Int64
	address = Serve(t, func(conn net.Conn) {
		server := pgproto3.NewBackend(conn, conn)
		if _, err := session(server, at); err != nil {
			return
		}
		for i, total := 0, 0; total < 1<<28; i++ {
			encoded, err := message(i).Encode(nil)
			if err != nil {
				return
			}
			n, err := conn.Write(encoded)
			total += n
			most.Store(max(most.Load(), int64(total)))
			if err != nil {
				return
			}
		}
	})
	return address, most.Load
}
