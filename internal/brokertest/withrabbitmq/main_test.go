package main

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestRun_CommandHasABrokerThatEndsWithIt(t *testing.T) {
	pgtest.Require(t, "rabbitmq-server")
	t.Setenv("AMQP_URL", "")
	told := filepath.Join(t.TempDir(), "told")
	status, err := run([]string{"sh", "-c", `printf %s "$AMQP_URL" >"$0"; exit 7`, told})
	require.NoError(t, err)
	require.Equal(t, 7, status)
	address, err := os.ReadFile(told)
	require.NoError(t, err)
	at, err := url.Parse(string(address))
	require.NoError(t, err)
	require.Equal(t, "amqp", at.Scheme)
	_, err = net.Dial("tcp", at.Host)
	require.ErrorContains(t, err, "connection refused")
}

func TestRun_UsesABrokerOfYours(t *testing.T) {
	t.Setenv("AMQP_URL", "amqp://elsewhere/")
	status, err := run([]string{"sh", "-c", `test "$AMQP_URL" = amqp://elsewhere/`})
	require.NoError(t, err)
	require.Zero(t, status)
}
