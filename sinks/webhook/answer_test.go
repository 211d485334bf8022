package webhook

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func TestDeliver_StatusDecides(t *testing.T) {
	t.Parallel()
	type verdict string
	const acknowledged, transient, unreached, permanent, refused verdict = "acknowledged", "transient", "unreached", "permanent", "refused"
	verdicts := map[int]verdict{
		200: acknowledged, 201: acknowledged, 202: acknowledged, 204: acknowledged, 206: acknowledged, 299: acknowledged,
		300: refused, 301: refused, 302: refused, 303: refused, 304: refused, 307: refused, 308: refused,
		401: refused, 402: refused, 403: refused, 404: refused, 405: refused, 407: refused, 410: refused,
		400: permanent, 406: permanent, 409: permanent, 411: permanent, 413: permanent, 415: permanent, 421: permanent, 422: permanent, 431: permanent, 499: permanent, 600: permanent, 999: permanent,
		408: transient, 425: transient, 429: unreached,
		500: transient, 501: transient, 502: transient, 503: transient, 504: transient, 599: transient,
	}
	for status, want := range verdicts {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			server := answer(t, status, map[string]string{"Location": "/elsewhere"}, "")
			err := newSink(t, Config{URL: server.URL}).Deliver(t.Context(), delivery())
			if want == acknowledged {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "post to "+server.URL+": answered "+strconv.Itoa(status))
			require.Equal(t, want == permanent, processor.IsPermanent(err))
			require.Equal(t, want == refused, processor.IsRefused(err))
			require.Equal(t, want == unreached, processor.IsUnreached(err), "a limit on what we send is no word on a record")
			require.Equal(t, status == 502 || status == 504, outcome.IsUnknown(err), "a gateway knows not what became of it")
		})
	}
}

// Where the record is a part of the address, an address that is not there is the
// record's.
func TestDeliver_AnAddressOfTheRecordsIsAVerdictOnIt(t *testing.T) {
	t.Parallel()
	for status, permanent := range map[int]bool{404: true, 405: true, 410: true, 302: false, 401: false, 402: false, 403: false, 407: false} {
		server := answer(t, status, nil, "")
		err := newSink(t, Config{URL: server.URL + "/customers/{{.Key}}"}).Deliver(t.Context(), delivery())
		require.Equal(t, permanent, processor.IsPermanent(err), status)
		require.Equal(t, !permanent, processor.IsRefused(err), status)
	}
}

func TestDeliver_FollowsNoRedirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		elsewhere, requests := record(t)
		server := answer(t, status, map[string]string{"Location": elsewhere}, "")
		err := newSink(t, Config{URL: server.URL}).Deliver(t.Context(), delivery())
		require.ErrorContains(t, err, "redirects are not followed")
		require.Empty(t, requests(), status)
	}
}

func TestDeliver_InformationalAnswersAreSkipped(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProcessing)
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusOK)
	})
	require.NoError(t, newSink(t, Config{URL: server.URL}).Deliver(t.Context(), delivery()))
}

func TestDeliver_SwitchingProtocolsIsRefusedAndDoesNotHang(t *testing.T) {
	t.Parallel()
	server := serveRaw(t, func(s *rawServer, conn net.Conn) {
		_ = s.read(conn)
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = conn.Read(make([]byte, 1)) // until the sink hangs up
	})
	err := newSink(t, Config{URL: server.url(), Timeout: time.Hour}).Deliver(t.Context(), delivery())
	require.ErrorContains(t, err, "answered 101")
	require.ErrorContains(t, err, "this sink speaks HTTP/1.1 alone")
	require.NotContains(t, err.Error(), "redirect")
	require.True(t, processor.IsRefused(err))
}

// A port that expects TLS answers 400 to every record: that is our url, and no verdict on a record.
func TestDeliver_APortThatExpectsTLSIsNoVerdictOnTheRecord(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	const nginx = "<html>\r\n<head><title>400 The plain HTTP request was sent to HTTPS port</title></head>\r\n<body>"
	for name, url := range map[string]string{"Go": "http://" + secure.Listener.Addr().String(), "nginx": answer(t, 400, nil, nginx).URL} {
		for _, hide := range []bool{true, false} {
			err := newSink(t, Config{URL: url, HideAnswers: hide}).Deliver(t.Context(), delivery())
			require.True(t, processor.IsRefused(err), "%s: %v", name, err)
			require.False(t, processor.IsPermanent(err) && !processor.IsRefused(err), err)
			require.ErrorContains(t, err, "the port expects TLS: set url to https://")
		}
	}
	echo := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, "no: ", nginx, "Client sent an HTTP request to an HTTPS server.")
	})
	err := newSink(t, Config{URL: echo.URL}).Deliver(t.Context(), delivery())
	require.True(t, processor.IsPermanent(err) && !processor.IsRefused(err), "a record that is repeated decides nothing: %v", err)
	require.ErrorContains(t, err, "if the port expects TLS, set url to https://")
}

func TestDeliver_HonoursRetryAfterOfTransientAnswersOnly(t *testing.T) {
	t.Parallel()
	for _, status := range []int{408, 425, 429, 500, 503} {
		server := answer(t, status, map[string]string{"Retry-After": "120"}, "")
		err := newSink(t, Config{URL: server.URL}).Deliver(t.Context(), delivery())
		require.Equal(t, 2*time.Minute, processor.RetryAfterDelay(err), status)
	}
	server := answer(t, 422, map[string]string{"Retry-After": "120"}, "")
	err := newSink(t, Config{URL: server.URL}).Deliver(t.Context(), delivery())
	require.True(t, processor.IsPermanent(err))
	require.Zero(t, processor.RetryAfterDelay(err))
}

