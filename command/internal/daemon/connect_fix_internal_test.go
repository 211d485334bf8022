package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
)

// tlsServer answers as PostgreSQL does, up to the end of the handshake.
func tlsServer(t *testing.T, c *tls.Config) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.ReadFull(conn, make([]byte, 8)) // SSLRequest
				_, _ = conn.Write([]byte("S"))
				_ = tls.Server(conn, c).Handshake()
				_, _ = io.Copy(io.Discard, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

func TestConnectFix_OfACertificateNamesTheSetting(t *testing.T) {
	t.Parallel()
	made := brokertest.NewCertificates(t)
	certificate, err := tls.X509KeyPair(made.ServerCert, made.ServerKey)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(made.CA)
	address := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots})
	config, err := pgx.ParseConfig("postgres://a@" + address + "/x?sslmode=verify-full&connect_timeout=10")
	require.NoError(t, err)
	for want, with := range map[string]*tls.Config{
		"sslrootcert": {ServerName: "127.0.0.1", RootCAs: x509.NewCertPool()},
		"be a name that the server's certificate has": {ServerName: "elsewhere.example", RootCAs: roots},
		"sslcert and sslkey":                          {ServerName: "127.0.0.1", RootCAs: roots},
	} {
		c := config.Copy()
		c.TLSConfig = with
		_, err := pgx.ConnectConfig(t.Context(), c)
		require.Contains(t, connectFix(err), want, err)
	}
	require.Equal(t, "replace the server's certificate", connectFix(fmt.Errorf("x: %w", x509.CertificateInvalidError{Reason: x509.Expired})))
}
