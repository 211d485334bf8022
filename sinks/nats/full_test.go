package nats_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// keeping makes a stream that refuses what is more than n messages of a subject.
func keeping(n int64) func(*jetstream.StreamConfig) {
	return func(c *jetstream.StreamConfig) {
		c.Discard, c.DiscardNewPerSubject, c.MaxMsgsPerSubject = jetstream.DiscardNew, true, n
	}
}

// each has a subject for each record.
func each(c *nats.Config) { c.Subject = "bookings.{{.ID}}" }

func allowRollups(c *jetstream.StreamConfig) { c.AllowRollup = true }

// TestFence_AFullSubjectOfTheFenceIsSaid: each connection adds a claim, and the stream takes no more of them.
func TestFence_AFullSubjectOfTheFenceIsSaid(t *testing.T) {
	t.Parallel()
	for _, keeps := range []int{1, 2, 5} {
		b := newBench(t, keeping(int64(keeps)))
		for i := range keeps {
			sinktest.Delivered(t, b.sink(t, each), sinktest.Deliveries(i+1, 1))
		}
		s := b.sink(t, each)
		next := sinktest.Deliveries(keeps+1, 2)
		n, err := sinktest.Deliver(t, s, next)
		require.Zero(t, n)
		require.ErrorContains(t, err, `nothing was sent`)
		require.ErrorContains(t, err, `the fence's subject "ordered-fence.sms" is full`)
		require.ErrorContains(t, err, "allow_rollup_hdrs: true")
		require.NotContains(t, err.Error(), "consumers")
		require.True(t, processor.IsRefused(err), "%v", err)
		require.False(t, processor.IsPermanent(err))
		require.False(t, outcome.IsUnknown(err))
		b.edit(t, allowRollups)
		sinktest.Delivered(t, s, next)
		for i := range 2 * keeps {
			sinktest.Delivered(t, b.sink(t, each), sinktest.Deliveries(keeps+3+i, 1))
		}
	}
}

// TestFence_AFullStreamIsNotAFullSubject: it has room for claims, and none at all for messages.
func TestFence_AFullStreamIsNotAFullSubject(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.StreamConfig) { keeping(5)(c); c.MaxMsgs = 3 })
	sinktest.Delivered(t, b.sink(t, each), sinktest.Deliveries(1, 2))
	n, err := sinktest.Deliver(t, b.sink(t, each), sinktest.Deliveries(3, 1))
	require.Zero(t, n)
	require.ErrorContains(t, err, "raise max_msgs or max_bytes")
	require.NotContains(t, err.Error(), "the fence's subject")
	require.False(t, processor.IsRefused(err), "%v", err)
	b.edit(t, func(c *jetstream.StreamConfig) { c.MaxMsgs = 100 })
	sinktest.Delivered(t, b.sink(t, each), sinktest.Deliveries(3, 1))
}

// TestDeliverBatch_WaitsWhileTheSubjectOfARecordIsFull: the stream has room for records of other subjects.
func TestDeliverBatch_WaitsWhileTheSubjectOfARecordIsFull(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 10} {
		b := newBench(t, keeping(2))
		s := b.sink(t, window(n))
		ds := sinktest.Deliveries(1, 6)
		done, err := sinktest.Deliver(t, s, ds)
		require.Equal(t, 2, done)
		require.ErrorContains(t, err, "error 10077 of the server")
		require.ErrorContains(t, err, `subject "bookings.made" is full`)
		require.ErrorContains(t, err, "raise max_msgs_per_subject")
		require.NotContains(t, err.Error(), "max_bytes")
		require.Equal(t, "unreached", sinktest.Class(err), "no healthy record is put aside: %v", err)
		b.edit(t, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 6 })
		sinktest.Delivered(t, s, ds[2:])
		require.Equal(t, "1 2 3 4 5 6", b.log(t))
	}
}

func TestCheck_TellsOfAFenceThatFillsUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, keeping(1))
	fills := func(f nats.Finding) bool {
		return f.Weakens && strings.Contains(f.Problem, `the fence's subject "ordered-fence.sms"`) && strings.Contains(f.Fix, "allow_rollup_hdrs: true")
	}
	findings, err := b.sink(t, nil).Check(t.Context(), "sms")
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(findings, fills), "%v", findings)

	sinktest.Delivered(t, b.sink(t, each), sinktest.Deliveries(1, 1))
	_, err = b.sink(t, nil).Check(t.Context(), "sms")
	require.ErrorContains(t, err, `the fence's subject "ordered-fence.sms" is full`)

	b.edit(t, allowRollups)
	findings, err = b.sink(t, nil).Check(t.Context(), "sms")
	require.NoError(t, err)
	require.False(t, slices.ContainsFunc(findings, fills), "%v", findings)
}

// TestCheck_KnowsWhichServersLetAClaimReplaceAnother: 2.12 was seen to refuse it, and 2.15 to take it.
func TestCheck_KnowsWhichServersLetAClaimReplaceAnother(t *testing.T) {
	t.Parallel()
	config := jetstream.StreamConfig{DiscardNewPerSubject: true, MaxMsgsPerSubject: 1}
	require.True(t, nats.FillsUp(config, "2.15.2", 0))
	config.AllowRollup = true
	require.False(t, nats.FillsUp(config, "2.14.0", 1))
	require.True(t, nats.FillsUp(config, "2.13.4", 0))
	config.MaxMsgsPerSubject = 2
	require.False(t, nats.FillsUp(config, "2.13.4", 1))
	require.True(t, nats.FillsUp(config, "2.13.4", 2), "full before rollups were allowed")
	config.DiscardNewPerSubject = false
	require.False(t, nats.FillsUp(config, "2.13.4", 2))
}
