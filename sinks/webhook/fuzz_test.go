package webhook

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Whatever a record holds, its request is one that net/http sends and reads, with
// the headers of the contract and no others, each of which gives its value back
// after one round of decoding.
func FuzzHeader(f *testing.F) {
	d := delivery()
	f.Add(d.Process, d.Table, d.ID, d.Key, d.Type, string(d.Position), d.CreatedAt.UnixMicro(), d.Sequence)
	f.Add("", "", "", "", "", "", int64(0), int64(0))
	f.Add("a\r\nX-Injected: 1", "t.\x00", "1.2.3", "k\n", "\x7f€\xff", "%0A \"", int64(-1), int64(-1))
	f.Add("p", "a", "/b", " k ", "\t", "int:1", int64(1)<<62, int64(1)<<62)
	f.Fuzz(func(t *testing.T, process, table, id, key, typ, position string, at, sequence int64) {
		d := processor.Delivery{
			Record: processor.Record{
				Position: cursor.Position(position), Table: table, ID: id, Key: key, Type: typ,
				CreatedAt: time.UnixMicro(at), Payload: []byte(exact),
			},
			Process: process, Sequence: sequence, Epoch: 1, Attempt: 1,
		}
		s, err := New(Config{URL: "http://receiver.example/path", Secret: secret, Format: CloudEvents})
		require.NoError(t, err)
		got := sent(t, s, d)
		for name, want := range map[string]string{
			"Ordered-Process":   process,
			"Ordered-Key":       key,
			"Ordered-Type":      typ,
			"Ordered-Position":  position,
			"Ordered-Dedup-Key": d.DedupKey(),
			"Idempotency-Key":   d.DedupKey(),
			"Webhook-Id":        d.DedupKey(),
			"Ce-Id":             d.DedupKey(),
		} {
			back, err := url.PathUnescape(got.Get(name))
			require.NoError(t, err)
			require.Equal(t, want, back, name)
			require.LessOrEqual(t, len(got[name]), 1)
		}
		row, _ := strings.CutPrefix(got.Get("Webhook-Id"), escape(table))
		require.NotContains(t, row, ".", "no id moves the borders of what is signed")
		for name := range got {
			require.Contains(t, names, name)
		}
	})
}

// names are the headers of the contract.
var names = []string{
	"Content-Type", "Content-Length", "User-Agent", "Idempotency-Key",
	"Ordered-Process", "Ordered-Sequence", "Ordered-Epoch", "Ordered-Attempt", "Ordered-Position", "Ordered-Key", "Ordered-Type",
	"Ordered-Version", "Ordered-Dedup-Key", "Ordered-Created-At",
	"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "Ordered-Signature",
	"Ce-Specversion", "Ce-Id", "Ce-Source", "Ce-Type", "Ce-Time",
}

// sent sends a delivery through the transport and returns the headers that arrive.
func sent(t *testing.T, s *Sink, d processor.Delivery) http.Header {
	t.Helper()
	requests := make(chan *http.Request, 1)
	pipe(t, s, func(conn net.Conn) {
		request, err := http.ReadRequest(bufio.NewReader(conn))
		if err == nil {
			_, _ = io.Copy(io.Discard, request.Body)
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
		}
		requests <- request
	})
	require.NoError(t, s.Deliver(t.Context(), d))
	request := <-requests
	require.NotNil(t, request)
	return request.Header
}

// Whatever bytes answer: a delivery is acknowledged by 2xx alone, a delay that was
// asked for is bounded, and what an operator is told is one short line.
func FuzzAnswer(f *testing.F) {
	log.SetOutput(io.Discard) // net/http prints there what comes unasked
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok",
		"HTTP/1.1 307 Elsewhere\r\nLocation: http://elsewhere.example\r\n\r\n",
		"HTTP/1.1 422 \x1b[31m\r\nContent-Length: 8\r\n\r\n\x00\r\n\xffé" + "\u2028" + secret,
		"HTTP/1.1 503 Busy\r\nRetry-After: 99999999999999999999\r\n\r\n" + strings.Repeat("é", 300),
		"HTTP/1.1 429 Wait\r\nRetry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\nDate: Mon, 01 Jan 0001 00:00:00 GMT\r\n\r\n",
		"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
		"HTTP/1.1 99 X\r\n\r\n", "HTTP/1.1 999 X\r\n\r\n", "HTTP/0.9 200\r\n\r\n", "SSH-2.0-\x00\x07\n", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		s, err := New(Config{URL: "http://receiver.example", Secret: secret, Timeout: time.Minute})
		require.NoError(t, err)
		pipe(t, s, func(conn net.Conn) {
			if new(rawServer).read(conn) == nil {
				_, _ = conn.Write(answer)
			}
		})
		err = s.Deliver(t.Context(), delivery())
		status := answered(answer)
		if err == nil {
			require.True(t, status >= 200 && status <= 299, "acknowledged by %d", status)
			return
		}
		if processor.IsPermanent(err) || processor.IsRefused(err) {
			require.False(t, status < 0 || isTransient(status), "permanent by %d", status)
			require.Zero(t, processor.RetryAfterDelay(err))
		}
		require.LessOrEqual(t, processor.RetryAfterDelay(err), maxRetryAfter)
		require.GreaterOrEqual(t, processor.RetryAfterDelay(err), time.Duration(0))
		require.LessOrEqual(t, len(err.Error()), 1000)
		require.True(t, utf8.ValidString(err.Error()))
		require.False(t, strings.ContainsFunc(err.Error(), unicode.IsControl), "%q", err)
		require.NotContains(t, err.Error(), secret)
	})
}

// answered is the status that decides, as another reader of HTTP sees it; -1 if
// there is none.
func answered(answer []byte) int {
	for r := bufio.NewReader(bytes.NewReader(answer)); ; {
		response, err := http.ReadResponse(r, &http.Request{Method: http.MethodPost})
		if err != nil {
			return -1
		}
		if status := response.StatusCode; status < 100 || status > 199 || status == http.StatusSwitchingProtocols {
			return status
		}
	}
}
