package kafka_test

import (
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

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
		_, _ = conn.Write(binary.BigEndian.AppendUint32(nil, 2<<20))
		_, _ = io.Copy(io.Discard, conn) // until the client leaves
	})
	s := sinktest.Made(t, kafka.New, kafka.Config{Brokers: []string{address}, Topic: "t"})
	_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "2097152") // the length
}

// answer is that to a request, behind its number: of an honest broker to the question
// for its versions, and else an array that claims an element for each byte.
func answer(request []byte) []byte {
	const largest = 1<<20 - 4 // that is read
	if key := binary.BigEndian.Uint16(request[4:]); key == 18 {
		return []byte{0, 0, 2, 0, 3, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0} // Metadata, 0 to 7
	}
	hostile := make([]byte, largest)
	binary.BigEndian.PutUint32(hostile[4:], largest-8) // brokers
	return hostile
}

// The client makes room for all elements that an array claims. The test counts what is
// allocated, so it runs alone.
func TestDeliver_AnAnswerThatClaimsManyElementsTakesBoundedMemory(t *testing.T) {
	hostile := make(chan struct{}, 1000)
	address := tcptest.Serve(t, func(conn net.Conn) {
		request := make([]byte, 4096) // a client waits for each answer
		for {
			if _, err := conn.Read(request); err != nil {
				return
			}
			body := answer(request)
			if len(body) > 100 {
				hostile <- struct{}{}
			}
			header := binary.BigEndian.AppendUint32(nil, uint32(4+len(body)))
			if _, err := conn.Write(append(append(header, request[8:12]...), body...)); err != nil {
				return
			}
		}
	})
	var before, behind runtime.MemStats
	runtime.ReadMemStats(&before)
	s := sinktest.Made(t, kafka.New, kafka.Config{Brokers: []string{address}, Topic: "t", Timeout: 2 * time.Second})
	_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.Error(t, err)
	runtime.ReadMemStats(&behind)
	require.NotEmpty(t, hostile)
	each := (behind.TotalAlloc - before.TotalAlloc) / uint64(len(hostile))
	require.Greater(t, each, uint64(20<<20), "the client believed none")
	require.Less(t, each, uint64(200<<20))
}
