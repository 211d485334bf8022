package daemon_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

func TestRun_WarnsOfCredentialsInTheClear(t *testing.T) {
	const local, far = "postgres://u:p@localhost/d", "postgres://u:p@db.example/d"
	for _, c := range []struct {
		database, sink string
		problems       []string
	}{
		{local, "stdout: {}", nil},
		{"host=/run/postgresql user=u", "stdout: {}", nil},
		{far + "?sslmode=verify-full", "stdout: {}", nil},
		{far + "?sslmode=disable", "stdout: {}", nil},
		{far, "stdout: {}", []string{"db.example"}},
		{local, "webhook: {url: 'http://hook.example/', bearer: t}", []string{"hook.example"}},
		{local, "webhook: {url: 'http://u:p@hook.example/'}", []string{"hook.example"}},
		{local, "webhook: {url: 'http://127.0.0.1/', bearer: t}", nil},
		{local, "webhook: {url: 'https://hook.example/', bearer: t}", nil},
		{local, "webhook: {url: 'http://hook.example/'}", nil},
		{local, "rabbitmq: {url: 'amqp://u:p@mq.example/', exchange: e}", []string{"mq.example"}},
		{local, "nats: {url: 'nats://nats.example', user: u, password: p, stream: s, subject: x}", []string{"nats.example"}},
		{local, "kafka: {brokers: ['kafka.example:9092'], topic: t, sasl: {mechanism: PLAIN, user: u, password: p}}", []string{"kafka.example"}},
		{local, "kafka: {brokers: ['kafka.example:9092'], topic: t, sasl: {mechanism: PLAIN, user: u, password: p}, tls: {}}", nil},
	} {
		require.Equal(t, c.problems, exposedHosts(t, configure(t, c.database, "  a: {source: {table: t}, sink: {"+c.sink+"}}")), "%s %s", c.database, c.sink)
	}
}

// exposedHosts are the hosts that a start warns of.
func exposedHosts(t testing.TB, config daemon.Config) (hosts []string) {
	t.Helper()
	for _, problem := range daemon.Warnings(t, config) {
		for word := range strings.FieldsSeq(problem) {
			if strings.HasSuffix(word, ".example") {
				hosts = append(hosts, word)
			}
		}
	}
	return hosts
}

func TestPool_RefusesASettingThatNobodyKnows(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"passwrod", "sslmod", "search_pth"} {
		_, err := daemon.PoolError("postgres://u@localhost/d?" + name + "=CANARY")
		require.ErrorContains(t, err, name)
		require.NotContains(t, err.Error(), "CANARY")
	}
	for _, name := range []string{"application_name", "search_path", "TimeZone"} {
		_, err := daemon.PoolError("postgres://u@localhost/d?" + name + "=x")
		require.NoError(t, err)
	}
}

func TestDoctor_WarnsOfFilesWithSecretsThatOthersCanRead(t *testing.T) {
	t.Parallel()
	database(t)
	dir := t.TempDir()
	secret, config := filepath.Join(dir, "secret"), filepath.Join(dir, "od.yaml")
	write := func(path, text string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chmod(path, mode))
	}
	processes := func(secret string) string {
		return "schema: od\nprocesses:\n  a: {source: {table: public.bookings}, start: beginning, sink: {webhook: {url: 'http://127.0.0.1:1', secret: '" + secret + "'}}}\n"
	}
	const literal = "a-secret-of-thirty-two-bytes-or-more"
	for _, c := range []struct {
		text                       string
		configMode, secretMode     os.FileMode
		configWarned, secretWarned bool
	}{
		{processes(literal), 0o600, 0o600, false, false},
		{processes(literal), 0o644, 0o600, true, false},
		{processes(literal), 0o640, 0o600, true, false},
		{processes("${file:" + secret + "}"), 0o644, 0o600, false, false},
		{processes("${file:" + secret + "}"), 0o644, 0o604, false, true},
	} {
		write(secret, literal, c.secretMode)
		write(config, c.text, c.configMode)
		loaded, err := daemon.Load(config, nil, environment(nil), kinds)
		require.NoError(t, err)
		loaded.Database = pgtest.URL(t)
		said := strings.Join(loaded.Exposed(), "\n")
		require.Equal(t, c.configWarned, strings.Contains(said, config), said)
		require.Equal(t, c.secretWarned, strings.Contains(said, secret), said)
		require.NotContains(t, said, literal)
		warned := slices.ContainsFunc(doctor(t, loaded), func(f daemon.Finding) bool {
			return strings.Contains(f.Problem, "accounts other than its owner can read it")
		})
		require.Equal(t, c.configWarned || c.secretWarned, warned)
	}
}

func TestConnectionStrings_RefuseUnknownSettings(t *testing.T) {
	t.Parallel()
	const url = "postgres://u@localhost:1/d?passwrod=CANARY"
	_, remote := sql.NewRemote(sql.Config{URL: url, Statements: []string{"SELECT 1"}})
	_, migrate := migrations.Status(t.Context(), migrations.Config{ConnString: url})
	_, pool := daemon.PoolError(url)
	for _, err := range []error{remote, migrate, pool} {
		require.ErrorContains(t, err, `"passwrod"`)
		require.NotContains(t, err.Error(), "CANARY")
	}
}

