package webhook

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// exact holds what a decoder that meddles would change: an escaped NUL, a lone
// surrogate, numbers beyond float64, the order and doubling of keys, spaces.
const exact = `{"b" : "\u0000\ud800", "a": 9007199254740993, "a": 1e400, "c": "é<&>` + "\u2028" + `"}`

func delivery() processor.Delivery {
	return processor.Delivery{
		Record: processor.Record{
			Position:  "c:2026-01-02T03:04:05.000006Z/42",
			Table:     "public.bookings",
			ID:        "42",
			Key:       "customer-7",
			Type:      "booking.confirmed",
			CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC),
			Payload:   []byte(exact),
		},
		Process:  "booking_sms",
		Sequence: 9007199254740993,
		Epoch:    3,
		Attempt:  2,
	}
}

const deliveryKey = "public.bookings/42/1767323045000006"

func newSink(t testing.TB, c Config) *Sink {
	t.Helper()
	s, err := New(c)
	require.NoError(t, err)
	t.Cleanup(func() { hangUp(s) })
	return s
}

// hangUp closes a sink's connection.
func hangUp(s *Sink) {
	s.receiver.turn <- struct{}{}
	s.receiver.drop()
	<-s.receiver.turn
}

// serve runs a receiver for the test.
func serve(t testing.TB, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server
}

// answer runs a receiver that answers all requests alike.
func answer(t testing.TB, status int, header map[string]string, body string) *httptest.Server {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// received is a request as the receiver saw it.
type received struct {
	header http.Header
	method string
	uri    string
	host   string
	body   []byte
}

// record runs a receiver that acknowledges and keeps what it got.
func record(t testing.TB) (url string, requests func() []received) {
	t.Helper()
	var mu sync.Mutex
	var all []received
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			all = append(all, received{r.Header, r.Method, r.RequestURI, r.Host, body})
		}
	})
	return server.URL, func() []received {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// rawServer speaks TCP by script: handle gets each connection, and count is the number
// of whole requests on all of them.
type rawServer struct {
	address  string
	mu       sync.Mutex
	requests int
}

func serveRaw(t testing.TB, handle func(s *rawServer, conn net.Conn)) *rawServer {
	t.Helper()
	s := &rawServer{}
	s.address = tcptest.Serve(t, func(conn net.Conn) { handle(s, conn) })
	return s
}

func (s *rawServer) url() string { return "http://" + s.address }

func (s *rawServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// read takes one request with its body off the connection.
func (s *rawServer) read(conn net.Conn) error {
	var head []byte
	one := make([]byte, 1)
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		if _, err := conn.Read(one); err != nil {
			return err
		}
		head = append(head, one[0])
	}
	if err := readBody(conn, head); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	return nil
}

func readBody(conn net.Conn, head []byte) error {
	var length int
	for line := range bytes.Lines(head) {
		if _, err := fmt.Sscanf(string(line), "Content-Length: %d", &length); err == nil {
			_, err = io.CopyN(io.Discard, conn, int64(length))
			return err
		}
	}
	return fmt.Errorf("a request without a Content-Length: %q", head)
}

func (s *rawServer) ok(conn net.Conn) {
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
}

// reset ends a connection with RST instead of FIN.
func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}
