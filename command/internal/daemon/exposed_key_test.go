package daemon_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
)

// configured is what check and run say of the files of one process with a sink.
func configured(t testing.TB, sink string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "od.yaml")
	require.NoError(t, os.WriteFile(path, []byte(processWith(sink)), 0o600))
	return exposed(t, path)
}

func TestExposedFiles_NamesAPrivateKeyThatOthersCanReadOrWrite(t *testing.T) {
	t.Parallel()
	ca, cert, key := brokertest.NewCertificates(t).Write(t)
	const sql = "{sql: {url: 'postgres://a@h/x?sslmode=verify-full&"
	for _, sink := range []string{
		"{webhook: {url: 'https://x/', tls: {cert: " + cert + ", key: " + key + "}}}",
		"{kafka: {brokers: ['h:1'], topic: t, tls: {cert: " + cert + ", key: " + key + "}}}",
		"{nats: {url: 'tls://h:1', stream: S, subject: s, nkey: " + key + "}}",
		"{nats: {url: 'tls://h:1', stream: S, subject: s, credentials: " + key + "}}",
		"{pubsub: {project: p, topic: topic, credentials: " + key + "}}",
		sql + "sslcert=" + cert + "&sslkey=" + key + "', statement: SELECT 1}}",
		sql + "passfile=" + key + "', statement: SELECT 1}}",
	} {
		require.Empty(t, configured(t, sink))
		require.NoError(t, os.Chmod(key, 0o604))
		require.Contains(t, configured(t, sink), "the file "+key+" holds secrets, and others than its owner can read it (mode 0604)")
		require.NoError(t, os.Chmod(key, 0o602))
		require.Contains(t, configured(t, sink), "others than its owner can write the file "+key+" (mode 0602)")
		require.NoError(t, os.Chmod(key, 0o600))
	}
	for _, sink := range []string{
		"{webhook: {url: 'https://x/', tls: {ca: " + ca + "}}}",
		sql + "sslrootcert=" + ca + "', statement: SELECT 1}}",
	} {
		require.NoError(t, os.Chmod(ca, 0o644))
		require.Empty(t, configured(t, sink), "an authority is no secret")
		require.NoError(t, os.Chmod(ca, 0o664))
		require.Contains(t, configured(t, sink), "others than its owner can write the file "+ca)
	}
}

func TestExposedFiles_NamesAProgramThatOthersCanWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, script := filepath.Join(dir, "program"), filepath.Join(dir, "script")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\ncat\n"), 0o700))
	require.NoError(t, os.WriteFile(script, []byte("cat"), 0o700))
	for path, sinks := range map[string][]string{
		program: {"{exec: {command: [" + program + ", x]}}", "{exec: {dir: " + dir + ", command: [./program]}}"},
		script:  {"{exec: {command: [sh, -e, " + script + "]}}", "{exec: {dir: " + dir + ", command: [sh, script, /dev/null]}}"},
	} {
		for _, sink := range sinks {
			require.NoError(t, os.Chmod(path, 0o755))
			require.Empty(t, configured(t, sink), sink)
			require.NoError(t, os.Chmod(path, 0o757))
			require.Contains(t, configured(t, sink), "others than its owner can write the file "+path+" (mode 0757)", sink)
		}
	}
	require.NoError(t, os.Chmod(program, 0o755))
	require.NoError(t, os.Chmod(dir, 0o777))
	require.Contains(t, configured(t, "{exec: {command: ["+program+"]}}"), "others can put another file in the place of "+program)
}
