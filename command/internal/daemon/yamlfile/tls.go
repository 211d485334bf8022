package yamlfile

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
)

// TLS has the certificates that a sink trusts and the one that it presents: files in PEM, by their paths.
type TLS struct {
	// CA is a file of authorities to trust. Those of the system are not trusted then.
	CA string `knob:"ca" file:"trusted"`
	// Cert is the certificate that the sink presents, with the chain to its authority. It is read at every handshake.
	Cert string `knob:"cert" file:"trusted"`
	// Key is the private key of the certificate, read at every handshake.
	Key string `knob:"key" file:"secret"`
	// ServerName is the name that the server's certificate must have. Default: the host that is dialled.
	ServerName string `knob:"server_name"`
}

// tls reads a TLS. It reads the authorities once, and the certificate and its key at every handshake, so that renewed
// ones need no restart.
func (n Node) tls() *tls.Config {
	var files TLS
	keys := n.Decode(&files, nil)
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: files.ServerName}
	keys.Read("ca", func(n Node) { c.RootCAs = parseAuthorities(n, files.CA) })
	cert, hasCert := keys.Get("cert")
	_, hasKey := keys.Get("key")
	switch {
	case hasCert != hasKey:
		n.Fault("a client certificate is two files: give both cert and key")
	case hasCert:
		c.GetClientCertificate = parseCertificate(cert, files)
	}
	return c
}

// parseAuthorities returns the authorities of a file, without those of the system.
func parseAuthorities(n Node, path string) *x509.CertPool {
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

// parseCertificate loads the two files once, to report their faults.
func parseCertificate(cert Node, files TLS) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	load := func() (*tls.Certificate, error) {
		certPEM, err := bounded.File(files.Cert)
		if err != nil {
			return nil, err
		}
		keyPEM, err := bounded.File(files.Key)
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
