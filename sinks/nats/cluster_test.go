package nats_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// cluster starts three servers in this process, and a stream on all of them.
func cluster(t testing.TB, change func(*jetstream.StreamConfig)) (*bench, []*server.Server) {
	t.Helper()
	ports := make([]int, 3)
	routes := make([]string, 3)
	for i := range ports {
		var err error
		ports[i], err = throwaway.FreePort()
		require.NoError(t, err)
		routes[i] = fmt.Sprintf("nats://127.0.0.1:%d", ports[i])
	}
	servers := make([]*server.Server, 3)
	for i := range servers {
		servers[i] = startServer(t, func(o *server.Options) {
			o.ServerName = fmt.Sprintf("server-%d", i)
			o.Cluster = server.ClusterOpts{Name: "three", Host: "127.0.0.1", Port: ports[i]}
			for _, route := range routes {
				u, err := url.Parse(route)
				require.NoError(t, err)
				o.Routes = append(o.Routes, u)
			}
		})
	}
	return benchAt(t, servers[0].Addr().String(), 3, change), servers
}

func TestCluster_WindowsFenceAndRefusalsHoldOnThreeReplicas(t *testing.T) {
	t.Parallel()
	b, servers := cluster(t, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 2000 })
	old := b.sink(t, window(20))
	requireDelivered(t, old, of(3, sinktest.Deliveries(1, 200)))
	ds := of(3, sinktest.Deliveries(201, 20))
	ds[7].Payload = []byte(`"` + strings.Repeat("x", 3000) + `"`)
	n, err := deliver(t, old, ds)
	require.Equal(t, 7, n)
	require.True(t, processor.IsPermanent(err), err)
	requireDelivered(t, old, ds[8:])

	successor := b.sink(t, func(c *nats.Config) { c.Window = 20; c.URL = "nats://" + servers[1].Addr().String() })
	requireDelivered(t, successor, of(4, sinktest.Deliveries(221, 100)))
	requireDelivered(t, old, of(3, sinktest.Deliveries(221, 20))) // the ids are compared first here: duplicates
	n, err = deliver(t, old, of(3, sinktest.Deliveries(321, 20)))
	require.Zero(t, n)
	require.ErrorContains(t, err, "another worker has claimed the stream")
	_, err = deliver(t, old, of(3, sinktest.Deliveries(321, 20)))
	require.ErrorContains(t, err, "another one has taken over")

	for _, s := range servers {
		if s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream) {
			require.NoError(t, s.JetStreamStepdownStream(server.DEFAULT_GLOBAL_ACCOUNT, stream))
		}
	}
	eventually(t, successor, of(4, sinktest.Deliveries(321, 100)))

	var want []string
	for sequence := 1; sequence <= 420; sequence++ {
		if sequence != 208 {
			want = append(want, fmt.Sprint(sequence))
		}
	}
	require.Equal(t, strings.Join(want, " "), b.log(t))
}

// eventually delivers all, as a processor does.
func eventually(t testing.TB, s *nats.Sink, ds []processor.Delivery) {
	t.Helper()
	until := time.Now().Add(time.Minute)
	for len(ds) > 0 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		n, err := s.DeliverBatch(ctx, ds)
		cancel()
		ds = ds[n:]
		if err != nil {
			require.False(t, processor.IsPermanent(err), err)
			require.True(t, time.Now().Before(until), err)
			time.Sleep(20 * time.Millisecond) // as the processor's back-off
		}
	}
}
