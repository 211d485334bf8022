package webhook

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The two differ in what a delivery adds to a POST. Compare them with
//
//	go test -bench 'BarePOST|Deliver' -count 10 ./sinks/webhook
func BenchmarkBarePOST(b *testing.B) {
	server := answer(b, http.StatusOK, nil, "")
	client := &http.Client{Transport: newSink(b, Config{URL: server.URL}).receiver.transport}
	b.ReportAllocs()
	for b.Loop() {
		resp, err := client.Post(server.URL, "application/json", bytes.NewReader([]byte(exact)))
		require.NoError(b, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

// What the headers of the contract cost the transport and the receiver, which
// runs in this process, too.
func BenchmarkBarePOSTWithHeaders(b *testing.B) {
	server := answer(b, http.StatusOK, nil, "")
	s := newSink(b, Config{URL: server.URL})
	client := &http.Client{Transport: s.receiver.transport}
	header := s.header(delivery(), []byte(delivery().Payload), time.Now())
	b.ReportAllocs()
	for b.Loop() {
		req, err := http.NewRequest(http.MethodPost, server.URL, bytes.NewReader([]byte(exact)))
		require.NoError(b, err)
		req.Header = header
		resp, err := client.Do(req)
		require.NoError(b, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

func BenchmarkDeliver(b *testing.B) { benchmarkDeliver(b, Config{}) }

func BenchmarkDeliverSigned(b *testing.B) { benchmarkDeliver(b, Config{Secret: secret}) }

func benchmarkDeliver(b *testing.B, c Config) {
	c.URL = answer(b, http.StatusOK, nil, "").URL
	s := newSink(b, c)
	d := delivery()
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, s.Deliver(b.Context(), d))
	}
}
