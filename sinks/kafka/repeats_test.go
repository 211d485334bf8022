package kafka_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret/secrettest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestGuard_ABrokerThatRepeatsTheLoginDisclosesNothing(t *testing.T) {
	t.Parallel()
	cluster := clusterOf(t, kfake.SeedTopics(1, "t"), kfake.EnableSASL())
	cluster.ControlKey(kmsg.SASLAuthenticate.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		request := kreq.(*kmsg.SASLAuthenticateRequest)
		response := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		response.ErrorCode = kerr.SaslAuthenticationFailed.Code
		words := secrettest.Words + secrettest.Forms(secrettest.Canary) + string(request.SASLAuthBytes) + secrettest.Forms(string(request.SASLAuthBytes)) + "\n"
		response.ErrorMessage = &words
		return response, nil, true
	})
	for _, hide := range []bool{false, true} {
		s := sinkOf(t, cluster, func(c *kafka.Config) {
			c.HideAnswers, c.SASL = hide, kafka.SASL{Mechanism: "PLAIN", User: "u", Password: secrettest.Canary}
		})
		_, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
		require.ErrorContains(t, err, "SASL_AUTHENTICATION_FAILED")
		secrettest.RequireMasked(t, err, hide)
	}
}

// A broker may have seen the record over an earlier connection.
func TestGuard_NoWordOfARecordIsQuoted(t *testing.T) {
	t.Parallel()
	cluster := clusterOf(t, kfake.SeedTopics(1, "t"), kfake.EnableSASL())
	cluster.ControlKey(kmsg.SASLAuthenticate.Int16(), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		response := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		response.ErrorCode = kerr.SaslAuthenticationFailed.Code
		words := "cannot store " + sinktest.Repeated
		response.ErrorMessage = &words
		return response, nil, true
	})
	s := sinkOf(t, cluster, func(c *kafka.Config) { c.SASL = kafka.SASL{Mechanism: "PLAIN", User: "u", Password: secrettest.Canary} })
	_, err := sinktest.Deliver(t, s, sinktest.Private())
	sinktest.RequirePrivate(t, err, "SASL_AUTHENTICATION_FAILED", ": cannot store")
}

// The client quotes what it does not like in the messages of a login.
func TestGuard_ALoginThatFailsAtTheClientQuotesNoHiddenAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ first, final string }{
		"nonce":      {first: "WORDS=x,s=eA==,i=4096"},
		"salt":       {first: "r=NONCE,s=WORDS!!,i=4096"},
		"iterations": {first: "r=NONCE,s=eA==,i=WORDS"},
		"final":      {first: "r=NONCE,s=eA==,i=4096", final: "e=WORDS-other-users-exist"},
	} {
		for _, hide := range []bool{false, true} {
			cluster := clusterOf(t, kfake.SeedTopics(1, "t"), kfake.EnableSASL())
			cluster.ControlKey(kmsg.SASLAuthenticate.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				response := kreq.ResponseKind().(*kmsg.SASLAuthenticateResponse)
				said := kreq.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes
				if _, nonce, first := bytes.Cut(said, []byte("n=u,r=")); first {
					response.SASLAuthBytes = []byte(strings.ReplaceAll(c.first, "NONCE", string(nonce)+"x"))
				} else {
					response.SASLAuthBytes = []byte(c.final)
				}
				return response, nil, true
			})
			s := sinkOf(t, cluster, func(c *kafka.Config) {
				c.HideAnswers, c.SASL = hide, kafka.SASL{Mechanism: "SCRAM-SHA-256", User: "u", Password: secrettest.Canary}
			})
			_, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
			require.ErrorContains(t, err, "nothing was sent: the login by SCRAM failed", name)
			require.Equal(t, !hide, strings.Contains(err.Error(), "WORDS"), "%s: %v", name, err)
			require.True(t, processor.IsUnreached(err), "%s: %v", name, err)
		}
	}
}

// Whoever answers at the address shows a certificate, and its names are in the client's error.
func TestGuard_NamesOfACertificateAreNoPartOfAHiddenAnswer(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"words.example"}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	address := tcptest.Serve(t, func(conn net.Conn) {
		_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}).Handshake()
	})
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	for _, hide := range []bool{false, true} {
		s := sinktest.Made(t, kafka.New, kafka.Config{Brokers: []string{address}, Topic: "t", HideAnswers: hide, TLS: &tls.Config{RootCAs: roots, ServerName: "ours.example"}})
		_, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
		require.ErrorContains(t, err, "nothing was sent")
		require.ErrorContains(t, err, "ours.example")
		require.Equal(t, !hide, strings.Contains(err.Error(), "words.example"), err)
	}
}

// The cluster says where its brokers are, and that is in the errors of connections.
func TestGuard_AnAddressThatTheClusterNamesIsNoPartOfAHiddenAnswer(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	cluster.ControlKey(kmsg.Metadata.Int16(), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		response := request.ResponseKind().(*kmsg.MetadataResponse)
		named := kmsg.NewMetadataResponseBroker()
		named.Host, named.Port = "words.example", 9092
		response.Brokers = append(response.Brokers, named)
		return response, nil, true
	})
	for _, hide := range []bool{false, true} {
		s := sinkOf(t, cluster, func(c *kafka.Config) { c.HideAnswers, c.Timeout = hide, 4*time.Second })
		s.Dial(func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "words.example:") {
				return nil, &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: new(x509.Certificate), Host: "words.example"}}
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		})
		_, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
		require.ErrorContains(t, err, "nothing was sent: unable to initialize a producer ID due to request failures: unable to dial: ")
		require.Equal(t, !hide, strings.Contains(err.Error(), "words.example"), err)
		require.True(t, processor.IsUnreached(err), err)
	}
	closed := sinktest.Made(t, kafka.New, kafka.Config{Brokers: []string{"127.0.0.1:1"}, Topic: "t", HideAnswers: true})
	_, err := sinktest.Deliver(t, closed, sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "connection refused", "it is one of brokers")
}
