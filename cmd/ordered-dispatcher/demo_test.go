package main_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What DATABASE_URL names may be a database that people work with.
func TestDemo_UsesNoDatabaseThatTheEnvironmentNames(t *testing.T) {
	t.Parallel()
	p := start(t, nowhere, "demo", "--duration=1s")
	p.stdout.until(t, 1, "starting a throw-away server")
	p.signal(syscall.SIGINT)
	p.wait()
	require.NotContains(t, p.stdout.String()+p.stderr.String(), "CANARY")

	code, _, stderr := do(t, "", "demo", "--database", nowhere)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "correct --database, or leave it out to have a throw-away server started")
}
