package pubsub_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/pubsub"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// Not parallel: it changes the environment.
func TestConnect_TheFileOfCredentialsHasAnEnd(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	requireNoFile := func(given, path string) {
		s, err := pubsub.New(pubsub.Config{Project: "p", Topic: "topic", Credentials: given})
		require.NoError(t, err)
		_, err = sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
		require.ErrorIs(t, err, bounded.ErrNoFile)
		require.ErrorContains(t, err, path)
	}
	for _, path := range []string{"/dev/zero", pipe} {
		requireNoFile(path, path)
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
		requireNoFile("", path)
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	}
}
