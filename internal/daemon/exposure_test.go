package daemon_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon"
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
