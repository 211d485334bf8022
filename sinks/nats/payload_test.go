package nats_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

const lowered = 20_000

// A reload changes what the server takes from all connections, and says so to new ones alone.
func TestMaxPayload_IsAskedForAgainBeforeARecordIsTooLarge(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 10} {
		b, takes := newLimitedBench(t, lowered)
		s := b.sink(t, window(n))
		ds := sinktest.Deliveries(1, 6)
		ds[3].Payload = aboveLowered()
		requireTooLarge(t, s, ds, 3)
		requireTooLarge(t, s, ds[3:], 0)
		takes(server.MAX_PAYLOAD_SIZE)
		sinktest.Delivered(t, s, ds[3:])
		require.Equal(t, "1 2 3 4 5 6", b.log(t))
	}
}

func TestMaxPayload_LoweredUnderAConnectionRefusesTheRecord(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 10} {
		b, takes := newLimitedBench(t, server.MAX_PAYLOAD_SIZE)
		s := b.sink(t, window(n))
		sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
		takes(lowered)
		ds := sinktest.Deliveries(3, 4)
		ds[1].Payload = aboveLowered()
		done, err := sinktest.Deliver(t, s, ds)
		require.True(t, outcome.IsUnknown(err), "the server ends the connection: %v", err)
		requireTooLarge(t, s, ds[done:], 1-done)
		sinktest.Delivered(t, s, ds[2:])
		require.Equal(t, "1 2 3 5 6", b.log(t))
	}
}

// newLimitedBench starts a server of which a reload changes what it takes.
func newLimitedBench(t *testing.T, limit int) (b *bench, takes func(int)) {
	t.Helper()
	file, store := filepath.Join(t.TempDir(), "nats.conf"), t.TempDir()
	write := func(limit int) { // a list of users: a reload ends the connections of a single one
		text := fmt.Sprintf("listen: '127.0.0.1:-1'\njetstream: {store_dir: %q}\nauthorization: {users: [{user: %q, password: %q}]}\nmax_payload: %d\n", store, user, password, limit)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write(limit)
	s := startServer(t, func(o *server.Options) {
		configured, err := server.ProcessConfigFile(file)
		require.NoError(t, err)
		configured.NoLog, configured.NoSigs = true, true
		*o = *configured
	})
	b = benchAt(t, s.Addr().String(), 1, nil)
	b.server = s
	return b, func(limit int) {
		t.Helper()
		write(limit)
		require.NoError(t, s.Reload())
	}
}

func aboveLowered() []byte { return []byte(`"` + strings.Repeat("x", 2*lowered) + `"`) }

func requireTooLarge(t *testing.T, s processor.BatchSink, ds []processor.Delivery, before int) {
	t.Helper()
	n, err := s.DeliverBatch(t.Context(), ds)
	require.Equal(t, before, n)
	require.ErrorContains(t, err, "it is too large for the server: more than the 20000 bytes that it takes, headers included: raise max_payload, or skip the record")
	require.True(t, processor.IsPermanent(err), err)
}
