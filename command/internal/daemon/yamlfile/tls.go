package yamlfile

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
)

// tls reads whom a sink trusts and what it shows of itself: files in PEM, by
// their paths. The authorities are read once; the certificate and its key at every
// handshake, so that renewed ones need no restart.
func (n Node) tls() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	m := n.Mapping("ca", "cert", "key", "server_name")
	m.Read("ca", func(n Node) { c.RootCAs = parseAuthorities(n) })
	m.Read("server_name", func(n Node) { c.ServerName = n.Text() })
	cert, hasCert := m.Get("cert")
	key, hasKey := m.Get("key")
	switch {
	case hasCert != hasKey:
		n.Fault("a client certificate is two files: give both cert and key")
	case hasCert:
		c.GetClientCertificate = parseCertificate(cert, key)
	}
	return c
}

// parseAuthorities returns those of a file, and nothing of the system's.
func parseAuthorities(n Node) *x509.CertPool {
	path := n.TrustedFile()
	pem, err := bounded.Read(path)
	if err != nil {
		n.Fault("%v", fileFault(path, err))
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		n.Fault("%s holds no certificate in PEM (-----BEGIN CERTIFICATE-----)", path)
	}
	return pool
}

// parseCertificate loads the two files once, to find what is wrong with them.
func parseCertificate(cert, key Node) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	certFile, keyFile := cert.TrustedFile(), key.SecretFile()
	load := func() (*tls.Certificate, error) {
		certPEM, err := bounded.File(certFile)
		if err != nil {
			return nil, err
		}
		keyPEM, err := bounded.File(keyFile)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		return &pair, err
	}
	if _, err := load(); err != nil {
		cert.Fault("%v", err)
	}
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
}

// fileFault names a file unless its error does.
func fileFault(path string, err error) error {
	if strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w: name the right file", path, err)
}
