package daemon_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// login is a role that logs in by itself, and may do all that a worker does.
func login(t testing.TB, pool *pgxpool.Pool) (name, address string) {
	t.Helper()
	name = "od_" + strings.ToLower(rand.Text())
	exec(t, pool, fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD 'secret'; GRANT %s TO %[1]s`, name, pgx.Identifier{pool.Config().ConnConfig.User}.Sanitize()))
	exec(t, pool, fmt.Sprintf(`GRANT USAGE ON SCHEMA public, od TO %s; GRANT ALL ON ALL TABLES IN SCHEMA public, od TO %[1]s`, name))
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), "DROP OWNED BY "+name+"; DROP ROLE "+name)
		require.NoError(t, err)
	})
	u, err := url.Parse(pool.Config().ConnString())
	require.NoError(t, err)
	u.User = url.UserPassword(name, "secret")
	return name, u.String()
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
		conn, err := pgx.Connect(t.Context(), server.URL())
		require.NoError(t, err)
		defer conn.Close(context.Background())
		others = append(others, conn)
	}
	run := func(patience time.Duration) error {
		config := configure(t, server.URL(), stdoutProcess)
		return daemon.Run(t.Context(), daemon.RunConfig{
			Config: config, Drain: true, Grace: time.Second, Stdout: io.Discard, Logger: slog.New(slog.DiscardHandler),
		}.PatientFor(patience))
	}
	err = run(time.Millisecond)
	require.ErrorIs(t, err, daemon.ErrNoRoom)
	require.ErrorContains(t, err, "is 9, of which others use 6: raise max_connections by 1 at least")
	require.Equal(t, daemon.ExitFailed, daemon.ExitCode(err), "it passes when they end")

	// The connections of a worker that this one replaces end meanwhile.
	done := make(chan error, 1)
	go func() { done <- run(time.Minute) }()
	require.NoError(t, others[0].Close(t.Context()))
	require.NoError(t, <-done)
}
