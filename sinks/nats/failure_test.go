package nats_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// The server refuses one record of a window: the stream's own limit is less than
// what the server and the client let through.
func TestWindow_NothingLandsBehindARefusedRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 2000 })
	s := b.sink(t, window(10))
	ds := sinktest.Deliveries(1, 8)
	ds[2].Payload = []byte(`"` + strings.Repeat("x", 3000) + `"`)
	n, err := sinktest.Deliver(t, s, ds)
	require.Equal(t, 2, n)
	require.ErrorContains(t, err, "error 10054 of the server")
	require.ErrorContains(t, err, "raise max_msg_size of the stream, or skip the record")
	require.True(t, processor.IsPermanent(err))
	require.Equal(t, "1 2", b.log(t))
	sinktest.Delivered(t, s, ds[3:])
	require.Equal(t, "1 2 4 5 6 7 8", b.log(t))
}

// The first record of a window is refused, and again one in its middle.
func TestWindow_NothingLandsBehindARecordWithoutAStream(t *testing.T) {
	t.Parallel()
	for refused := range 6 {
		b := newBench(t, nil)
		s := b.sink(t, window(4))
		ds := sinktest.Deliveries(1, 6)
		ds[refused].Type = "refused"
		restore := b.refuse(t)
		n, err := sinktest.Deliver(t, s, ds)
		require.Equal(t, refused, n)
		require.ErrorContains(t, err, `the stream does not take subject "bookings.refused": nothing is published there`)
		require.False(t, processor.IsPermanent(err))
		require.False(t, outcome.IsUnknown(err), "the outcome is known")
		restore()
		sinktest.Delivered(t, s, ds[refused:])
		require.Equal(t, "1 2 3 4 5 6", b.log(t))
	}
}

func TestDeliverBatch_WaitsWhileTheStreamIsFull(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 10} {
		b := newBench(t, func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 4, jetstream.DiscardNew })
		s := b.sink(t, window(n))
		ds := sinktest.Deliveries(1, 6)
		done, err := sinktest.Deliver(t, s, ds) // three, beside the claim
		require.Equal(t, 3, done)
		require.ErrorContains(t, err, "error 10077 of the server")
		require.ErrorContains(t, err, "raise max_msgs or max_bytes")
		require.False(t, processor.IsPermanent(err))
		b.edit(t, func(c *jetstream.StreamConfig) { c.MaxMsgs = 100 })
		sinktest.Delivered(t, s, ds[3:])
		require.Equal(t, "1 2 3 4 5 6", b.log(t))
	}
}

// An acknowledgement is lost: the record comes again, and the server says so.
func TestDeliverBatch_ALostAcknowledgementMakesNoDuplicate(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 10} {
		b := newBench(t, nil)
		l, over := b.over(t)
		s := b.sink(t, func(c *nats.Config) { over(c); c.Window = n; c.Timeout = 5 * time.Second })
		arrives(t, s, sinktest.Deliveries(1, 1))
		l.OnData(func(fromServer bool, data []byte) {
			if fromServer && strings.Contains(string(data), `"seq"`) {
				l.Stall()
			}
		})
		done, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 5))
		require.Zero(t, done)
		require.ErrorIs(t, err, context.DeadlineExceeded, "an unknown outcome")
		require.ErrorContains(t, err, "no acknowledgement within 5s")
		l.OnData(nil)
		l.Cut()
		l.Resume()
		arrives(t, s, sinktest.Deliveries(2, 5))
		require.Equal(t, "1 2 3 4 5 6", b.log(t))
	}
}

// arrives delivers until the records are there, as a processor does: a busy machine may not connect within one call.
func arrives(t testing.TB, s *nats.Sink, ds []processor.Delivery) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := s.DeliverBatch(t.Context(), ds)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
}

