package webhook

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestDeliver_SendsTheBytesUnchangedWithTheContractsHeaders(t *testing.T) {
	t.Parallel()
	url, requests := record(t)
	s := newSink(t, Config{URL: url + "/send?a=b", Headers: map[string]string{"authorization": "Bearer t"}})
	require.NoError(t, s.Deliver(t.Context(), delivery()))

	require.Len(t, requests(), 1)
	r := requests()[0]
	require.Equal(t, exact, string(r.body))
	require.Equal(t, "POST", r.method)
	require.Equal(t, "/send?a=b", r.uri)
	require.Equal(t, strings.TrimPrefix(url, "http://"), r.host)
	require.Equal(t, http.Header{
		"Authorization":      {"Bearer t"},
		"Content-Length":     {strconv.Itoa(len(exact))},
		"Content-Type":       {"application/json"},
		"Idempotency-Key":    {deliveryKey},
		"Ordered-Attempt":    {"2"},
		"Ordered-Created-At": {"2026-01-02T03:04:05.000006Z"},
		"Ordered-Dedup-Key":  {deliveryKey},
		"Ordered-Epoch":      {"3"},
		"Ordered-Key":        {"customer-7"},
		"Ordered-Position":   {"c:2026-01-02T03:04:05.000006Z/42"},
		"Ordered-Process":    {"booking_sms"},
		"Ordered-Sequence":   {"9007199254740993"},
		"Ordered-Type":       {"booking.confirmed"},
		"Ordered-Version":    {"1"},
		"User-Agent":         {"ordered-dispatcher"},
	}, r.header)
}

func TestDeliver_LeavesOutHeadersOfWhatTheRecordHasNot(t *testing.T) {
	t.Parallel()
	url, requests := record(t)
	s := newSink(t, Config{URL: url, Format: CloudEvents})
	d := delivery()
	d.Key, d.Type, d.CreatedAt = "", "", time.Time{}
	require.NoError(t, s.Deliver(t.Context(), d))
	for _, name := range []string{"Ordered-Key", "Ordered-Type", "Ce-Time", "Webhook-Id", "Webhook-Signature"} {
		require.NotContains(t, requests()[0].header, name)
	}
	require.Equal(t, "public.bookings/42", requests()[0].header.Get("Idempotency-Key"))
}

// Else a receiver takes a reference for an empty payload, and compressed bytes for JSON.
func TestDeliver_SaysThatAPayloadIsNotWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format                           Format
		headers                          map[string]string
		claimCheck, encoding, ofTheBytes []string
	}{
		{"", map[string]string{"content-encoding": "zstd"}, nil, []string{"zstd"}, []string{"zstd"}},
		{CloudEvents, map[string]string{"content-encoding": "zstd"}, nil, []string{"zstd"}, []string{"zstd"}},
		{CloudEventsStructured, map[string]string{"content-encoding": "zstd"}, nil, []string{"zstd"}, nil},
		{"", map[string]string{"claim-check": "8f", "content-encoding": "zstd"}, []string{"true"}, []string{"zstd"}, nil},
		{"", map[string]string{"claim-check": "8f\r\nOrdered-Epoch: 9"}, []string{"true"}, nil, nil},
		{"", map[string]string{"content-encoding": "x\r\nOrdered-Epoch: 9"}, nil, []string{"unknown"}, []string{"unknown"}},
		{"", map[string]string{"tenant": "x"}, nil, nil, nil},
		{"", map[string]string{"content-encoding": "zstd", "Content-Encoding": "gzip", "Ordered-Content-Encoding": "br"}, nil, []string{"zstd"}, []string{"zstd"}},
		{"", map[string]string{"Content-Encoding": "gzip", "Claim-Check": "8f"}, nil, nil, nil},
	} {
		url, requests := record(t)
		d := delivery()
		d.Headers = c.headers
		require.NoError(t, newSink(t, Config{URL: url, Format: c.format, Secret: secret}).Deliver(t.Context(), d))
		got := requests()[0].header
		require.Equal(t, c.claimCheck, got["Ordered-Claim-Check"], c.headers)
		require.Equal(t, c.encoding, got["Ordered-Content-Encoding"], c.headers)
		require.Equal(t, c.ofTheBytes, got["Content-Encoding"], c.headers)
	}
}

