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

// The driver takes it for a setting, which would be sent to any server that runs here.
func TestDemo_RefusesAURLOfAnotherKind(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := do(t, "", "demo", "--database", "mysql://u:CANARYpw@h/d?x=y")
	require.NotZero(t, code)
	require.Contains(t, stderr, "a url of another kind")
	require.NotContains(t, stdout+stderr, "CANARY")
}
