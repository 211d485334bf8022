package exec_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/exec"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// A process that left the child's group holds all three of its pipes, and lives on.
func TestDeliverBatch_AnHeirOfTheChildsPipesIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		payload string // of the second record, while the first one has no answer
		fault   string
	}{
		"for an answer": {`"small"`, "the child ended without an answer (exit status 3)"},
		"to be read":    {fmt.Sprintf("%q", strings.Repeat("x", 4<<20)), "(exit status 3)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.sink(t, "leaves an heir", func(c *exec.Config) { c.Timeout, c.Window = time.Hour, 2 })
			t.Cleanup(func() {
				if b.read(t, "heir.pid") != "" {
					_ = syscall.Kill(-b.pid(t, "heir"), syscall.SIGKILL)
				}
			})
			ds := sinktest.Deliveries(1, 2)
			ds[1].Payload = []byte(c.payload)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			n, err := s.DeliverBatch(ctx, ds)
			require.Zero(t, n)
			require.ErrorContains(t, err, c.fault)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.True(t, outcome.IsUnknown(err))
			closed := filepath.Join(b.dir, "closed")
			require.Eventually(t, func() bool { _, err := os.Stat(closed); return err == nil }, time.Minute, 5*time.Millisecond, "its pipes are not closed: it writes to standard error")

			ds[0].Payload = []byte(`"alone"`)
			sinktest.Delivered(t, s, ds[:1]) // another child
		})
	}
}
