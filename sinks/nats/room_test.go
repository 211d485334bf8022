package nats_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

const room = 40_000 // bytes

// TestDeliverBatch_WaitsWhileTheServerOrTheAccountHasNoRoom: it takes no record at all, so none is put aside.
func TestDeliverBatch_WaitsWhileTheServerOrTheAccountHasNoRoom(t *testing.T) {
	t.Parallel()
	account := func(storage jetstream.StorageType) func(*testing.T, *server.Server) {
		limits := server.JetStreamAccountLimits{MaxMemory: room, MaxStore: room, MaxStreams: -1, MaxConsumers: -1}
		if storage == jetstream.MemoryStorage {
			limits.MaxStore = -1
		}
		return func(t *testing.T, s *server.Server) {
			require.NoError(t, s.GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{"": limits}))
		}
	}
	for name, c := range map[string]struct {
		options func(*server.Options)
		limit   func(*testing.T, *server.Server)
		storage jetstream.StorageType
		code    int
	}{
		"the server's disk":    {options: func(o *server.Options) { o.JetStreamMaxStore = room }, code: 10023},
		"the server's memory":  {options: func(o *server.Options) { o.JetStreamMaxMemory = room }, storage: jetstream.MemoryStorage, code: 10023},
		"the account's disk":   {limit: account(jetstream.FileStorage), code: 10002},
		"the account's memory": {limit: account(jetstream.MemoryStorage), storage: jetstream.MemoryStorage, code: 10002},
	} {
		for _, size := range []int{1, 4} {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				t.Parallel()
				server := startServer(t, c.options)
				if c.limit != nil {
					c.limit(t, server)
				}
				b := benchAt(t, server.Addr().String(), 1, func(s *jetstream.StreamConfig) { s.Storage = c.storage })
				s := b.sink(t, window(size))
				sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
				b.fill(t)
				for _, sink := range []*nats.Sink{s, b.sink(t, window(size))} { // the second one cannot even claim
					n, err := sinktest.Deliver(t, sink, sinktest.Deliveries(3, 4))
					require.Zero(t, n)
					require.ErrorContains(t, err, fmt.Sprintf("err_code=%d", c.code))
					require.Equal(t, "unreached", sinktest.Class(err), "no healthy record is put aside: %v", err)
					require.ErrorContains(t, err, "raise max_file")
				}
				require.NoError(t, b.stream.Purge(t.Context(), jetstream.WithPurgeSubject("bookings.filling")))
				sinktest.Delivered(t, s, sinktest.Deliveries(3, 4))
				require.Equal(t, "1 2 3 4 5 6", b.log(t))
			})
		}
	}
}

// fill publishes until nothing more is taken.
func (b *bench) fill(t *testing.T) {
	t.Helper()
	for _, size := range []int{1000, 1} {
		for n := 0; ; n++ {
			require.Less(t, n, 2*room)
			if _, err := b.admin.Publish(t.Context(), "bookings.filling", []byte(strings.Repeat("x", size))); err != nil {
				break
			}
		}
	}
}

// TestDeliverBatch_AClaimThatWasRemovedIsNoFaultOfTheRecord: a purge takes it, or max_age.
func TestDeliverBatch_AClaimThatWasRemovedIsNoFaultOfTheRecord(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 4} {
		b := newBench(t, nil)
		s := b.sink(t, window(size))
		sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
		require.NoError(t, b.stream.Purge(t.Context()))
		n, err := sinktest.Deliver(t, s, sinktest.Deliveries(3, 4))
		require.Zero(t, n)
		require.ErrorContains(t, err, "error 10071 of the server")
		require.ErrorContains(t, err, "or the claim was removed")
		require.Equal(t, "unreached", sinktest.Class(err), "no healthy record is put aside: %v", err)
		sinktest.Delivered(t, s, sinktest.Deliveries(3, 4))
		require.Equal(t, "3 4 5 6", b.log(t))
	}
}

// TestTakesNone_KnowsWhichWordsAreOfNoRecord: a cluster without a leader, say, or the remains of an earlier attempt, are hard to have at will.
func TestTakesNone_KnowsWhichWordsAreOfNoRecord(t *testing.T) {
	t.Parallel()
	for _, code := range []jetstream.ErrorCode{10002, 10008, 10009, 10023, 10028, 10047, 10070, 10071, 10076, 10118, 10120, 10158, 10164} {
		require.True(t, nats.TakesNone(&jetstream.APIError{ErrorCode: code}), code)
	}
	for _, code := range []jetstream.ErrorCode{0, 10054, 10060, 10097, 12345} {
		require.False(t, nats.TakesNone(&jetstream.APIError{ErrorCode: code}), code)
	}
}
