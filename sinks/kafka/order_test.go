package kafka_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// upTo are the sequences from 1 to n.
func upTo(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i+1))
	}
	return strings.Join(all, " ")
}

// limited are the settings of a topic that takes batches of 4 KB.
var limited = map[string]string{"max.message.bytes": "4000"}

// inBatches makes a client's batches larger than that before they are compressed:
// one record that does not compress is too large, in a batch and alone.
func inBatches(c *kafka.Config) { c.MaxBytes = 20_000 }

const compressible = 3_000

// incompressible is a payload that the broker refuses, and the client does not.
func incompressible() []byte {
	noise := make([]byte, 3_500)
	_, _ = rand.Read(noise)
	return fmt.Appendf(nil, "%q", hex.EncodeToString(noise))
}

func withPayloads(ds []processor.Delivery) []processor.Delivery {
	for i := range ds {
		ds[i].Payload = fmt.Appendf(nil, "%q", strings.Repeat("x", compressible))
	}
	return ds
}

// The broker's own log decides: of 300 records in some 60 batches, one in the middle is refused.
func TestDeliverBatch_NothingBehindARefusedRecordLands(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafka.Config){
		"idempotent":    inBatches,
		"transactional": func(c *kafka.Config) { inBatches(c); c.TransactionalID = c.Topic },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, 1, limited)
			s := b.sink(t, change)
			sinktest.Delivered(t, s, withPayloads(sinktest.Deliveries(1, 3))) // the client has several batches on their way only now
			ds := withPayloads(sinktest.Deliveries(4, 300))
			ds[150].Payload = incompressible()
			n, err := sinktest.Deliver(t, s, ds)
			require.Equal(t, 150, n)
			require.True(t, processor.IsPermanent(err), err)
			require.ErrorContains(t, err, `record "154"`)
			require.ErrorContains(t, err, "MESSAGE_TOO_LARGE")
			require.ErrorContains(t, err, "raise max.message.bytes")
			require.Equal(t, upTo(153), sequences(b.read(t)))
			sinktest.Delivered(t, s, withPayloads(ds[150:]))
			require.Equal(t, upTo(303), sequences(b.read(t)))
		})
	}
}

// The first batch of a producer id: a broker that does not know it yet would take
// the second without the first.
func TestDeliverBatch_NothingBehindARefusedFirstRecordLands(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, limited)
	ds := withPayloads(sinktest.Deliveries(1, 100))
	ds[1].Payload = incompressible()
	n, err := sinktest.Deliver(t, b.sink(t, inBatches), ds)
	require.Equal(t, 1, n)
	require.True(t, processor.IsPermanent(err), err)
	require.Equal(t, "1", sequences(b.read(t)))
}

// What is too large for the client itself is failed by it alone.
func TestDeliverBatch_NothingBehindARecordTooLargeForTheClientLands(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, nil)
	ds := sinktest.Deliveries(1, 100)
	ds[50].Payload = fmt.Appendf(nil, "%q", strings.Repeat("x", 30_000))
	n, err := sinktest.Deliver(t, b.sink(t, inBatches), ds)
	require.Equal(t, 50, n)
	require.True(t, processor.IsPermanent(err), err)
	require.Equal(t, upTo(50), sequences(b.read(t)))
}

// Other partitions may have what stands behind: there it comes once more, and each
// keeps its order.
func TestDeliverBatch_ARefusalLeavesTheOrderOfOtherPartitions(t *testing.T) {
	t.Parallel()
	b := newBench(t, 3, limited)
	s := b.sink(t, inBatches)
	ds := withPayloads(sinktest.Deliveries(1, 200))
	for i := range ds {
		ds[i].Key = fmt.Sprint(i % 7)
	}
	ds[90].Payload = incompressible()
	n, err := sinktest.Deliver(t, s, ds)
	require.Equal(t, 90, n)
	require.True(t, processor.IsPermanent(err), err)
	sinktest.Delivered(t, s, withPayloads(ds[90:]))
	seen, last := map[string]bool{}, map[string]int{}
	for _, m := range b.read(t) {
		id := m.header("event_id")
		if seen[id] {
			continue
		}
		seen[id] = true
		var sequence int
		_, err := fmt.Sscan(m.header("ordered-sequence"), &sequence)
		require.NoError(t, err)
		require.Greater(t, sequence, last[m.Partition], "partition %s", m.Partition)
		last[m.Partition] = sequence
	}
	require.Len(t, seen, 200)
}

// A record that failed goes alone, so that what stands behind it in other
// partitions is not sent with each attempt.
func TestDeliverBatch_AnAttemptSendsNothingBehindWhatFailedBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, limited)
	s := b.sink(t, inBatches)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	ds := withPayloads(sinktest.Deliveries(2, 20))
	for i := range ds {
		ds[i].Key = fmt.Sprint(i)
	}
	ds[0].Payload = incompressible()
	for range 4 {
		n, err := sinktest.Deliver(t, s, ds)
		require.Zero(t, n)
		require.True(t, processor.IsPermanent(err), err)
	}
	times := map[string]int{}
	for _, m := range b.read(t) {
		times[m.header("event_id")]++
	}
	for id, n := range times {
		require.Equal(t, 1, n, id)
	}
}

// While the client gets the records there would be time for a refusal and more, if
// any were sent by then.
func TestDeliverBatch_NothingIsSentBeforeTheClientHasTheWholeWindow(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, limited)
	s := b.sink(t, inBatches)
	ds := withPayloads(sinktest.Deliveries(2, 100))
	ds[7].Payload = incompressible()
	s.OnHandingOver(func(r *kgo.Record) {
		if string(r.Headers[0].Value) == ds[50].DedupKey() {
			time.Sleep(500 * time.Millisecond) // what must not happen has no event to wait for
		}
	})
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	n, err := sinktest.Deliver(t, s, ds)
	require.Equal(t, 7, n)
	require.True(t, processor.IsPermanent(err), err)
	require.Equal(t, upTo(8), sequences(b.read(t)))
}
