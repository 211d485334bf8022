package nats_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// declaring is a sink that makes its stream, so that nobody else logs in.
func declaring(t testing.TB, s *server.Server, change func(*nats.Config)) *nats.Sink {
	t.Helper()
	return sinktest.Made(t, nats.New, nats.Config{
		URL: "nats://" + s.Addr().String(), Stream: stream, Subject: "bookings.{{.Type}}", Timeout: 10 * time.Second,
		Declare: &nats.Declare{Subjects: []string{"bookings.>"}},
	}, change)
}

func requireRefused(t testing.TB, s *nats.Sink, fix string) {
	t.Helper()
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 2))
	require.Zero(t, n)
	require.ErrorContains(t, err, fix)
	require.NotContains(t, err.Error(), "secret")
	require.False(t, processor.IsPermanent(err))
}

const correctLogin = "correct user and password, token, credentials or nkey"

func TestLogin_ByUserAndPassword(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	sinktest.Delivered(t, declaring(t, s, func(c *nats.Config) { c.User, c.Password = user, password }), sinktest.Deliveries(1, 1))
	inURL := func(c *nats.Config) { c.URL = "nats://" + user + ":" + password + "@" + s.Addr().String() }
	sinktest.Delivered(t, declaring(t, s, inURL), sinktest.Deliveries(2, 1))
	requireRefused(t, declaring(t, s, func(c *nats.Config) { c.User, c.Password = user, "secret-but-wrong" }), correctLogin)
	requireRefused(t, declaring(t, s, func(*nats.Config) {}), correctLogin)
}

func TestLogin_ByToken(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(o *server.Options) { o.Username, o.Password, o.Authorization = "", "", "secret-token" })
	sinktest.Delivered(t, declaring(t, s, func(c *nats.Config) { c.Token = "secret-token" }), sinktest.Deliveries(1, 1))
	requireRefused(t, declaring(t, s, func(c *nats.Config) { c.Token = "secret-but-wrong" }), correctLogin)
}

func TestLogin_ByNKey(t *testing.T) {
	t.Parallel()
	key, err := nkeys.CreateUser()
	require.NoError(t, err)
	public, err := key.PublicKey()
	require.NoError(t, err)
	s := startServer(t, func(o *server.Options) {
		o.Username, o.Password, o.Nkeys = "", "", []*server.NkeyUser{{Nkey: public}}
	})
	sinktest.Delivered(t, declaring(t, s, func(c *nats.Config) { c.NKey = seedFile(t, key) }), sinktest.Deliveries(1, 1))
	other, err := nkeys.CreateUser()
	require.NoError(t, err)
	requireRefused(t, declaring(t, s, func(c *nats.Config) { c.NKey = seedFile(t, other) }), correctLogin)
	requireRefused(t, declaring(t, s, func(c *nats.Config) { c.NKey = "/nowhere" }), "/nowhere")
}

func seedFile(t testing.TB, key nkeys.KeyPair) string {
	t.Helper()
	seed, err := key.Seed()
	require.NoError(t, err)
	return writeFile(t, "user.nk", seed)
}

func writeFile(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// authority is an operator whose server trusts what an account signs.
type authority struct {
	operator, account nkeys.KeyPair
	resolver          *server.MemAccResolver
	claims            *jwt.OperatorClaims
	system            string
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{resolver: &server.MemAccResolver{}}
	var err error
	a.operator, err = nkeys.CreateOperator()
	require.NoError(t, err)
	a.claims = jwt.NewOperatorClaims(publicKey(t, a.operator))
	system, err := nkeys.CreateAccount()
	require.NoError(t, err)
	a.system = publicKey(t, system)
	a.admit(t, jwt.NewAccountClaims(a.system))
	a.account, err = nkeys.CreateAccount()
	require.NoError(t, err)
	claims := jwt.NewAccountClaims(publicKey(t, a.account))
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	a.admit(t, claims)
	return a
}

func (a *authority) admit(t testing.TB, claims *jwt.AccountClaims) {
	t.Helper()
	text, err := claims.Encode(a.operator)
	require.NoError(t, err)
	require.NoError(t, a.resolver.Store(claims.Subject, text))
}

// credentials are a file for a user of the account.
func (a *authority) credentials(t testing.TB) string {
	t.Helper()
	key, err := nkeys.CreateUser()
	require.NoError(t, err)
	text, err := jwt.NewUserClaims(publicKey(t, key)).Encode(a.account)
	require.NoError(t, err)
	seed, err := key.Seed()
	require.NoError(t, err)
	content, err := jwt.FormatUserConfig(text, seed)
	require.NoError(t, err)
	return writeFile(t, "user.creds", content)
}

func publicKey(t testing.TB, key nkeys.KeyPair) string {
	t.Helper()
	public, err := key.PublicKey()
	require.NoError(t, err)
	return public
}

func TestLogin_ByCredentials(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := startServer(t, func(o *server.Options) {
		o.Username, o.Password = "", ""
		o.TrustedOperators, o.AccountResolver, o.SystemAccount = []*jwt.OperatorClaims{a.claims}, a.resolver, a.system
	})
	sinktest.Delivered(t, declaring(t, s, func(c *nats.Config) { c.Credentials = a.credentials(t) }), sinktest.Deliveries(1, 1))
	strange := newAuthority(t).credentials(t)
	requireRefused(t, declaring(t, s, func(c *nats.Config) { c.Credentials = strange }), correctLogin)
	requireRefused(t, declaring(t, s, func(c *nats.Config) { c.Credentials = "/nowhere" }), "/nowhere")
}

// The server answers a forbidden publishing with an error of the connection, and
// says nothing to its reply subject.
func TestLogin_AMissingRightIsNamed(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(o *server.Options) {
		o.Username, o.Password = "", ""
		o.Users = []*server.User{{Username: user, Password: password, Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: []string{"bookings.made"}}}}}
	})
	login := func(c *nats.Config) { c.User, c.Password = user, password }
	sink := declaring(t, s, login)
	ds := sinktest.Deliveries(1, 2)
	ds[0].Type = "paid"
	n, err := sinktest.Deliver(t, sink, ds)
	require.Equal(t, 1, n)
	require.ErrorContains(t, err, `Permissions Violation for Publish to "bookings.made"`)
	require.ErrorContains(t, err, "let the user publish to subject, fence and $JS.API.>")
	require.False(t, processor.IsPermanent(err))
	require.False(t, outcome.IsUnknown(err))
}

