package kafka

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMark_IsInABatchThatTheCleanerHasMarked: of a batch with a tombstone, the cleaner of a compacted log sets the first time to when the
// tombstone goes, a day ahead by default. It was taken for another record.
func TestMark_IsInABatchThatTheCleanerHasMarked(t *testing.T) {
	t.Parallel()
	sent := time.UnixMilli(1_700_000_000_000)
	m := mark{offset: 12, producer: producer{7, 3}, sent: sent}
	batch := func(attributes int, first time.Time) []byte {
		b := make([]byte, batchHead)
		binary.BigEndian.PutUint64(b, 10)
		binary.BigEndian.PutUint32(b[lengthAt:], batchHead-lengthAt-4)
		b[magicAt], b[attributesAt+1] = 2, byte(attributes)
		binary.BigEndian.PutUint32(b[lastAt:], 2)
		binary.BigEndian.PutUint64(b[firstTimeAt:], uint64(first.UnixMilli()))
		binary.BigEndian.PutUint64(b[maxTimeAt:], uint64(sent.UnixMilli()))
		binary.BigEndian.PutUint64(b[producerAt:], 7)
		binary.BigEndian.PutUint16(b[epochAt:], 3)
		return b
	}
	horizon := sent.Add(24 * time.Hour)
	require.Equal(t, finding{}, m.in(batch(0, sent)))
	require.Equal(t, finding{}, m.in(batch(deleteHorizon, horizon)))
	require.NotEmpty(t, m.in(batch(0, horizon)).lost)
	require.NotEmpty(t, m.in(batch(controlRecords, sent)).lost)
	m.producer.epoch++
	require.NotEmpty(t, m.in(batch(deleteHorizon, horizon)).lost)
}
