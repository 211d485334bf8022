package webhook

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// hasty answers as soon as it has read a request's header, and closes with the body unread.
func hasty(t *testing.T, answer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	}()
	return fmt.Sprintf("http://%s/", listener.Addr())
}

// TestDeliver_AnAnswerBeforeTheEndOfTheRequestCounts: it is the receiver's word on the record, and
// not a broken connection, over which the record would be sent for ever.
func TestDeliver_AnAnswerBeforeTheEndOfTheRequestCounts(t *testing.T) {
	t.Parallel()
	s := newSink(t, Config{URL: hasty(t, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")})
	large := delivery()
	large.Payload = []byte(`"` + string(bytes.Repeat([]byte("x"), 16<<20)) + `"`)
	for range 100 { // which of the two comes first is chance
		err := s.Deliver(t.Context(), large)
		require.ErrorContains(t, err, "413")
		require.True(t, processor.IsPermanent(err), "%v", err)
	}
}

// TestDeliver_NoAnswerBeforeTheEndOfTheRequestIsUnknown: a receiver that closes in the middle.
func TestDeliver_NoAnswerBeforeTheEndOfTheRequestIsUnknown(t *testing.T) {
	t.Parallel()
	s := newSink(t, Config{URL: hasty(t, "")})
	large := delivery()
	large.Payload = []byte(`"` + string(bytes.Repeat([]byte("x"), 16<<20)) + `"`)
	err := s.Deliver(t.Context(), large)
	require.Error(t, err)
	require.True(t, outcome.IsUnknown(err), "%v", err)
	require.False(t, processor.IsPermanent(err))
}
