package rabbitmq_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// A server of AMQP that does not speak the client's version answers with its own, and hangs up.
func TestOpen_AServerOfAnotherVersionIsNamed(t *testing.T) {
	t.Parallel()
	for answer, version := range map[string]string{"AMQP\x00\x00\x09\x01": "0-0-9-1", "AMQP\x00\x01\x00\x00": "0-1-0-0", "AMQP\x01\x01\x00\x09": "1-1-0-9"} {
		address := tcptest.Serve(t, func(conn net.Conn) {
			if _, err := io.ReadFull(conn, make([]byte, 8)); err == nil {
				_, _ = conn.Write([]byte(answer[:5])) // in two parts
				_, _ = conn.Write([]byte(answer[5:]))
			}
		})
		s := sinktest.Made(t, rabbitmq.New, rabbitmq.Config{URL: "amqp://u:p@" + address, Exchange: "e", RoutingKey: "k", Timeout: time.Minute})
		n, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
		require.Zero(t, n)
		require.ErrorContains(t, err, "the server wants another version of the protocol ("+version+") than AMQP 0-9-1")
		require.NotContains(t, err.Error(), "1048576")
	}
}
