package main_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret/secrettest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
)

// A program in the place of the database, or a proxy before it, may say what it was sent.
func TestCommands_ADatabaseThatRepeatsTheLoginDisclosesNothing(t *testing.T) {
	t.Parallel()
	address := tcptest.Postgres(t, tcptest.Login, func(password string) *pgproto3.ErrorResponse {
		return &pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: secrettest.Words + secrettest.Forms(password)}
	})
	database := "postgres://u:" + url.QueryEscape(secrettest.Canary) + "@" + address + "/d?sslmode=disable"
	config := processes(t, map[string]string{"a": "stdout: {}"})
	for _, command := range []string{
		"run --drain", "status", "status --json", "doctor", "partitions", "grants --role=w", "history a", "pause a", "skip a --reason=x", "dead-letter list",
		"migrate up", "migrate status", "migrate down --yes",
	} {
		arguments := append(strings.Fields(command), "-c", config)
		code, stdout, stderr := do(t, database, arguments...)
		require.Equal(t, 1, code, command)
		said := stdout + stderr
		require.Contains(t, said, "28P01", command)
		require.Contains(t, said, "[secret]", command)
		secrettest.RequireNone(t, said, secrettest.Canary)
	}
	worker := start(t, database, "run", "-c", config)
	worker.stderr.until(t, 1, "28P01")
	worker.stop()
	secrettest.RequireNone(t, worker.stderr.String(), secrettest.Canary)
	watch := start(t, database, "status", "--watch", "-c", config)
	watch.stdout.until(t, 1, "28P01")
	watch.stop()
	secrettest.RequireNone(t, watch.stdout.String(), secrettest.Canary)
}