func TestConnect_ChecksTheStream(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stream func(*jetstream.StreamConfig)
		sink   func(*nats.Config)
		want   []string
	}{
		"no such stream": {
			sink: func(c *nats.Config) { c.Stream = "NONE" },
			want: []string{"stream not found", "nats stream add"},
		},
		"another subject": {
			sink: func(c *nats.Config) { c.Subject = "orders.made" },
			want: []string{`does not take subject "orders.made"`, `nats stream edit BOOKINGS --subjects='bookings.>,ordered-fence.sms,orders.made'`},
		},
		"no fence": {
			stream: func(c *jetstream.StreamConfig) { c.Subjects = []string{"bookings.*"} },
			want:   []string{`does not take the fence's subject "ordered-fence.sms"`, `--subjects='bookings.*,ordered-fence.sms'`},
		},
		"no acknowledgements": {
			stream: func(c *jetstream.StreamConfig) { c.NoAck = true },
			want:   []string{"no_ack", "set no_ack to false"},
		},
		"retention by interest": {
			stream: func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy },
			want:   []string{"retention interest", "use limits"},
		},
		"a fence that it moves": {
			stream: func(c *jetstream.StreamConfig) {
				c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: ">", Destination: "x.>"}
			},
			want: []string{`subject_transform from ">" to "x.>" moves the fence's subject "ordered-fence.sms"`, "let its source leave that out"},
		},
		"a mirror": {
			stream: func(c *jetstream.StreamConfig) {
				c.Mirror, c.Subjects = &jetstream.StreamSource{Name: "ORIGIN"}, nil
			},
			want: []string{`it is a mirror, and takes nothing but what stream "ORIGIN" has: name that one`},
		},
		"sealed": {
			want: []string{"sealed"},
		},
		"a fence that is no subject": {
			sink: func(c *nats.Config) { c.Fence = "fence of {{.Process}}" },
			want: []string{"the template gives no valid subject for process"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.stream)
			if name == "sealed" {
				b.edit(t, func(c *jetstream.StreamConfig) { c.Sealed = true })
			}
			s := b.sink(t, c.sink)
			n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 2))
			require.Zero(t, n)
			require.ErrorContains(t, err, "nothing was sent")
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			require.False(t, processor.IsPermanent(err))
			require.Equal(t, name != "another subject" && name != "a fence that is no subject", processor.IsRefused(err), err)
			require.False(t, outcome.IsUnknown(err))
		})
	}
}

// TestConnect_AFenceThatTheAccountMovesIsRefused: nothing of the stream shows it.
func TestConnect_AFenceThatTheAccountMovesIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	require.NoError(t, b.server.GlobalAccount().AddMapping(fence, "bookings.moved"))
	n, err := sinktest.Deliver(t, b.sink(t, nil), sinktest.Deliveries(1, 2))
	require.Zero(t, n)
	require.ErrorContains(t, err, `what is published to the fence's subject "ordered-fence.sms" comes there as "bookings.moved"`)
	require.ErrorContains(t, err, "let the account's mappings leave that subject out")
	require.True(t, processor.IsRefused(err), "%v", err)
	require.False(t, outcome.IsUnknown(err))
}

// TestConnect_RecordsMayBeMoved: the fence is where it was.
func TestConnect_RecordsMayBeMoved(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.StreamConfig) {
		c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "bookings.>", Destination: "kept.>"}
	})
	_, err := b.sink(t, nil).Check(t.Context(), "sms")
	require.NoError(t, err)
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Deliveries(1, 3))
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Under(9, sinktest.Deliveries(3, 2)))
	state, err := b.stream.Info(t.Context(), jetstream.WithSubjectFilter("kept.>"))
	require.NoError(t, err)
	require.Equal(t, uint64(4), state.State.Subjects["kept.made"])
}

// TestDeliverBatch_ASubjectThatTheStreamDoesNotTakeIsNoAttemptOfTheRecord: it may be the first record over a connection, or come
// behind others.
func TestDeliverBatch_ASubjectThatTheStreamDoesNotTakeIsNoAttemptOfTheRecord(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 4} {
		for before := range 3 {
			t.Run(fmt.Sprintf("window %d, behind %d", size, before), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"bookings.made", fence} })
				s := b.sink(t, window(size))
				ds := sinktest.Deliveries(1, 4)
				ds[before].Type = "paid"
				for _, from := range []int{0, before} { // the attempt, and the next one
					n, err := sinktest.Deliver(t, s, ds[from:])
					require.Equal(t, before-from, n, "%v", err)
					require.ErrorContains(t, err, `nothing was sent: the stream does not take subject "bookings.paid": nothing is published there`)
					require.Equal(t, "unreached", sinktest.Class(err), "an attempt of the record: %v", err)
				}
				b.edit(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"bookings.*", fence} })
				sinktest.Delivered(t, s, ds[before:])
				require.Equal(t, "1 2 3 4", b.log(t))
			})
		}
	}
}

