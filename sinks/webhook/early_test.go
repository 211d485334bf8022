package webhook

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// hasty answers as soon as it has read a request's header, and closes with the body unread.
func hasty(t *testing.T, answer string) string {
	t.Helper()
	return serveRaw(t, func(_ *rawServer, conn net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		_, _ = io.WriteString(conn, answer)
		_ = conn.Close()
	}).url()
}

// large is a record of more than the buffers on the way hold.
func large() processor.Delivery {
	d := delivery()
	d.Payload = []byte(`"` + string(bytes.Repeat([]byte("x"), 20<<20)) + `"`)
	return d
}

// TestDeliver_AnAnswerBeforeTheEndOfTheRequestCounts: it is the receiver's word on the record, and
// not a broken connection, over which the record would be sent for ever.
func TestDeliver_AnAnswerBeforeTheEndOfTheRequestCounts(t *testing.T) {
	t.Parallel()
	s := newSink(t, Config{URL: hasty(t, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")})
	large := large()
	for range 100 { // which of the two comes first is chance
		err := s.Deliver(t.Context(), large)
		require.ErrorContains(t, err, "413")
		require.True(t, processor.IsPermanent(err), "%v", err)
	}
}

// TestDeliver_A2xxBeforeTheEndOfTheRequestIsUnknown: the receiver has not read what it says yes to.
func TestDeliver_A2xxBeforeTheEndOfTheRequestIsUnknown(t *testing.T) {
	t.Parallel()
	large := large()
	for name, answer := range map[string]string{
		"and closes":           "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"without a word of it": "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"with a body":          "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSink(t, Config{URL: hasty(t, answer), HideAnswers: true})
			for range 10 {
				err := s.Deliver(t.Context(), large)
				require.ErrorContains(t, err, "before it had the whole request")
				require.Equal(t, "unknown", sinktest.Class(err), err)
			}
		})
	}
	t.Run("over TLS", func(t *testing.T) {
		t.Parallel()
		s := tlsSink(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
		err := s.Deliver(t.Context(), large)
		require.ErrorContains(t, err, "200 OK before it had the whole request")
		require.True(t, outcome.IsUnknown(err), "%v", err)
	})
	t.Run("and reads no more", func(t *testing.T) {
		t.Parallel()
		s := newSink(t, Config{URL: serveRaw(t, func(_ *rawServer, conn net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
			<-t.Context().Done()
		}).url()})
		err := s.Deliver(t.Context(), large)
		require.ErrorContains(t, err, "204 No Content before it had the whole request")
		require.True(t, outcome.IsUnknown(err), "%v", err)
	})
}

// TestDeliver_A2xxToAWholeRequestCountsHoweverItsConnectionEnds: the receiver has read the record.
func TestDeliver_A2xxToAWholeRequestCountsHoweverItsConnectionEnds(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, 5000, 20 << 20} {
		for name, end := range map[string]func(net.Conn){
			"reset":  reset,
			"closed": func(conn net.Conn) { _ = conn.Close() },
		} {
			t.Run(fmt.Sprint(size, " bytes, ", name), func(t *testing.T) {
				t.Parallel()
				s := newSink(t, Config{URL: serveRaw(t, func(s *rawServer, conn net.Conn) {
					_ = s.read(conn)
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
					end(conn)
				}).url()})
				d := delivery()
				d.Payload = []byte(`"` + string(bytes.Repeat([]byte("x"), size)) + `"`)
				for range 5 {
					require.NoError(t, s.Deliver(t.Context(), d))
				}
			})
		}
	}
}

// TestDeliver_A2xxOverTLSCountsThoughTheConnectionIsReset: the alert at the end of TLS is lost, and
// nothing of the request.
func TestDeliver_A2xxOverTLSCountsThoughTheConnectionIsReset(t *testing.T) {
	t.Parallel()
	s := tlsSink(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		reset(conn.(*tls.Conn).NetConn())
	})
	d := delivery()
	d.Payload = []byte(`"` + string(bytes.Repeat([]byte("x"), 1<<20)) + `"`)
	for range 20 {
		require.NoError(t, s.Deliver(t.Context(), d))
	}
}

// tlsSink sends to a receiver that speaks TLS.
func tlsSink(t *testing.T, handle http.HandlerFunc) *Sink {
	t.Helper()
	server := httptest.NewTLSServer(handle)
	t.Cleanup(server.Close)
	s := newSink(t, Config{URL: server.URL})
	s.receiver.transport.TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return s
}

// TestDeliver_NoAnswerBeforeTheEndOfTheRequestIsUnknown: a receiver that closes in the middle.
func TestDeliver_NoAnswerBeforeTheEndOfTheRequestIsUnknown(t *testing.T) {
	t.Parallel()
	s := newSink(t, Config{URL: hasty(t, "")})
	large := large()
	err := s.Deliver(t.Context(), large)
	require.Error(t, err)
	require.Equal(t, "unknown", sinktest.Class(err), err)
}
