package rabbitmq_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// mutual makes a broker ask its clients for a certificate, on a port of TLS.
func mutual(c *brokertest.Certificates, port int) func(*throwaway.Dir) (string, error) {
	return func(dir *throwaway.Dir) (string, error) {
		return fmt.Sprintf(`
listeners.ssl.1 = 127.0.0.1:%d
ssl_options.cacertfile = %s
ssl_options.certfile = %s
ssl_options.keyfile = %s
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = true
`, port, dir.Path("ca.pem"), dir.Path("cert.pem"), dir.Path("key.pem")), errors.Join(
				dir.WriteFile("ca.pem", c.CA), dir.WriteFile("cert.pem", c.ServerCert), dir.WriteFile("key.pem", c.ServerKey))
	}
}

func TestDeliverBatch_OverMutualTLS(t *testing.T) {
	t.Parallel()
	certificates := brokertest.NewCertificates(t)
	port, err := throwaway.FreePort()
	require.NoError(t, err)
	brokertest.NewRabbitMQ(t, broker.RabbitMQConfig{Settings: mutual(certificates, port)})
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certificates.CA))
	pair, err := tls.X509KeyPair(certificates.ClientCert, certificates.ClientKey)
	require.NoError(t, err)
	deliver := func(c *tls.Config) error {
		url := fmt.Sprintf("amqps://%s:%s@localhost:%d/", broker.RabbitMQUser, broker.RabbitMQPassword, port)
		s := sinktest.Made(t, rabbitmq.New, rabbitmq.Config{URL: url, Exchange: "amq.fanout", TLS: c})
		_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
		return err
	}
	err = deliver(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}})
	require.ErrorContains(t, err, "NO_ROUTE", "it came to the exchange, which has no queue")

	var unknown x509.UnknownAuthorityError
	err = deliver(nil)
	require.ErrorAs(t, err, &unknown, "the system vouches for no such broker")
	require.False(t, processor.IsPermanent(err))
	err = deliver(&tls.Config{RootCAs: roots})
	require.Error(t, err, "the broker wants a certificate; over TLS 1.3 it may say so, or only hang up")
	require.NotContains(t, err.Error(), "NO_ROUTE")
	require.False(t, processor.IsPermanent(err))
}
