package daemon_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
)

// login is a role that logs in by itself, and may do all that a worker does.
func login(t testing.TB, pool *pgxpool.Pool) (name, address string) {
	t.Helper()
	name = pgtest.Role(t, pool, "od_", "LOGIN PASSWORD 'secret'")
	exec(t, pool, fmt.Sprintf("GRANT %s TO %s", pgx.Identifier{pool.Config().ConnConfig.User}.Sanitize(), name))
	exec(t, pool, fmt.Sprintf(`GRANT USAGE ON SCHEMA public, od TO %s; GRANT ALL ON ALL TABLES IN SCHEMA public, od TO %[1]s`, name))
	return name, pgtest.As(t, pool.Config().ConnString(), name, "secret")
}

func TestRun_RefusesWhatTheServerCannotBear(t *testing.T) {
	t.Parallel()
	pool := database(t)
	role, address := login(t, pool)
	exec(t, pool, fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT 3", role))
	err := drain(t, configure(t, address, stdoutProcess))
	require.ErrorIs(t, err, daemon.ErrNoRoom)
	require.ErrorContains(t, err, "up to 4 connections (2 for each of 1 processes and 2 more")
	require.ErrorContains(t, err, fmt.Sprintf("is 3: ALTER ROLE %q CONNECTION LIMIT 4, times the number of workers", role))
	require.ErrorContains(t, err, "see Connections in docs/operations.md")
	require.Equal(t, daemon.ExitUsage, daemon.ExitCode(err))
	require.False(t, errors.Is(err, daemon.ErrInterrupted))
	exec(t, pool, fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT -1", role))
	require.NoError(t, drain(t, configure(t, address, stdoutProcess)))
}

// A second worker on a server whose connections the first and others use.
func TestRun_RefusesWhatTheServerCannotBearBesideOthers(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, map[string]string{"max_connections": "12"}) // 3 of them for superusers
	pool, err := pgxpool.New(t.Context(), server.URL())
	require.NoError(t, err)
	migrate(t, pool, server.URL())
	pool.Close()
	var others []*pgx.Conn
	for range 6 {
		others = append(others, pgtest.Connect(t, server.URL()))
	}
	run := func(patience time.Duration) error {
		config := configure(t, server.URL(), stdoutProcess)
		return drainTo(t, daemon.RunConfig{Config: config}.PatientFor(patience))
	}
	err = run(time.Millisecond)
	require.ErrorIs(t, err, daemon.ErrNoRoom)
	require.ErrorContains(t, err, "is 9, of which others use 6: raise max_connections by at least 1")
	require.Equal(t, daemon.ExitFailed, daemon.ExitCode(err), "it passes when they end")

	// The connections of a worker that this one replaces end meanwhile.
	done := make(chan error, 1)
	go func() { done <- run(time.Minute) }()
	require.NoError(t, others[0].Close(t.Context()))
	require.NoError(t, waittest.Receive(t, done, "the run ends"))
}

// sinksWithTimeout have a place for their time-out; "" is a kind that has none.
var sinksWithTimeout = map[string]string{
	"webhook":  "{url: 'http://h', timeout: %s}",
	"rabbitmq": "{url: 'amqp://h', exchange: e, timeout: %s}",
	"nats":     "{url: 'nats://h', stream: S, subject: s, timeout: %s}",
	"kafka":    "{brokers: ['h:9092'], topic: t, timeout: %s}",
	"pubsub":   "{project: project, topic: topic, timeout: %s}",
	"sql":      "{url: 'postgres://a@h/x', statement: SELECT 1, timeout: %s}",
	"exec":     "{command: [cat], timeout: %s}",
	"stdout":   "",
}

// TestMaxLease_FollowsTheTimeoutOfEachKindOfSink: doctor advises to lower the timeout, and an operator who raises it expects longer calls.
func TestMaxLease_FollowsTheTimeoutOfEachKindOfSink(t *testing.T) {
	t.Parallel()
	for _, k := range kinds.Sinks {
		kind := k.Name
		sink, known := sinksWithTimeout[kind]
		require.True(t, known, "%s has no place for its time-out here", kind)
		if sink == "" {
			continue
		}
		bound := func(timeout string) time.Duration {
			config, err := parse(fmt.Sprintf("processes: {a: {source: {table: t}, sink: {%s: %s}}}", kind, fmt.Sprintf(sink, timeout)))
			require.NoError(t, err)
			return daemon.MaxLease(t, config, config.Processes[0])
		}
		require.LessOrEqual(t, bound("5s"), 40*time.Second, kind)
		require.GreaterOrEqual(t, bound("10m"), 10*time.Minute, "%s: it ends a call itself", kind)
		require.Less(t, bound("10m"), 21*time.Minute, kind)
		require.LessOrEqual(t, bound("1h"), time.Hour+5*time.Second, kind)
	}
}

// TestMaxLease_OfExecIsThatOfItsRecords: of each one the line is written, and the answer awaited. Half of the lease's time-out
// is for a read, and 5 s for the rest of the call.
func TestMaxLease_OfExecIsThatOfItsRecords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"sink: {exec: {command: [cat], timeout: 5s}}":                               20 * time.Second,
		"sink: {exec: {command: [cat], timeout: 5s}}, checkpoint: 20":               210 * time.Second,
		"sink: {exec: {command: [cat], timeout: 5s, window: 20}}, checkpoint: 20":   210 * time.Second,
		"sink: {exec: {command: [cat]}}":                                            70 * time.Second,
		"sink: {exec: {command: [cat], timeout: 1h}}, batch: 9999, checkpoint: 999": time.Hour + 5*time.Second,
	} {
		config, err := parse("processes: {a: {source: {table: t}, " + text + "}}")
		require.NoError(t, err)
		require.Equal(t, want, daemon.MaxLease(t, config, config.Processes[0]), text)
	}
}