func TestDeliver_SendsCloudEventsInBinaryMode(t *testing.T) {
	t.Parallel()
	url, requests := record(t)
	s := newSink(t, Config{URL: url, Format: CloudEvents})
	d := delivery()
	require.NoError(t, s.Deliver(t.Context(), d))
	d.Type, d.Table = "", `sales."Été%"`
	require.NoError(t, s.Deliver(t.Context(), d))

	first, second := requests()[0].header, requests()[1].header
	require.Equal(t, exact, string(requests()[0].body))
	require.Equal(t, "application/json", first.Get("Content-Type"))
	require.Equal(t, "1.0", first.Get("ce-specversion"))
	require.Equal(t, deliveryKey, first.Get("ce-id"))
	require.Equal(t, "/public.bookings", first.Get("ce-source"))
	require.Equal(t, "booking.confirmed", first.Get("ce-type"))
	require.Equal(t, "2026-01-02T03:04:05.000006Z", first.Get("ce-time"))
	require.Equal(t, `sales.%22%C3%89t%C3%A9%25%22`, second.Get("ce-type"))
	require.Equal(t, `/sales.%2522%25C3%2589t%25C3%25A9%2525%2522`, second.Get("ce-source"), "a URI, escaped once more as a header")
}

func TestHeader_HasNoCETimeThatRFC3339CannotSay(t *testing.T) {
	t.Parallel()
	s := newSink(t, Config{URL: "http://receiver.example", Format: CloudEvents})
	d := delivery()
	d.CreatedAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	require.NotContains(t, s.header(d, []byte(d.Payload), time.Now()), "Ce-Time")
	d.CreatedAt = time.Date(-43, 3, 15, 0, 0, 0, 0, time.UTC)
	require.NotContains(t, s.header(d, []byte(d.Payload), time.Now()), "Ce-Time")
}

func TestDeliver_SendsUserInfoAsBasicAuthentication(t *testing.T) {
	t.Parallel()
	url, requests := record(t)
	s := newSink(t, Config{URL: strings.Replace(url, "//", "//ann:p%40ss@", 1)})
	require.NoError(t, s.Deliver(t.Context(), delivery()))
	user, password, ok := (&http.Request{Header: requests()[0].header}).BasicAuth()
	require.True(t, ok)
	require.Equal(t, "ann p@ss", user+" "+password)
}

func TestDeliver_SendsAnEmptyPayloadAsAnEmptyBody(t *testing.T) {
	t.Parallel()
	url, requests := record(t)
	d := delivery()
	d.Payload = nil
	require.NoError(t, newSink(t, Config{URL: url}).Deliver(t.Context(), d))
	require.Len(t, requests(), 1)
	require.Empty(t, requests()[0].body)
}

func TestDeliver_SendsALargePayload(t *testing.T) {
	t.Parallel()
	url, requests := record(t)
	d := delivery()
	d.Payload = []byte(`"` + strings.Repeat("x", 20<<20) + `"`)
	require.NoError(t, newSink(t, Config{URL: url}).Deliver(t.Context(), d))
	require.Equal(t, []byte(d.Payload), requests()[0].body)
}

// dying acknowledges the first request of a connection and ends it after having
// read the second: what a receiver does that crashes, and what net/http takes
// for a keep-alive connection that just timed out.
func dying(t *testing.T) *rawServer {
	t.Helper()
	return serveRaw(t, func(s *rawServer, conn net.Conn) {
		for s.read(conn) == nil {
			if s.count() == 2 {
				return
			}
			s.ok(conn)
		}
	})
}

func TestDeliver_IsSentOnceOnADyingConnection(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string]string{"payload": exact, "empty payload": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := dying(t)
			s := newSink(t, Config{URL: server.url()})
			d := delivery()
			d.Payload = []byte(payload)
			require.NoError(t, s.Deliver(t.Context(), d))
			err := s.Deliver(t.Context(), d)
			require.ErrorContains(t, err, "the receiver may have the record")
			require.False(t, processor.IsPermanent(err))
			require.Equal(t, 2, server.count())
		})
	}
}

// An empty body of chunks is refused by servers that read none, and left on the connection by others.
func TestDeliver_AnEmptyPayloadHasALengthAndNoChunks(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Length") != "0" || len(r.TransferEncoding) > 0 {
			w.WriteHeader(http.StatusNotImplemented)
		}
	}))
	t.Cleanup(server.Close)
	s := newSink(t, Config{URL: server.URL})
	d := delivery()
	d.Payload = nil
	require.NoError(t, s.Deliver(t.Context(), d))
}

