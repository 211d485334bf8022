package main_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
)

// bookkeeper is a receiver that verifies what it takes, and takes it twice if it
// is sent twice. It dies in the middle of its third POST, and answers probes.
type bookkeeper struct {
	verifier *standardwebhooks.Webhook

	mu     sync.Mutex
	paths  []string // of what it has, in its order
	keys   map[string]bool
	probes int
	faults []string
}

func (b *bookkeeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer a-token" {
		b.faults = append(b.faults, "no token")
	}
	if r.Method == http.MethodGet {
		b.probes++
		if r.URL.Path != "/bookings" || !b.keys[r.URL.Query().Get("key")] {
			w.WriteHeader(http.StatusNotFound)
		}
		return
	}
	b.take(r)
	if len(b.paths) == 3 {
		panic(http.ErrAbortHandler) // the answer is lost
	}
}

func (b *bookkeeper) take(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = b.verifier.Verify(body, r.Header)
	}
	if err != nil {
		b.faults = append(b.faults, err.Error())
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	e, err := cehttp.NewEventFromHTTPRequest(r)
	if err != nil || e.Validate() != nil {
		b.faults = append(b.faults, "no event: "+string(body))
		return
	}
	b.paths = append(b.paths, r.RequestURI)
	b.keys[e.ID()] = true
}

// The configuration of docs/sinks/webhook.md, for the table and the receiver of
// this test.
func TestDrain_IntoAWebhook(t *testing.T) {
	t.Parallel()
	const oldSecret, newSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
	verifier, err := standardwebhooks.NewWebhook(newSecret)
	require.NoError(t, err)
	receiver := &bookkeeper{verifier: verifier, keys: map[string]bool{}}
	certificates := brokertest.NewCertificates(t)
	server := mutual(t, certificates, receiver)

	page, err := os.ReadFile("../../docs/sinks/webhook.md")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	ca, cert, key := certificates.Write(t)
	text = strings.NewReplacer(
		"table: public.bookings", "table: public.bookings", "https://receiver.example", server.URL,
		"${OLD_SECRET}", oldSecret, "${NEW_SECRET}", newSecret, "${TOKEN}", "a-token",
		"/etc/dispatcher/ca.pem", ca, "/etc/dispatcher/cert.pem", cert, "/etc/dispatcher/key.pem", key,
	).Replace(text)
	address, _ := database(t, 5)
	code, _, stderr := do(t, address, "run", "--drain", "-c", file(t, text))
	require.Zero(t, code, stderr)
	require.NotContains(t, stderr, "a-token")
	require.Empty(t, receiver.faults)
	require.Equal(t, []string{
		"/customers/c1/bookings", "/customers/c2/bookings", "/customers/c3/bookings", "/customers/c4/bookings", "/customers/c5/bookings",
	}, receiver.paths, "the third is not sent again: the receiver says that it has it")
	require.Equal(t, 1, receiver.probes)
}

// mutual runs a receiver that wants a certificate of its clients.
func mutual(t testing.TB, c *brokertest.Certificates, handler http.Handler) *httptest.Server {
	t.Helper()
	pair, err := tls.X509KeyPair(c.ServerCert, c.ServerKey)
	require.NoError(t, err)
	authorities := x509.NewCertPool()
	require.True(t, authorities.AppendCertsFromPEM(c.CA))
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}
