package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func TestDeliver_SendsBearerAndBasic(t *testing.T) {
	t.Parallel()
	url, requests := record(t)
	d := delivery()
	require.NoError(t, newSink(t, Config{URL: url, Bearer: "token-1"}).Deliver(t.Context(), d))
	require.NoError(t, newSink(t, Config{URL: url, Basic: Basic{"ann", "p@ss:word"}}).Deliver(t.Context(), d))
	require.NoError(t, newSink(t, Config{URL: url, Basic: Basic{User: "an API key"}}).Deliver(t.Context(), d))
	require.Equal(t, "Bearer token-1", requests()[0].header.Get("Authorization"))
	user, password, ok := (&http.Request{Header: requests()[2].header}).BasicAuth()
	require.Equal(t, []any{"an API key", "", true}, []any{user, password, ok})
	user, password, ok = (&http.Request{Header: requests()[1].header}).BasicAuth()
	require.True(t, ok)
	require.Equal(t, "ann p@ss:word", user+" "+password)
}

func TestNew_RefusesCredentialsThatCannotBeSentAndQuotesNothing(t *testing.T) {
	t.Parallel()
	for fault, c := range map[string]Config{
		"(bearer, basic)":                            {Bearer: "canary", Basic: Basic{"canary", "canary"}},
		"(bearer, Authorization in headers)":         {Bearer: "canary", Headers: map[string]string{"authorization": "canary"}},
		"bearer has a character":                     {Bearer: "canary\n"},
		"basic has a user that is empty":             {Basic: Basic{"", "canary"}},
		"basic has a user that is empty, or has a c": {Basic: Basic{"can:ary", "canary"}},
		"basic has a control character":              {Basic: Basic{"ann", "canary\n"}},
		"tls is given, and the url is not https":     {TLS: new(tls.Config)},
	} {
		c.URL = "http://host/"
		_, err := New(c)
		require.ErrorContains(t, err, fault)
		require.NotContains(t, err.Error(), "canary")
	}
}

func TestDeliver_CredentialsThatAreEchoedAreTakenOut(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{{Bearer: "canary-token"}, {Basic: Basic{"ann", "canary-password"}}, {URL: "/in/canary-token/{{.ID}}?token=canary-token"},
		{Probe: "GET /canary-token/{{.ID}}"}} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, r.RequestURI+user+password+r.Header.Get("Authorization"))
		})
		c.URL = server.URL + c.URL
		d := delivery()
		d.Unknown = true
		err := newSink(t, c).Deliver(t.Context(), d)
		require.ErrorContains(t, err, "422")
		require.NotContains(t, err.Error(), "canary")
	}
}

func TestDeliver_MutualTLSWithAnOwnAuthority(t *testing.T) {
	t.Parallel()
	ours, theirs := brokertest.NewCertificates(t), brokertest.NewCertificates(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS.PeerCertificates[0].Subject.CommonName != "dispatcher" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair(t, theirs.ServerCert, theirs.ServerKey)},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: roots(ours),
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)

	deliver := func(c *tls.Config) error {
		return newSink(t, Config{URL: server.URL, TLS: c}).Deliver(t.Context(), delivery())
	}
	shown := []tls.Certificate{pair(t, ours.ClientCert, ours.ClientKey)}
	require.NoError(t, deliver(&tls.Config{RootCAs: roots(theirs), Certificates: shown}))
	require.NoError(t, deliver(&tls.Config{RootCAs: roots(theirs), ServerName: "localhost", Certificates: shown}))

	err := deliver(&tls.Config{RootCAs: roots(theirs), ServerName: "elsewhere.example", Certificates: shown})
	require.ErrorContains(t, err, "let url name a host of the certificate")
	err = deliver(&tls.Config{RootCAs: roots(ours), Certificates: shown})
	require.ErrorContains(t, err, "nothing was sent")
	require.ErrorContains(t, err, "give the receiver's authority in tls")
	err = deliver(&tls.Config{RootCAs: roots(theirs)})
	require.ErrorContains(t, err, "give the receiver one that it knows in tls")
	require.False(t, processor.IsPermanent(err))
}