// The subject is taken by another stream: the record must not land there.
func TestDeliverBatch_AnotherStreamIsNoPlaceForARecord(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"bookings.made", fence} })
	other, err := b.admin.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"bookings.paid"}})
	require.NoError(t, err)
	ds := sinktest.Deliveries(1, 3)
	ds[1].Type = "paid"
	n, err := sinktest.Deliver(t, b.sink(t, window(3)), ds)
	require.Equal(t, 1, n)
	require.ErrorContains(t, err, `the stream does not take subject "bookings.paid"`)
	info, err := other.Info(t.Context())
	require.NoError(t, err)
	require.Zero(t, info.State.Msgs)
}

func TestDeliverBatch_AValueThatMakesNoSubjectHalts(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, func(c *nats.Config) { c.Subject = "bookings.{{.Key}}" })
	for _, key := range []string{"", strings.Repeat("k", 1100)} {
		d := sinktest.Deliveries(1, 1)
		d[0].Key = key
		n, err := sinktest.Deliver(t, s, d)
		require.Zero(t, n)
		require.True(t, processor.IsPermanent(err), "%q: %v", key, err)
	}
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
}

func TestDeclare_MakesTheStreamAndNeverChangesIt(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	declared := func(c *nats.Config) {
		c.Stream, c.Subject = "ORDERS", "orders.{{.Type}}"
		c.Declare = &nats.Declare{Subjects: []string{"orders.*"}, DuplicateWindow: time.Minute}
		c.Fence = "fences.orders"
	}
	sinktest.Delivered(t, b.sink(t, declared), sinktest.Deliveries(1, 2))
	orders, err := b.admin.Stream(t.Context(), "ORDERS")
	require.NoError(t, err)
	made := orders.CachedInfo().Config
	require.Equal(t, []string{"orders.*", "fences.orders"}, made.Subjects)
	require.Equal(t, time.Minute, made.Duplicates)
	require.Equal(t, jetstream.FileStorage, made.Storage)

	made.MaxMsgs = 50
	_, err = b.admin.UpdateStream(t.Context(), made)
	require.NoError(t, err)
	sinktest.Delivered(t, b.sink(t, declared), sinktest.Under(4, sinktest.Deliveries(3, 2)))
	info, err := orders.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 50, info.Config.MaxMsgs)
	require.EqualValues(t, 5, info.State.Msgs, "four records, and the last claim in place of the first")
}

func TestConnect_WithoutJetStream(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(o *server.Options) { o.JetStream = false })
	sink, err := nats.New(nats.Config{URL: "nats://" + s.Addr().String(), User: user, Password: password, Stream: stream, Subject: "x"})
	require.NoError(t, err)
	_, err = sinktest.Deliver(t, sink, sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "start the server with JetStream (-js)")
}

func TestNew_FindsAllFaults(t *testing.T) {
	t.Parallel()
	_, err := nats.New(nats.Config{
		URL: "http://secret-password@x", User: "u", Token: "secret-password", Stream: "A.B", Subject: "{{.Payload}}", Fence: "{{",
		Window: -1, Timeout: time.Nanosecond, Declare: &nats.Declare{Replicas: 9, DuplicateWindow: time.Nanosecond},
	})
	for _, want := range []string{
		"url is missing or cannot be parsed", "exclude each other", "user and password go together", `stream "A.B" is not the name`,
		"subject: template", "fence: template", "got -1", "timeout must be between 1ms and 1h0m0s, got 1ns", "declare.subjects is missing", "declare.replicas must be between 1 and 5, got 9", "declare.duplicate_window must be",
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "secret-password")
}
