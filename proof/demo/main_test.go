package main

import (
	"bytes"
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret/secrettest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
)

// DATABASE_URL may name a database that people work with.
func TestDemo_UsesNoDatabaseThatTheEnvironmentNames(t *testing.T) {
	const nowhere = "postgres://u:CANARY@127.0.0.1:1/nowhere"
	t.Setenv("DATABASE_URL", nowhere)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &output{seen: func(text string) {
		if strings.Contains(text, "starting a throw-away server") {
			cancel()
		}
	}}
	var stderr bytes.Buffer
	require.Equal(t, exitFailed, execute(ctx, []string{"--duration=1s"}, out, &stderr))
	require.Contains(t, out.String(), "starting a throw-away server")
	require.NotContains(t, out.String()+stderr.String(), "CANARY")

	stderr.Reset()
	require.Equal(t, exitFailed, execute(t.Context(), []string{"--database", nowhere}, out, &stderr))
	require.Contains(t, stderr.String(), "correct --database, or leave it out to have a throw-away server started")
}

// The driver takes such a URL for a setting, and would send it to any server that runs here.
func TestDemo_RefusesAURLOfAnotherKind(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitFailed, execute(t.Context(), []string{"--database", "mysql://u:CANARYpw@h/d?x=y"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "a url of another kind")
	require.NotContains(t, stdout.String()+stderr.String(), "CANARY")
}

func TestDemo_ADatabaseThatRepeatsTheLoginDisclosesNothing(t *testing.T) {
	t.Parallel()
	address := tcptest.Postgres(t, tcptest.Login, func(password string) *pgproto3.ErrorResponse {
		return &pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: secrettest.Words + secrettest.Forms(password)}
	})
	database := "postgres://u:" + url.QueryEscape(secrettest.Canary) + "@" + address + "/d?sslmode=disable"
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitFailed, execute(t.Context(), []string{"--database", database}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "28P01")
	secrettest.RequireNone(t, stdout.String()+stderr.String(), secrettest.Canary)
}

func TestParse_RefusesArguments(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitUsage, execute(t.Context(), []string{"now"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), `demo takes options only, got "now"`)
}