// Since TLS 1.3, a receiver refuses a certificate when the request may be on its way. It reads none of it.
func TestDeliver_ARefusedCertificateOfOursSentNothing(t *testing.T) {
	t.Parallel()
	ours, theirs := brokertest.NewCertificates(t), brokertest.NewCertificates(t)
	for name, shown := range map[string][]tls.Certificate{
		"none":                  nil,
		"one of another issuer": {pair(t, theirs.ClientCert, theirs.ClientKey)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			t.Cleanup(func() { listener.Close() })
			go func() {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				_ = tls.Server(conn, &tls.Config{
					Certificates: []tls.Certificate{pair(t, theirs.ServerCert, theirs.ServerKey)},
					ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: roots(ours), MinVersion: tls.VersionTLS13,
				}).Handshake()
				_, _ = io.Copy(io.Discard, conn) // so that no reset overtakes the alert
			}()
			err = newSink(t, Config{URL: "https://" + listener.Addr().String(), TLS: &tls.Config{RootCAs: roots(theirs), Certificates: shown}}).Deliver(t.Context(), delivery())
			require.ErrorContains(t, err, "nothing was sent: remote error: tls: ")
			require.ErrorContains(t, err, "give the receiver one that it knows in tls")
			require.True(t, processor.IsUnreached(err))
		})
	}
}

// A receiver that asked for no certificate, or judges one before it ends the handshake, may have read the request when it
// sends an alert about certificates.
func TestDeliver_OnlyAReceiverThatAskedMayRefuseACertificate(t *testing.T) {
	t.Parallel()
	ours, theirs := brokertest.NewCertificates(t), brokertest.NewCertificates(t)
	for _, c := range []struct {
		asks    tls.ClientAuthType
		version uint16
		want    bool
	}{{tls.NoClientCert, tls.VersionTLS13, false}, {tls.RequireAndVerifyClientCert, tls.VersionTLS12, false}, {tls.RequireAndVerifyClientCert, tls.VersionTLS13, true}} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		server.TLS = &tls.Config{
			Certificates: []tls.Certificate{pair(t, theirs.ServerCert, theirs.ServerKey)},
			ClientAuth:   c.asks, ClientCAs: roots(ours), MaxVersion: c.version,
		}
		server.StartTLS()
		t.Cleanup(server.Close)
		s := newSink(t, Config{URL: server.URL, TLS: &tls.Config{RootCAs: roots(theirs), Certificates: []tls.Certificate{pair(t, ours.ClientCert, ours.ClientKey)}}})
		require.NoError(t, s.Deliver(t.Context(), delivery()))
		require.Equal(t, c.want, s.receiver.wanted.Load())
	}
}

func TestTurnedAway_NeedsAnAlertAboutACertificateThatWasAskedForFirst(t *testing.T) {
	t.Parallel()
	about := func(code tls.AlertError) *net.OpError { return &net.OpError{Op: "remote error", Err: code} }
	c := &connection{}
	require.False(t, c.turnedAway(false, about(46)), "it did not ask for one")
	c.wanted.Store(true)
	require.True(t, c.turnedAway(false, about(46)))
	require.True(t, c.turnedAway(false, about(116)))
	require.False(t, c.turnedAway(true, about(46)), "it took a request before")
	require.False(t, c.turnedAway(false, about(80)), "its own fault")
	require.False(t, c.turnedAway(false, nil))
}

func pair(t *testing.T, cert, key []byte) tls.Certificate {
	t.Helper()
	p, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	return p
}

func roots(c *brokertest.Certificates) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.CA)
	return pool
}

func TestNew_KeepsACallersTLSConfigAsItIs(t *testing.T) {
	t.Parallel()
	given := new(tls.Config)
	s := newSink(t, Config{URL: "https://host/", TLS: given})
	require.EqualValues(t, tls.VersionTLS12, s.receiver.transport.TLSClientConfig.MinVersion)
	require.Zero(t, given.MinVersion)
	s = newSink(t, Config{URL: "https://host/", TLS: &tls.Config{MinVersion: tls.VersionTLS13}})
	require.EqualValues(t, tls.VersionTLS13, s.receiver.transport.TLSClientConfig.MinVersion)
}
