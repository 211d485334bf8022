package daemon_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestRun_WarnsOfWhatTheSinkGivesAway(t *testing.T) {
	t.Parallel()
	const clear, stranger, listed = "could be read on the way", "take its place and the password", "sees arguments in its list of processes"
	for sink, warning := range map[string]string{
		"webhook: {url: 'http://hook.example/', headers: {X-Password: t}}":                                        clear,
		"webhook: {url: 'http://hook.example/', headers: {X-Trace: t}}":                                           "",
		"webhook: {url: 'http://hook.example/?t=${TOKEN}'}":                                                       clear,
		"webhook: {url: 'http://hook.example/${TOKEN}/x'}":                                                        clear,
		"webhook: {url: 'http://hook.example/', probe: 'GET /{{.DedupKey}}?t=${TOKEN}'}":                          clear,
		"webhook: {url: 'http://${HOOK}/x'}":                                                                      "",
		"webhook: {url: '${HOOK_URL}'}":                                                                           "",
		"webhook: {url: 'https://hook.example/?t=${TOKEN}'}":                                                      "",
		"webhook: {url: 'http://127.0.0.1/?t=${TOKEN}'}":                                                          "",
		"sql: {url: 'postgres://u:${TOKEN}@db.example/d', statement: SELECT 1}":                                   clear,
		"sql: {url: 'postgres://u:${TOKEN}@db.example/d?sslmode=disable', statement: SELECT 1}":                   clear,
		"sql: {url: 'postgres://u:${TOKEN}@db.example/d?sslmode=require', statement: SELECT 1}":                   stranger,
		"sql: {url: 'postgres://u:${TOKEN}@db.example/d?sslmode=verify-full', statement: SELECT 1}":               "",
		"sql: {url: 'postgres://u:${TOKEN}@localhost/d', statement: SELECT 1}":                                    "",
		"exec: {command: [/bin/cat, '--token=${TOKEN}']}":                                                         listed,
		"exec: {command: [/bin/cat], env: {TOKEN: '${TOKEN}'}}":                                                   "",
		"kafka: {brokers: ['k.example:9092'], topic: t, sasl: {mechanism: PLAIN, user: u, password: '${TOKEN}'}}": clear,
	} {
		env := environment(map[string]string{"TOKEN": "s3cret-s3cret", "HOOK": "hook.example", "HOOK_URL": "http://hook.example/x"})
		config, err := daemon.Parse("f.yaml", []byte("processes:\n  a: {source: {table: t}, start: end, sink: {"+sink+"}}"), env, kinds)
		require.NoError(t, err, sink)
		config.Database = "postgres://u@localhost/d"
		warnings := daemon.Warnings(t, config)
		if warning == "" {
			require.Empty(t, warnings, sink)
			continue
		}
		require.Len(t, warnings, 1, sink)
		require.Contains(t, warnings[0], warning, sink)
		require.NotContains(t, warnings[0], "s3cret", sink)
	}
}

// Who can write the configuration chooses the commands that the daemon runs.
func TestRun_WarnsOfFilesThatOthersCanReadOrWrite(t *testing.T) {
	t.Parallel()
	database(t)
	path := filepath.Join(t.TempDir(), "od.yaml")
	config := "schema: " + schema + "\nprocesses:\n  a: {source: {table: public.bookings}, start: beginning, sink: {webhook: {url: 'http://127.0.0.1:1', bearer: %s}}}\n"
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, config, "literal-secret"), 0o600))
	for mode, want := range map[os.FileMode]string{
		0o600: "",
		0o604: "holds secrets, and others than its owner can read it (mode 0604)",
		0o602: "others than its owner can write the file",
		0o620: "others than its owner can write the file",
	} {
		require.NoError(t, os.Chmod(path, mode))
		loaded, err := daemon.Load(path, nil, environment(nil), kinds)
		require.NoError(t, err)
		loaded.Database = pgtest.URL(t)
		var log bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		require.NoError(t, daemon.Run(ctx, daemon.RunConfig{
			Config: loaded, Drain: true, Grace: time.Second, Stdout: io.Discard, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}))
		cancel()
		require.Contains(t, log.String(), want)
		require.Equal(t, want != "", strings.Contains(log.String(), path), log.String())
		require.NotContains(t, log.String(), "literal-secret")
	}
}