func TestRetryAfter_ReadsSecondsAndDates(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	date := func(at time.Time) string { return at.Format(http.TimeFormat) }
	for _, c := range []struct {
		value, date string
		want        time.Duration
	}{
		{"120", "", 2 * time.Minute},
		{"0", "", 0},
		{"-5", "", 0},
		{"1.5", "", 0},
		{"soon", "", 0},
		{"", "", 0},
		{"99999999999999999999999", "", maxRetryAfter},
		{"Fri, 31 Dec 9999 23:59:59 GMT", "", maxRetryAfter},
		{date(now.Add(time.Minute)), "", time.Minute},
		{date(now.Add(-time.Minute)), "", 0},
		// The receiver's clock is an hour behind; it wants a minute.
		{date(now.Add(-59 * time.Minute)), date(now.Add(-time.Hour)), time.Minute},
	} {
		header := http.Header{"Retry-After": {c.value}, "Date": {c.date}}
		require.Equal(t, c.want, retryAfter(header, now), "%+v", c)
	}
}

func TestDeliver_ErrorHoldsAShortCleanExcerptWithoutSecrets(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { // a receiver that echoes all it got
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = fmt.Fprintf(w, "\x1b[31mno\r\n\x00\u2028\xff such %s %s %s %s\n%s",
			r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.URL, secret, strings.Repeat("é", 5000))
	})
	s := newSink(t, Config{
		URL:     strings.Replace(server.URL, "//", "//canary-user:canary-pass@", 1) + "/p?token=canary-query&v=1",
		Secret:  secret,
		Headers: map[string]string{"X-Api-Key": "canary-header"},
	})
	err := s.Deliver(t.Context(), delivery())
	require.ErrorContains(t, err, "answered 422 Unprocessable Entity: [31mno such Basic [secret] [secret] /p?[secret] [secret] éé")
	require.True(t, processor.IsPermanent(err))
	require.Less(t, len(err.Error()), 400)
	require.NotContains(t, err.Error(), "canary")
	require.NotContains(t, err.Error(), "Y2FuYXJ5", "base64 of canary")
	require.NotContains(t, err.Error(), secret[6:])
	require.NotContains(t, err.Error(), "\n")
	require.NotContains(t, err.Error(), "\x1b")
}

func TestDeliver_EndlessBodyIsReadToABound(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 500} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			var written atomic.Int64
			gone := make(chan struct{})
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				defer close(gone)
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(status)
				for {
					n, err := w.Write(make([]byte, 4<<10))
					written.Add(int64(n))
					if err != nil {
						return
					}
				}
			})
			err := newSink(t, Config{URL: server.URL, Timeout: time.Hour}).Deliver(t.Context(), delivery())
			require.Equal(t, status == 200, err == nil)
			<-gone // the sink closed the connection
			require.Less(t, written.Load(), int64(64<<20), "what socket buffers take in")
		})
	}
}

// On a pipe nothing but the sink takes in what is sent.
func TestDeliver_ReadsNoMoreOfABodyThanItsBound(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"200 OK", "500 Broken"} {
		synctest.Test(t, func(t *testing.T) {
			sent := 0
			s := newPipeSink(t, Config{URL: "http://receiver.example"}, func(conn net.Conn) {
				_ = new(rawServer).read(conn)
				_, err := io.WriteString(conn, "HTTP/1.1 "+status+"\r\nContent-Length: 1000000\r\n\r\n")
				for n := 0; err == nil && sent < 1_000_000; sent += n {
					n, err = conn.Write(make([]byte, 1000))
				}
			})
			err := s.Deliver(t.Context(), delivery())
			require.Equal(t, status == "200 OK", err == nil)
			synctest.Wait()
			require.LessOrEqual(t, sent, maxBody+8<<10, "and what a buffer takes in")
		})
	}
}

func TestDeliver_EndlessHeaderIsReadToABound(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	server := serveRaw(t, func(s *rawServer, conn net.Conn) {
		defer close(gone)
		_ = s.read(conn)
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for err == nil {
			_, err = io.WriteString(conn, "X: "+strings.Repeat("x", 1000)+"\r\n")
		}
	})
	err := newSink(t, Config{URL: server.url(), Timeout: time.Hour}).Deliver(t.Context(), delivery())
	require.Error(t, err)
	require.False(t, processor.IsPermanent(err))
	<-gone
}

// A body that trickles costs 250 ms of a minute, whatever the status was.
func TestDeliver_SlowBodyIsReadForAQuarterOfASecond(t *testing.T) {
	t.Parallel()
	for status, wantError := range map[string]string{"200 OK": "", "503 Busy": "answered 503 Service Unavailable: wait"} {
		synctest.Test(t, func(t *testing.T) {
			s := newPipeSink(t, Config{URL: "http://receiver.example", Timeout: time.Minute}, func(conn net.Conn) {
				_ = new(rawServer).read(conn)
				_, err := io.WriteString(conn, "HTTP/1.1 "+status+"\r\nContent-Length: 1000\r\n\r\nwait")
				for err == nil {
					time.Sleep(100 * time.Millisecond) // the receiver is slow
					_, err = io.WriteString(conn, "\x00")
				}
			})
			began := time.Now()
			err := s.Deliver(t.Context(), delivery())
			require.Equal(t, bodyTimeout, time.Since(began))
			if wantError == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, wantError)
			}
		})
	}
}

func TestCure_NamesTheHostOfAFailedLookup(t *testing.T) {
	t.Parallel()
	require.Contains(t, fix(&net.DNSError{IsNotFound: true}), "check the host in url")
	require.Empty(t, fix(&net.DNSError{IsTemporary: true}))
}