func TestTLS_OwnAuthorityAndClientCertificate(t *testing.T) {
	t.Parallel()
	certificates := brokertest.NewCertificates(t)
	authorities := x509.NewCertPool()
	require.True(t, authorities.AppendCertsFromPEM(certificates.CA))
	pair, err := tls.X509KeyPair(certificates.ServerCert, certificates.ServerKey)
	require.NoError(t, err)
	s := startServer(t, func(o *server.Options) {
		o.TLS, o.TLSVerify, o.TLSTimeout = true, true, 10
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: authorities, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	})
	own, err := tls.X509KeyPair(certificates.ClientCert, certificates.ClientKey)
	require.NoError(t, err)
	with := func(c *tls.Config) func(*nats.Config) {
		return func(config *nats.Config) { config.User, config.Password, config.TLS = user, password, c }
	}
	sinktest.Delivered(t, declaring(t, s, with(&tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{own}})), sinktest.Deliveries(1, 1))
	requireRefused(t, declaring(t, s, with(&tls.Config{Certificates: []tls.Certificate{own}})), "give the authority of the server's certificate as tls.ca")
	requireRefused(t, declaring(t, s, with(&tls.Config{RootCAs: authorities})), "")
	requireRefused(t, declaring(t, s, with(nil)), "")

	plain := startServer(t, nil)
	requireRefused(t, declaring(t, plain, with(&tls.Config{RootCAs: authorities})), "the server does not offer TLS")
}

func TestCheck_TellsWhatWeakensAPromise(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	findings, err := b.sink(t, nil).Check(t.Context(), "sms")
	require.NoError(t, err)
	require.Len(t, findings, 2)
	require.Contains(t, findings[0].Problem, "remembers a message's id for 2m0s")
	require.Contains(t, findings[1].Problem, "sync_interval")
	require.Contains(t, findings[1].Fix, "sync_interval: always")
	require.False(t, findings[0].Weakens || findings[1].Weakens)
	for weakens, setting := range map[string]func(*jetstream.StreamConfig){
		"persist_mode async": func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
		"keeps at most 3 of the messages of one subject and discards the older ones": func(c *jetstream.StreamConfig) { c.Discard, c.MaxMsgsPerSubject = jetstream.DiscardNew, 3 },
	} {
		findings, err = newBench(t, setting).sink(t, nil).Check(t.Context(), "sms")
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(findings, func(f nats.Finding) bool { return f.Weakens && strings.Contains(f.Problem, weakens) }), "%v", findings)
	}
	_, err = b.sink(t, nil).Check(t.Context(), "mail")
	require.ErrorContains(t, err, `does not take the fence's subject "ordered-fence.mail"`)
	require.Empty(t, b.read(t))
	moving := newBench(t, func(c *jetstream.StreamConfig) {
		c.SubjectTransform = &jetstream.SubjectTransformConfig{Destination: "x.>"}
	})
	_, err = moving.sink(t, nil).Check(t.Context(), "sms")
	require.ErrorContains(t, err, `moves the fence's subject "ordered-fence.sms"`)
}

func TestDeliverBatch_SaysWhereNobodyListens(t *testing.T) {
	t.Parallel()
	ports := make([]int, 2)
	for i := range ports {
		var err error
		ports[i], err = throwaway.FreePort()
		require.NoError(t, err)
	}
	s, err := nats.New(nats.Config{
		URL:    fmt.Sprintf("nats://u:CANARY@127.0.0.1:%d,nats://127.0.0.1:%d", ports[0], ports[1]),
		Stream: "ORDERS", Subject: "orders",
	})
	require.NoError(t, err)
	_, err = s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "nothing was sent")
	for _, port := range ports {
		require.ErrorContains(t, err, fmt.Sprintf("dial tcp 127.0.0.1:%d: connect: connection refused", port))
	}
	require.ErrorContains(t, err, "; start the server there, or correct host and port in url")
	require.NotContains(t, err.Error(), "CANARY")
}
