package kafka_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// A broker announces the length of each answer. One that is too long is refused by that.
func TestDeliver_ABrokerThatSaysTooMuchIsNotHeardOut(t *testing.T) {
	t.Parallel()
	address := tcptest.Serve(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = conn.Write(binary.BigEndian.AppendUint32(nil, 17<<20))
		_, _ = io.Copy(io.Discard, conn) // until the client leaves
	})
	s, err := kafka.New(kafka.Config{Brokers: []string{address}, Topic: "t"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	_, err = s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "17825792") // the length
}
