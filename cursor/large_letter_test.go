package cursor_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

// Not parallel: it counts all memory that is allocated. As hexadecimal digits in text a
// payload was copied five times over, at twice its size.
func TestPutAside_CopiesALargePayloadOnce(t *testing.T) {
	const size = 24 << 20
	pool := database(t)
	s := created(t, pool, "a")
	lease := acquire(t, s)
	large := letter()
	large.Payload = bytes.Repeat([]byte{1}, size)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, lease.PutAside(t.Context(), large))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size*3/2))

	none := letter()
	none.Position, none.Payload = "p3", nil
	require.NoError(t, lease.PutAside(t.Context(), none))
	listed, err := operator.New(s).DeadLetters(t.Context(), "sms", false, 10)
	require.NoError(t, err)
	require.Len(t, listed, 2)
	got, err := operator.New(s).DeadLetter(t.Context(), listed[0].ID)
	require.NoError(t, err)
	require.Equal(t, large.Payload, got.Payload)
	got, err = operator.New(s).DeadLetter(t.Context(), listed[1].ID)
	require.NoError(t, err)
	require.Nil(t, got.Payload)
}