func TestRun_WarnsOfWhatTheSinkGivesAway(t *testing.T) {
	t.Parallel()
	const clear, clearSQL, stranger, listed = "others on the network could read", "could be read on the way", "take its place and the password", "sees arguments in its list of processes"
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
		"sql: {url: 'postgres://u:${TOKEN}@db.example/d', statement: SELECT 1}":                                   clearSQL,
		"sql: {url: 'postgres://u:${TOKEN}@db.example/d?sslmode=disable', statement: SELECT 1}":                   clearSQL,
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
		0o604: "holds secrets, and accounts other than its owner can read it (mode 0604)",
		0o602: "accounts other than its owner can write the file",
		0o620: "accounts other than its owner can write the file",
	} {
		require.NoError(t, os.Chmod(path, mode))
		loaded, err := daemon.Load(path, nil, environment(nil), kinds)
		require.NoError(t, err)
		loaded.Database = pgtest.URL(t)
		var log bytes.Buffer
		require.NoError(t, drainTo(t, daemon.RunConfig{Config: loaded, Logger: slog.New(slog.NewTextHandler(&log, nil))}))
		require.Contains(t, log.String(), want)
		require.Equal(t, want != "", strings.Contains(log.String(), path), log.String())
		require.NotContains(t, log.String(), "literal-secret")
	}
}

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
		require.Contains(t, configured(t, sink), "the file "+key+" holds secrets, and accounts other than its owner can read it (mode 0604)")
		require.NoError(t, os.Chmod(key, 0o602))
		require.Contains(t, configured(t, sink), "accounts other than its owner can write the file "+key+" (mode 0602)")
		require.NoError(t, os.Chmod(key, 0o600))
	}
	for _, sink := range []string{
		"{webhook: {url: 'https://x/', tls: {ca: " + ca + "}}}",
		sql + "sslrootcert=" + ca + "', statement: SELECT 1}}",
	} {
		require.NoError(t, os.Chmod(ca, 0o644))
		require.Empty(t, configured(t, sink), "an authority is no secret")
		require.NoError(t, os.Chmod(ca, 0o664))
		require.Contains(t, configured(t, sink), "accounts other than its owner can write the file "+ca)
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
			require.Contains(t, configured(t, sink), "accounts other than its owner can write the file "+path+" (mode 0757)", sink)
		}
	}
	require.NoError(t, os.Chmod(program, 0o755))
	require.NoError(t, os.Chmod(dir, 0o777))
	require.Contains(t, configured(t, "{exec: {command: ["+program+"]}}"), "other accounts can replace the file "+program)
}

const replaceable = "other accounts can replace the file"

// foreignFiles are a configuration and a file that it refers to, each in a directory of
// its own, and a link to the configuration.
func foreignFiles(t testing.TB) (config, secret, link string) {
	t.Helper()
	dir := t.TempDir()
	config, secret, link = filepath.Join(dir, "a", "od.yaml"), filepath.Join(dir, "b", "secret"), filepath.Join(dir, "c", "link.yaml")
	for _, path := range []string{config, secret, link} {
		require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	}
	text := "schema: od\nprocesses:\n  a: {source: {table: public.bookings}, start: beginning, sink: {webhook: {url: 'http://127.0.0.1:1', secret: '${file:" + secret + "}'}}}\n"
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	require.NoError(t, os.WriteFile(secret, []byte("a-secret-of-thirty-two-bytes-or-more"), 0o600))
	require.NoError(t, os.Symlink(config, link))
	return config, secret, link
}

// exposed is what check and run say of a configuration and its files.
func exposed(t testing.TB, path string) string {
	t.Helper()
	loaded, err := daemon.Load(path, nil, environment(nil), kinds)
	require.NoError(t, err)
	return strings.Join(loaded.Exposed(), "\n")
}

func TestExposedFiles_NamesADirectoryWhereOthersCanReplaceAFile(t *testing.T) {
	t.Parallel()
	config, secret, link := foreignFiles(t)
	require.Empty(t, exposed(t, link))
	for _, path := range []string{config, secret, link} {
		dir := filepath.Dir(path)
		require.NoError(t, os.Chmod(dir, 0o777))
		require.Contains(t, exposed(t, link), "they can write the directory "+dir+" (mode 0777)")
		require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
		require.Empty(t, exposed(t, link))
	}
	database(t)
	require.NoError(t, os.Chmod(filepath.Dir(config), 0o777))
	loaded, err := daemon.Load(config, nil, environment(nil), kinds)
	require.NoError(t, err)
	loaded.Database = pgtest.URL(t)
	require.True(t, slices.ContainsFunc(doctor(t, loaded), func(f daemon.Finding) bool { return strings.Contains(f.Problem, replaceable) }))
}

func TestExposedFiles_NamesTheAccountThatOwnsAFile(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	config, secret, link := foreignFiles(t)
	for _, path := range []string{config, secret, link} {
		require.NoError(t, os.Lchown(path, 4711, 0))
		require.Contains(t, exposed(t, link), "the file "+path+" belongs to another account (user id 4711)")
		require.NoError(t, os.Lchown(path, 0, 0))
		require.Empty(t, exposed(t, link))
	}
}
