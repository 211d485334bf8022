package secret_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

// key is a private key in PEM.
func key(t testing.TB) string {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes}))
}

// What a child says is masked one line at a time, and a receiver may quote one line.
func TestReplace_FindsEachLineOfASecret(t *testing.T) {
	t.Parallel()
	private := key(t)
	account, err := json.MarshalIndent(map[string]string{"type": "service_account", "private_key": private}, "", "  ")
	require.NoError(t, err)
	for name, value := range map[string]string{"PEM": private, "line breaks of Windows": strings.ReplaceAll(private, "\n", "\r\n"), "JSON": string(account)} {
		s := secret.New(value)
		for line := range strings.Lines(private) {
			line = strings.TrimSpace(line)
			if len(line) < 8 || strings.HasPrefix(line, "-----") {
				continue
			}
			for form, of := range forms {
				require.Equal(t, "it said "+secret.Mask+".", s.Replace("it said "+of(line)+"."), "%s, %s", name, form)
			}
		}
		require.Equal(t, "it said "+secret.Mask+".", s.Replace("it said "+value+"."), name)
		require.Equal(t, "-----END PRIVATE KEY-----", s.Replace("-----END PRIVATE KEY-----"), "all keys have it")
	}
}

// A secret of many lines, as a bundle of keys is, leaves the rest readable.
func TestReplace_ASecretOfManyLinesHidesNothingElse(t *testing.T) {
	t.Parallel()
	var bundle strings.Builder
	for range 1000 {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		require.NoError(t, err)
		bytes, err := x509.MarshalPKCS8PrivateKey(private)
		require.NoError(t, err)
		require.NoError(t, pem.Encode(&bundle, &pem.Block{Type: "PRIVATE KEY", Bytes: bytes}))
	}
	s := secret.New(bundle.String())
	text := strings.Repeat("a line of a log, with \"quotes\" and %41 100% & more.\n", 100)
	require.Equal(t, text, s.Replace(text))
}
