package webhook

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// ledger is a receiver that can be asked for what it has: at /records?key=…
type ledger struct {
	mu    sync.Mutex
	log   []string // of requests
	has   map[string]bool
	probe int  // the status of probes, if not 0
	post  int  // of posts
	mute  bool // posts are taken and not answered
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	l.mu.Lock()
	l.log = append(l.log, r.Method+" "+r.URL.Path)
	status, mute := l.answer(r), l.mute && r.Method == http.MethodPost
	l.mu.Unlock()
	if mute {
		<-r.Context().Done()
		return
	}
	w.Header().Set("Retry-After", "7")
	w.WriteHeader(status)
}

func (l *ledger) answer(r *http.Request) int {
	if r.Method == http.MethodPost {
		l.has[r.Header.Get("Idempotency-Key")] = true
		return max(l.post, http.StatusOK)
	}
	switch {
	case l.probe != 0:
		return l.probe
	case l.has[r.URL.Query().Get("key")]:
		return http.StatusOK
	default:
		return http.StatusNotFound
	}
}

func (l *ledger) set(change func(*ledger)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (l *ledger) requests() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.log, ", ")
}

func newLedger(t *testing.T) (*ledger, *Sink) {
	l := &ledger{has: map[string]bool{}}
	server := serve(t, l.ServeHTTP)
	return l, newSink(t, Config{URL: server.URL + "/in", Timeout: 5 * time.Second, Probe: "GET /records?key={{.DedupKey}}"})
}

func unsure() processor.Delivery {
	d := delivery()
	d.Unknown = true
	return d
}

func TestProbe_ARecordThatTheReceiverHasIsNotSentAgain(t *testing.T) {
	t.Parallel()
	l, s := newLedger(t)
	l.set(func(l *ledger) { l.mute = true })
	require.True(t, outcome.IsUnknown(s.Deliver(t.Context(), delivery())))
	l.set(func(l *ledger) { l.mute = false })
	require.NoError(t, s.Deliver(t.Context(), unsure()))
	require.Equal(t, "POST /in, GET /records", l.requests())
}

func TestProbe_ARecordThatTheReceiverHasNotIsSent(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusGone} {
		l, s := newLedger(t)
		l.set(func(l *ledger) { l.probe = status })
		require.NoError(t, s.Deliver(t.Context(), unsure()))
		require.Equal(t, "GET /records, POST /in", l.requests())
	}
}

func TestProbe_IsNotMadeWithoutADoubt(t *testing.T) {
	t.Parallel()
	l, s := newLedger(t)
	require.NoError(t, s.Deliver(t.Context(), delivery()))
	require.Equal(t, "POST /in", l.requests())
}

func TestProbe_AnyOtherAnswerLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 405, 429, 500, 502, 503} {
		l, s := newLedger(t)
		l.set(func(l *ledger) { l.probe = status })
		err := s.Deliver(t.Context(), unsure())
		require.Equal(t, "unknown", sinktest.Class(err), "%d: %v", status, err)
		require.Equal(t, 7*time.Second, processor.RetryAfterDelay(err), status)
		require.ErrorContains(t, err, "it may have already")
		require.Equal(t, "GET /records", l.requests(), "nothing is sent")
	}
}

// Halting is what a wrong secret calls for; the record is still in doubt afterwards.
func TestProbe_AReceiverThatRefusesUsHalts(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 307, 401, 402, 403, 407} {
		l, s := newLedger(t)
		l.set(func(l *ledger) { l.probe = status })
		err := s.Deliver(t.Context(), unsure())
		require.True(t, processor.IsRefused(err), "%d: %v", status, err)
		require.True(t, outcome.IsUnknown(err), status)
		require.Equal(t, "GET /records", l.requests(), "nothing is sent")
	}
}

func TestProbe_NoAnswerLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	s := newSink(t, Config{URL: "http://" + listener.Addr().String(), Probe: "GET /{{.DedupKey}}"})
	err = s.Deliver(t.Context(), unsure())
	require.ErrorContains(t, err, "connection refused")
	require.True(t, outcome.IsUnknown(err), "this request was not sent, but an earlier one was")

	server := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s = newSink(t, Config{URL: server.URL, Timeout: 50 * time.Millisecond, Probe: "GET /{{.DedupKey}}"})
	err = s.Deliver(t.Context(), unsure())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.True(t, outcome.IsUnknown(err))
}

// A receiver that keeps its answers by Idempotency-Key would keep the 404 of a
// probe, too.
func TestProbe_CarriesCredentialsAndNothingThatNamesAPost(t *testing.T) {
	t.Parallel()
	url, requests := record(t)
	s := newSink(t, Config{
		URL: url, Bearer: "token", Secret: secret, Format: CloudEvents, Headers: map[string]string{"X-Tenant": "a"},
		Probe: "GET  /records/{{.ID}}",
	})
	require.NoError(t, s.Deliver(t.Context(), unsure()))
	require.Len(t, requests(), 1)
	r := requests()[0]
	require.Equal(t, "GET /records/42", r.method+" "+r.uri)
	require.Equal(t, http.Header{"Authorization": {"Bearer token"}, "User-Agent": {"ordered-dispatcher"}, "X-Tenant": {"a"}}, r.header)
}

func TestNew_RefusesProbesThatAskForNoRecord(t *testing.T) {
	t.Parallel()
	for probe, fault := range map[string]string{
		"/records/{{.ID}}":              "not of the form",
		"POST /records/{{.ID}}":         "not of the form",
		"GET records/{{.ID}}":           "not of the form",
		"GET https://elsewhere/{{.ID}}": "not of the form",
		"GET @elsewhere/{{.ID}}":        "not of the form",
		"GET //elsewhere/{{.ID}}":       "//",
		"GET /canary":                   "is the same for all records",
		"GET /canary/{{.Nope}}":         "there are .Process",
		"GET /canary/{{.ID}}#":          "fragment",
	} {
		_, err := New(Config{URL: "https://host/in", Probe: probe})
		require.ErrorContains(t, err, "probe: ", probe)
		require.ErrorContains(t, err, fault, probe)
		require.NotContains(t, err.Error(), "canary")
	}
}
