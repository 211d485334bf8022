package daemon_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
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
		require.Equal(t, c.problems, daemon.Exposed(t, configure(t, c.database, "  a: {source: {table: t}, sink: {"+c.sink+"}}")), "%s %s", c.database, c.sink)
	}
	var log bytes.Buffer
	daemon.WarnOf(slog.New(slog.NewJSONHandler(&log, nil)), "a")
	require.Contains(t, log.String(), `"process":"a"`)
	require.Equal(t, 1, strings.Count(log.String(), "\n"))
}

func TestDoctor_WarnsOfACertificateThatIsNotChecked(t *testing.T) {
	t.Parallel()
	require.True(t, daemon.MayEndAtAStranger(t, "postgres://u:p@db.example/d?sslmode=require"))
	require.False(t, daemon.MayEndAtAStranger(t, "postgres://u:p@db.example/d?sslmode=verify-full"))
	require.False(t, daemon.MayEndAtAStranger(t, "postgres://u:p@localhost/d?sslmode=require"))
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
		said := strings.Join(loaded.ExposedFiles(), "\n")
		require.Equal(t, c.configWarned, strings.Contains(said, config), said)
		require.Equal(t, c.secretWarned, strings.Contains(said, secret), said)
		require.NotContains(t, said, literal)
		warned := slices.ContainsFunc(doctor(t, loaded), func(f daemon.Finding) bool { return strings.Contains(f.Problem, "others than its owner can read it") })
		require.Equal(t, c.configWarned || c.secretWarned, warned)
	}
}

func TestConnectionStrings_RefuseUnknownSettings(t *testing.T) {
	t.Parallel()
	const url = "postgres://u@localhost:1/d?passwrod=CANARY"
	_, remote := sql.NewRemote(sql.Config{URL: url, Statement: "SELECT 1"})
	_, migrate := migrations.Status(t.Context(), migrations.Config{ConnString: url})
	_, pool := daemon.PoolError(url)
	for _, err := range []error{remote, migrate, pool} {
		require.ErrorContains(t, err, `"passwrod"`)
		require.NotContains(t, err.Error(), "CANARY")
	}
}