// Why connections are not left to the transport's pool: with GetBody, or without a
// body, that sends again by itself, and nobody learns of it.
func TestTransport_WouldSendTwice(t *testing.T) {
	t.Parallel()
	mutants := map[string]func(*http.Request){
		"GetBody": func(r *http.Request) {
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(exact)), nil }
		},
		"NoBody": func(r *http.Request) { r.Body, r.ContentLength = http.NoBody, 0 },
	}
	for name, mutate := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := dying(t)
			s := newSink(t, Config{URL: server.url()})
			pool := s.receiver.transport
			t.Cleanup(pool.CloseIdleConnections)
			for range 2 {
				req, _, err := s.request(t.Context(), delivery())
				require.NoError(t, err)
				mutate(req)
				resp, err := pool.RoundTrip(req.WithContext(t.Context()))
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
			}
			require.Equal(t, 3, server.count())
		})
	}
}

func TestDeliver_ResetBeforeTheRequestIsTransient(t *testing.T) {
	t.Parallel()
	server := serveRaw(t, func(_ *rawServer, conn net.Conn) { reset(conn) })
	err := newSink(t, Config{URL: server.url()}).Deliver(t.Context(), delivery())
	require.Error(t, err)
	require.False(t, processor.IsPermanent(err))
}

func TestDeliver_ResetAfterTheRequestIsTransientAndOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	server := serveRaw(t, func(s *rawServer, conn net.Conn) {
		_ = s.read(conn)
		reset(conn)
	})
	err := newSink(t, Config{URL: server.url()}).Deliver(t.Context(), delivery())
	require.ErrorContains(t, err, "the receiver may have the record")
	require.Equal(t, "unknown", sinktest.Class(err), "to the processor")
	require.Equal(t, 1, server.count())
}

func TestDeliver_RefusedConnectionIsTransientAndSaysThatNothingWasSent(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	err = newSink(t, Config{URL: "http://" + listener.Addr().String()}).Deliver(t.Context(), delivery())
	require.ErrorContains(t, err, "nothing was sent")
	require.ErrorContains(t, err, "connection refused; start the receiver, or correct host and port in url")
	require.False(t, processor.IsPermanent(err))
}

func TestDeliver_AnswerThatIsNoHTTPIsQuotedShortAndClean(t *testing.T) {
	t.Parallel()
	server := serveRaw(t, func(s *rawServer, conn net.Conn) {
		_ = s.read(conn)
		_, _ = io.WriteString(conn, "\x1b[31mSSH-2.0 "+strings.Repeat("x", 3000)+"\r\n\r\n")
	})
	err := newSink(t, Config{URL: server.url()}).Deliver(t.Context(), delivery())
	require.ErrorContains(t, err, "malformed HTTP")
	require.False(t, processor.IsPermanent(err))
	require.Less(t, len(err.Error()), 700)
	require.NotContains(t, err.Error(), "\x1b")
}

func TestDeliver_SlowAnswerIsATimeoutOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if slow.Load() {
			<-r.Context().Done() // the client hangs up
		}
	})
	s := newSink(t, Config{URL: server.URL, Timeout: 5 * time.Second}) // the first call is to have time on a busy machine
	require.NoError(t, s.Deliver(t.Context(), delivery()), "there is a connection")
	slow.Store(true)
	err := s.Deliver(t.Context(), delivery())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, "unknown", sinktest.Class(err))
	require.ErrorContains(t, err, "no answer within 5s")
	require.ErrorContains(t, err, "the receiver may have the record")
}

func TestDeliver_TimeoutBeforeAnythingWasSentIsNoTimeoutToTheProcessor(t *testing.T) {
	t.Parallel()
	s := newSink(t, Config{URL: "http://127.0.0.1:1", Timeout: 20 * time.Millisecond})
	s.receiver.transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	err := s.Deliver(t.Context(), delivery())
	require.ErrorContains(t, err, "nothing was sent: no answer within 20ms")
	require.False(t, outcome.IsUnknown(err))
	require.False(t, processor.IsPermanent(err))

	s = newSink(t, Config{URL: "http://127.0.0.1:1"})
	s.receiver.transport.DialContext = (&net.Dialer{Deadline: time.Unix(1, 0)}).DialContext
	err = s.Deliver(t.Context(), delivery())
	require.ErrorContains(t, err, "nothing was sent: dial tcp")
	require.False(t, outcome.IsUnknown(err))
}

