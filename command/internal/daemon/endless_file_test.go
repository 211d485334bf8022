package daemon_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// processWith is a configuration of one process with a sink.
func processWith(sink string) string {
	return "processes:\n  a:\n    source: {table: t}\n    sink: " + sink + "\n"
}

// What a configuration names is read by check and at a start: neither takes all memory,
// nor waits for a pipe that is never written to.
func TestParse_FilesOfSinksHaveAnEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, 1<<40))
	for _, c := range []struct{ sink, want string }{
		{"{webhook: {url: 'https://x/', tls: {ca: /dev/zero}}}", "tls.ca: /dev/zero: it is neither a file nor a pipe: name the right file"},
		{"{webhook: {url: 'https://x/', tls: {ca: " + large + "}}}", "tls.ca: " + large + ": it is too large"},
		{"{webhook: {url: 'https://x/', tls: {cert: " + pipe + ", key: " + pipe + "}}}", "tls.cert: " + pipe + ": it is no regular file"},
		{"{rabbitmq: {url: 'amqps://x/', exchange: e, tls: {cert: " + large + ", key: " + large + "}}}", "tls.cert: " + large + ": it is too large"},
		{"{sql: {url: 'postgres://a@h/x?sslmode=verify-full&sslrootcert=/dev/zero', statement: SELECT 1}}", "the file that sslrootcert of the connection string names"},
		{"{sql: {url: 'host=h user=a sslmode=verify-full sslcert=" + pipe + " sslkey=" + pipe + "', statement: SELECT 1}}", "the connection string names cannot be read (it is no regular file)"},
	} {
		ended := make(chan error, 1)
		go func() {
			_, err := parse(processWith(c.sink))
			ended <- err
		}()
		select {
		case err := <-ended:
			require.ErrorContains(t, err, c.want)
		case <-time.After(20 * time.Second):
			require.Fail(t, "waits", c.sink)
		}
	}
	_, err := parse("database: 'postgres://a@h/x?sslrootcert=/dev/zero'\n" + processWith("{stdout: {}}"))
	require.ErrorContains(t, err, "the file that sslrootcert of the connection string names")
}
