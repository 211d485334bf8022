package screen_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

// buffer may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestWatch_RepeatsUntilInterrupted(t *testing.T) {
	t.Parallel()
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: pgtest.URL(t)})
	require.NoError(t, err)
	reader, err := daemon.NewStatusReader(t.Context(), daemon.StatusConfig{Config: daemon.Config{Database: pgtest.URL(t)}})
	require.NoError(t, err)
	defer reader.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out buffer
	done := make(chan error, 1)
	go func() { done <- screen.Watch(ctx, screen.NewPage(&out, env(nil)), reader, daemon.PrintStatusJSON) }()
	require.Eventually(t, func() bool { return strings.Count(out.String(), "\n") >= 2 }, time.Minute, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
	require.NotContains(t, out.String(), "\x1b", "no control characters but on a terminal")
}
