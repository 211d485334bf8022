package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
)

// secured is a process with a sink that has the given TLS settings.
func secured(tls string) string {
	return "processes:\n  a:\n    source: {table: t}\n    sink:\n      rabbitmq:\n        url: amqps://h/\n" +
		"        exchange: e\n        tls: " + tls + "\n"
}

func TestParse_FaultsOfTLSNameTheFile(t *testing.T) {
	t.Parallel()
	ca, cert, key := brokertest.NewCertificates(t).Write(t)
	missing := filepath.Join(t.TempDir(), "missing.pem")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, c := range []struct{ tls, want string }{
		{fmt.Sprintf("{ca: %s}", missing), "8:15: processes.a.sink.rabbitmq.tls.ca: stat " + missing},
		{fmt.Sprintf("{ca: %s}", empty), "8:15: processes.a.sink.rabbitmq.tls.ca: " + empty + " holds no certificate in PEM"},
		{fmt.Sprintf("{cert: %s}", cert), "8:9: processes.a.sink.rabbitmq.tls: a client certificate is two files: give both cert and key"},
		{fmt.Sprintf("{cert: %s, key: %s}", cert, missing), "8:15: processes.a.sink.rabbitmq.tls.cert: open " + missing},
		{fmt.Sprintf("{cert: %s, key: %s}", cert, ca), "8:15: processes.a.sink.rabbitmq.tls.cert: tls: "},
	} {
		_, err := parse(secured(c.tls))
		require.ErrorContains(t, err, "dispatcher.yaml:"+c.want)
		require.NotContains(t, err.Error(), "PRIVATE KEY")
	}
	_, err := parse(secured(fmt.Sprintf("{ca: %s, cert: %s, key: %s}", ca, cert, key)))
	require.NoError(t, err)
}

func TestParse_ARenewedCertificateIsShownAtTheNextHandshake(t *testing.T) {
	t.Parallel()
	ca, cert, key := brokertest.NewCertificates(t).Write(t)
	config, err := parse(secured(fmt.Sprintf("{ca: %s, cert: %s, key: %s}", ca, cert, key)))
	require.NoError(t, err)
	show := config.Processes[0].Sink.Config.(*rabbitmq.Config).TLS.GetClientCertificate
	first, err := show(nil)
	require.NoError(t, err)
	_, newCert, newKey := brokertest.NewCertificates(t).Write(t)
	require.NoError(t, os.Rename(newCert, cert))
	require.NoError(t, os.Rename(newKey, key))
	second, err := show(nil)
	require.NoError(t, err)
	require.NotEqual(t, first.Certificate, second.Certificate)
}
