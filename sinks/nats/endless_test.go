package nats_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestOpen_FilesOfALoginHaveAnEnd(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{"/dev/zero", pipe} {
		for _, change := range []func(*nats.Config){func(c *nats.Config) { c.Credentials = path }, func(c *nats.Config) { c.NKey = path }} {
			_, err := sinktest.Deliver(t, declaring(t, s, change), sinktest.Deliveries(1, 1))
			require.ErrorIs(t, err, bounded.ErrNoFile)
			require.ErrorContains(t, err, path)
		}
	}
}
