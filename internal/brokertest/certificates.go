package brokertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Certificates are a test's own authority, and the certificates that it signed, in PEM.
type Certificates struct {
	CA                    []byte
	ServerCert, ServerKey []byte // for localhost and 127.0.0.1
	ClientCert, ClientKey []byte
}

// NewCertificates makes certificates that are valid for an hour.
func NewCertificates(t testing.TB) *Certificates {
	t.Helper()
	key := newKey(t)
	authority := template("an authority of tests")
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	c := &Certificates{}
	c.CA = certify(t, authority, authority, key, key)
	serverKey, clientKey := newKey(t), newKey(t)
	server := template("localhost")
	server.DNSNames, server.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	c.ServerCert, c.ServerKey = certify(t, server, authority, serverKey, key), keyPEM(t, serverKey)
	c.ClientCert, c.ClientKey = certify(t, template("dispatcher"), authority, clientKey, key), keyPEM(t, clientKey)
	return c
}

// Write writes the files that a client needs, and returns their paths: the authority, and the client's certificate
// and key.
func (c *Certificates) Write(t testing.TB) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string][]byte{"ca.pem": c.CA, "cert.pem": c.ClientCert, "key.pem": c.ClientKey} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62)) // never fails
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

func certify(t testing.TB, subject, issuer *x509.Certificate, key, issuerKey *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, subject, issuer, &key.PublicKey, issuerKey)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(t testing.TB, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
