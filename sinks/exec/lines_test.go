package exec_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/exec"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// Standard error is read one line at a time, and a key has many.
func TestDeliverBatch_NoLineOfAKeyIsLogged(t *testing.T) {
	t.Parallel()
	body := []string{strings.Repeat("MIIEvQ", 10), strings.Repeat("Zk9s+/", 10), strings.Repeat("q7Yt1x", 10)}
	b := newBench(t)
	said := new(lines)
	s := b.sink(t, "dies", func(c *exec.Config) {
		c.Env["TOKEN"] = "-----BEGIN PRIVATE KEY-----\n" + strings.Join(body, "\n") + "\n-----END PRIVATE KEY-----\n"
		c.Logger = slog.New(slog.NewTextHandler(said, nil))
	})
	_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 2))
	require.Error(t, err)
	require.NoError(t, s.Close())
	require.Contains(t, said.String(), "cannot go on with")
	require.Contains(t, said.String(), "and [secret]")
	for _, line := range body {
		require.NotContains(t, said.String(), line)
		require.NotContains(t, err.Error(), line)
	}
}