func TestDeliver_EndsSoonAfterItsContextWithItsCause(t *testing.T) {
	t.Parallel()
	errLost := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := make(chan struct{})
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel(errLost)
		<-r.Context().Done()
		close(gone)
	})
	err := newSink(t, Config{URL: server.URL, Timeout: time.Hour}).Deliver(ctx, delivery())
	require.ErrorIs(t, err, errLost)
	<-gone // the receiver sees the connection end, too
}

func TestDeliver_SendsNothingUnderAnEndedContext(t *testing.T) {
	t.Parallel()
	url, requests := record(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, newSink(t, Config{URL: url}).Deliver(ctx, delivery()), context.Canceled)
	require.Empty(t, requests())
}

func TestDeliver_NextAttemptWorksAfterATimeout(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if n.Add(1) == 1 {
			<-r.Context().Done()
		}
	})
	s := newSink(t, Config{URL: server.URL, Timeout: 5 * time.Second}) // the next call is to have time on a busy machine
	require.ErrorIs(t, s.Deliver(t.Context(), delivery()), context.DeadlineExceeded)
	require.NoError(t, s.Deliver(t.Context(), delivery()))
}

func TestDeliver_RefusesLinkLocalAddresses(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"169.254.169.254", "[::ffff:169.254.169.254]", "[fe80::1]", "[fd00:ec2::254]"} {
		err := newSink(t, Config{URL: "http://" + host + "/"}).Deliver(t.Context(), delivery())
		require.ErrorContains(t, err, "link-local", host)
		require.ErrorContains(t, err, "nothing was sent", host)
	}
}

func TestDeliver_TellsTLSFaultsApart(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs

	_, err := x509.SystemCertPool() // read once, which on a busy machine takes most of a handshake's time
	require.NoError(t, err)

	t.Run("unknown authority", func(t *testing.T) {
		err := newSink(t, Config{URL: server.URL}).Deliver(t.Context(), delivery())
		require.ErrorContains(t, err, "SSL_CERT_FILE")
		require.ErrorContains(t, err, "nothing was sent")
		require.False(t, processor.IsPermanent(err))
	})
	t.Run("another name", func(t *testing.T) {
		s := newSink(t, Config{URL: server.URL})
		s.receiver.transport.TLSClientConfig.RootCAs = roots
		s.receiver.transport.TLSClientConfig.ServerName = "elsewhere.example"
		require.ErrorContains(t, s.Deliver(t.Context(), delivery()), "let url name a host of the certificate")
	})
	t.Run("expired", func(t *testing.T) {
		s := newSink(t, Config{URL: server.URL})
		s.receiver.transport.TLSClientConfig.RootCAs = roots
		s.receiver.transport.TLSClientConfig.Time = func() time.Time { return time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC) }
		require.ErrorContains(t, s.Deliver(t.Context(), delivery()), "the receiver's certificate must be replaced")
	})
	t.Run("plain http on the port", func(t *testing.T) {
		plain := answer(t, http.StatusOK, nil, "")
		err := newSink(t, Config{URL: strings.Replace(plain.URL, "http", "https", 1)}).Deliver(t.Context(), delivery())
		require.ErrorContains(t, err, "set url to http://")
	})
	t.Run("trusted", func(t *testing.T) {
		s := newSink(t, Config{URL: server.URL})
		s.receiver.transport.TLSClientConfig.RootCAs = roots
		require.NoError(t, s.Deliver(t.Context(), delivery()))
	})
}

func TestDeliver_SpeaksHTTP1ToAReceiverThatOffersMore(t *testing.T) {
	t.Parallel()
	proto := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { proto <- r.Proto }))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	s := newSink(t, Config{URL: server.URL})
	s.receiver.transport.TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	require.NoError(t, s.Deliver(t.Context(), delivery()))
	require.Equal(t, "HTTP/1.1", <-proto)
}

func TestDeliver_RefusesTLSBelow12(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = oldTLS()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	s := newSink(t, Config{URL: server.URL})
	s.receiver.transport.TLSClientConfig.InsecureSkipVerify = true
	require.ErrorContains(t, s.Deliver(t.Context(), delivery()), "nothing was sent")
}
