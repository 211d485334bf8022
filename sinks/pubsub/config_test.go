package pubsub_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/pubsub"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestNew_NamesAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config pubsub.Config
		want   []string
	}{
		"nothing": {pubsub.Config{}, []string{"topic is missing", "project is missing"}},
		"a wrong name": {pubsub.Config{Topic: "topics/orders", Window: 1001, Timeout: time.Nanosecond, OrderingKey: "{{.Nothing}}"},
			[]string{`topic "topics/orders" is neither an id nor projects/PROJECT/topics/TOPIC`, "window must be between 1 and 1000, got 1001", "timeout must be between", "ordering_key: "}},
		"another project": {pubsub.Config{Project: "x", Topic: topic}, []string{`belongs to another project than "x"`}},
		"emulator and more": {pubsub.Config{Topic: topic, Emulator: "localhost:8085", Endpoint: "here"},
			[]string{`endpoint "here" is not host:port`, "emulator is given with endpoint"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := pubsub.New(c.config)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestDeliverBatch_SaysWhatIsWrongWithACredentialsFileAndQuotesNothingOfIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]string{
		"secret-CANARY":             "are not a JSON of Google Cloud with a type",
		`{"private_key": "CANARY"}`: "are not a JSON of Google Cloud with a type",
		`{"type": "CANARY"`:         "are not a JSON of Google Cloud with a type",
		`{"type": "service_account", "private_key": "CANARY"}`: "nothing was sent",
	} {
		path := filepath.Join(dir, fmt.Sprint(len(text)))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		s, err := pubsub.New(pubsub.Config{Topic: topic, Credentials: path, Endpoint: "127.0.0.1:1"})
		require.NoError(t, err)
		_, err = sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "CANARY")
		require.Equal(t, "unreached", sinktest.Class(err))
	}
	s, err := pubsub.New(pubsub.Config{Topic: topic, Credentials: filepath.Join(dir, "absent")})
	require.NoError(t, err)
	_, err = sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "read credentials: open ")
}

// A service account's key in a file, and an endpoint with a certificate of one's own.
func TestDeliverBatch_AuthenticatesByFileOverTLS(t *testing.T) {
	t.Parallel()
	certificate, roots := selfSigned(t)
	account, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	presented := make(chan string, 10)
	b := newBench(t, grpc.Creds(credentials.NewServerTLSFromCert(&certificate)),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			incoming, _ := metadata.FromIncomingContext(ctx)
			presented <- strings.Join(incoming.Get("authorization"), " ")
			return handle(ctx, request)
		}))
	s := b.sink(t, func(c *pubsub.Config) {
		c.Emulator, c.Endpoint = "", b.link.Addr()
		c.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		c.Credentials = keyFile(t, account)
	})
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	require.Equal(t, "1", b.landed())
	requireSigned(t, <-presented, &account.PublicKey)
}

func TestDeliverBatch_RefusesACertificateItDoesNotKnow(t *testing.T) {
	t.Parallel()
	certificate, _ := selfSigned(t)
	account, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	b := newBench(t, grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))
	s := b.sink(t, func(c *pubsub.Config) {
		c.Emulator, c.Endpoint, c.Credentials = "", b.link.Addr(), keyFile(t, account)
	})
	_, err = sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "certificate signed by unknown authority")
	require.Equal(t, "unreached", sinktest.Class(err))
}

func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

func keyFile(t *testing.T, key *rsa.PrivateKey) (path string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": project, "client_email": "dispatcher@p.iam.gserviceaccount.com", "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "key.json")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// requireSigned checks the signature of a JWT that says who publishes.
func requireSigned(t *testing.T, authorization string, key *rsa.PublicKey) {
	t.Helper()
	token, bearer := strings.CutPrefix(authorization, "Bearer ")
	require.True(t, bearer, authorization)
	parts := strings.Split(token, ".")
	require.Len(t, parts, 3)
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	require.Contains(t, string(claims), "dispatcher@p.iam.gserviceaccount.com")
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	require.NoError(t, err)
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	require.NoError(t, rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature))
}
