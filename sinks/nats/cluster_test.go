package nats_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
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

// trio is a cluster of three servers: the ports at which they find each other.
type trio [3]int

func newTrio(t testing.TB) (c trio) {
	t.Helper()
	for i := range c {
		var err error
		c[i], err = throwaway.FreePort()
		require.NoError(t, err)
	}
	return c
}

// member makes a server one of the cluster. Its name is its tag, too.
func (c trio) member(i int) func(*server.Options) {
	return func(o *server.Options) {
		o.ServerName = fmt.Sprintf("server-%d", i)
		o.Tags = []string{o.ServerName}
		o.Cluster = server.ClusterOpts{Name: "three", Host: "127.0.0.1", Port: c[i]}
		for _, port := range c {
			o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", port)})
		}
	}
}

// start starts all of them in this process.
func (c trio) start(t testing.TB) []*server.Server {
	t.Helper()
	var servers []*server.Server
	for i := range c {
		servers = append(servers, startServer(t, c.member(i)))
	}
	return servers
}

// cluster starts three servers, and a stream on all of them.
func cluster(t testing.TB, change func(*jetstream.StreamConfig)) (*bench, []*server.Server) {
	t.Helper()
	servers := newTrio(t).start(t)
	return benchAt(t, servers[0].Addr().String(), 3, change), servers
}

// TestCluster_AnOlderCopyOfAStreamsServerIsSaid: the worker is connected to another server, so its connection stays, and a stranger
// publishes as many messages as the copy lacks.
func TestCluster_AnOlderCopyOfAStreamsServerIsSaid(t *testing.T) {
	t.Parallel()
	trio := newTrio(t)
	servers := trio.start(t)
	b := benchAt(t, servers[0].Addr().String(), 1, func(c *jetstream.StreamConfig) {
		c.Placement = &jetstream.Placement{Tags: []string{servers[1].Name()}}
	})
	kept, older := servers[1].StoreDir(), filepath.Join(t.TempDir(), "older")
	s := b.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(1, 5)))
	shutDown(t, servers[1])
	require.NoError(t, os.CopyFS(older, os.DirFS(kept)))
	again := startServer(t, func(o *server.Options) { trio.member(1)(o); o.StoreDir = kept })
	b.takes(t)
	sinktest.Delivered(t, s, sinktest.Under(3, sinktest.Deliveries(6, 3)))
	shutDown(t, again)
	startServer(t, func(o *server.Options) { trio.member(1)(o); o.StoreDir = older })
	b.takes(t)
	b.strangers(t, 3)
	info, err := b.stream.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 9, info.State.LastSeq, "the claim, five records, and the stranger's")
	for range 2 {
		requireLost(t, s, sinktest.Under(3, sinktest.Deliveries(9, 3)), "it acknowledged message 9, and has another one there")
	}
	sinktest.Delivered(t, s, sinktest.Under(4, sinktest.Deliveries(6, 6)))
}

// takes waits until the stream hears what is published at the server of the bench: it refuses what is for another stream.
func (b *bench) takes(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := b.admin.Publish(t.Context(), "bookings.made", nil, jetstream.WithExpectStream("ANOTHER"), jetstream.WithRetryAttempts(0))
		var refusal *jetstream.APIError
		return errors.As(err, &refusal) && refusal.ErrorCode == 10060
	}, time.Minute, 100*time.Millisecond)
}

func TestCluster_WindowsFenceAndRefusalsHoldOnThreeReplicas(t *testing.T) {
	t.Parallel()
	b, servers := cluster(t, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 2000 })
	old := b.sink(t, window(20))
	sinktest.Delivered(t, old, sinktest.Under(3, sinktest.Deliveries(1, 200)))
	ds := sinktest.Under(3, sinktest.Deliveries(201, 20))
	ds[7].Payload = []byte(`"` + strings.Repeat("x", 3000) + `"`)
	n, err := sinktest.Deliver(t, old, ds)
	require.Equal(t, 7, n)
	require.True(t, processor.IsPermanent(err), err)
	sinktest.Delivered(t, old, ds[8:])

	successor := b.sink(t, func(c *nats.Config) { c.Window = 20; c.URL = "nats://" + servers[1].Addr().String() })
	sinktest.Delivered(t, successor, sinktest.Under(4, sinktest.Deliveries(221, 100)))
	sinktest.Delivered(t, old, sinktest.Under(3, sinktest.Deliveries(221, 20))) // the ids are compared first here: duplicates
	n, err = sinktest.Deliver(t, old, sinktest.Under(3, sinktest.Deliveries(321, 20)))
	require.Zero(t, n)
	require.ErrorContains(t, err, "another worker has claimed the stream")
	_, err = sinktest.Deliver(t, old, sinktest.Under(3, sinktest.Deliveries(321, 20)))
	require.ErrorContains(t, err, "another one has taken over")

	for _, s := range servers {
		if s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream) {
			require.NoError(t, s.JetStreamStepdownStream(server.DEFAULT_GLOBAL_ACCOUNT, stream))
		}
	}
	eventually(t, successor, sinktest.Under(4, sinktest.Deliveries(321, 100)))

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
