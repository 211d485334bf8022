package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
)

func oldTLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
}

// newPipeSink makes a sink whose connections are pipes to handle, so that time
// in a synctest bubble stands still while nothing can happen.
func newPipeSink(t *testing.T, c Config, handle func(net.Conn)) *Sink {
	t.Helper()
	s, err := New(c)
	require.NoError(t, err)
	pipe(t, s, handle)
	return s
}

// pipe gives a sink pipes to handle for connections.
func pipe(t *testing.T, s *Sink, handle func(net.Conn)) {
	t.Helper()
	var open sync.WaitGroup
	t.Cleanup(open.Wait)
	s.receiver.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		open.Go(func() {
			defer theirs.Close()
			handle(theirs)
		})
		return ours, nil
	}
	t.Cleanup(func() { hangUp(s) })
}

func acknowledge(conn net.Conn) {
	s := new(rawServer)
	for s.read(conn) == nil {
		s.ok(conn)
	}
}

func silence(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

func TestDeliver_DefaultTimeoutIsTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPipeSink(t, Config{URL: "http://receiver.example"}, silence)
		began := time.Now()
		require.ErrorIs(t, s.Deliver(t.Context(), delivery()), context.DeadlineExceeded)
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

func TestDeliver_SilentTLSHandshakeEndsInFiveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPipeSink(t, Config{URL: "https://receiver.example"}, silence)
		began := time.Now()
		err := s.Deliver(t.Context(), delivery())
		require.ErrorContains(t, err, "TLS handshake timeout")
		require.ErrorContains(t, err, "nothing was sent")
		require.False(t, outcome.IsUnknown(err))
		require.Equal(t, connectTimeout, time.Since(began))
	})
}

func TestDeliver_RenewsItsConnection(t *testing.T) {
	t.Parallel()
	connections := func(t *testing.T, pause time.Duration, deliveries int) (n int64) {
		synctest.Test(t, func(t *testing.T) {
			var opened atomic.Int64
			s := newPipeSink(t, Config{URL: "http://receiver.example"}, func(conn net.Conn) {
				opened.Add(1)
				acknowledge(conn)
			})
			for range deliveries {
				require.NoError(t, s.Deliver(t.Context(), delivery()))
				time.Sleep(pause) // in the bubble's time
			}
			n = opened.Load()
		})
		return n
	}
	t.Run("keeps it while it is young", func(t *testing.T) {
		require.EqualValues(t, 1, connections(t, 20*time.Second, 10))
	})
	t.Run("gives it up after five minutes", func(t *testing.T) {
		require.EqualValues(t, 2, connections(t, 20*time.Second, 20))
	})
	t.Run("gives it up when it was idle", func(t *testing.T) {
		require.EqualValues(t, 3, connections(t, 40*time.Second, 3))
	})
}

// In a bubble, since net/http gives a connection up if its own writing goroutine is
// not heard of for 50 ms behind an answer, as on a machine with too much to do.
func TestDeliver_UsesOneConnectionForManyDeliveries(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"no body": "", "a body": strings.Repeat("x", maxBody-1)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opened atomic.Int64
				s := newPipeSink(t, Config{URL: "http://receiver.example"}, func(conn net.Conn) {
					opened.Add(1)
					for new(rawServer).read(conn) == nil {
						_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
					}
				})
				for range 100 {
					require.NoError(t, s.Deliver(t.Context(), delivery()))
				}
				require.EqualValues(t, 1, opened.Load())
			})
		})
	}
}

// Two writes are two packets, and cost a fifth of a short request's time.
func TestDeliver_HeaderAndBodyLeaveInOneWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var request []byte
		s := newPipeSink(t, Config{URL: "http://receiver.example"}, func(conn net.Conn) {
			all := make([]byte, 64<<10)
			n, err := conn.Read(all) // of a pipe, one write
			if err == nil {
				request = all[:n]
				new(rawServer).ok(conn)
			}
		})
		require.NoError(t, s.Deliver(t.Context(), delivery()))
		require.Contains(t, string(request), "\r\n\r\n"+exact)
	})
}

func TestDeliver_NeverHasTwoRequestsOnTheWire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var opened atomic.Int64
		release := make(chan struct{})
		s := newPipeSink(t, Config{URL: "http://receiver.example"}, func(conn net.Conn) {
			opened.Add(1)
			<-release
			acknowledge(conn)
		})
		done := make(chan error)
		for range 3 {
			go func() { done <- s.Deliver(t.Context(), delivery()) }()
		}
		synctest.Wait()
		require.EqualValues(t, 1, opened.Load())
		close(release)
		for range 3 {
			require.NoError(t, <-done)
		}
		require.EqualValues(t, 1, opened.Load())
	})
}

func TestTransport_TakesNoProxyFromTheEnvironment(t *testing.T) {
	t.Parallel()
	require.Nil(t, newTransport(Config{Timeout: time.Second}).Proxy)
}

// closing is a context that does something when it is asked for a value while a
// request has the turn: net/http asks at its beginning.
type closing struct {
	context.Context
	receiver *connection
	do       func()
}

func (c closing) Value(key any) any {
	if len(c.receiver.turn) > 0 {
		c.do()
	}
	return c.Context.Value(key)
}

func TestDeliver_AConnectionFoundClosedBeforeAnythingWasWrittenIsReplaced(t *testing.T) {
	t.Parallel()
	server := serveRaw(t, func(s *rawServer, conn net.Conn) {
		for s.read(conn) == nil {
			s.ok(conn)
		}
	})
	s := newSink(t, Config{URL: server.url()})
	require.NoError(t, s.Deliver(t.Context(), delivery()))
	first := s.receiver.conn
	ctx := closing{t.Context(), s.receiver, func() { _ = first.Close() }}
	require.NoError(t, s.Deliver(ctx, delivery()))
	require.NotSame(t, first, s.receiver.conn)
	require.Equal(t, 2, server.count())
}

func TestAddress_IsWhatNetHTTPDials(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"http://receiver.example":       "receiver.example:80",
		"https://receiver.example/x":    "receiver.example:443",
		"https://receiver.example:8443": "receiver.example:8443",
		"http://[::1]:80/":              "[::1]:80",
		"http://[fe80::1%25eth0]/":      "[fe80::1%eth0]:80",
		"https://münchen.example/":      "xn--mnchen-3ya.example:443",
		"http://under_score:81":         "under_score:81",
	} {
		u, err := url.Parse(raw)
		require.NoError(t, err)
		require.Equal(t, want, address(u))
	}
}
