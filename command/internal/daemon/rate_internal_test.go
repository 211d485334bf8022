package daemon

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

func TestCounted_ASeekIsNoRate(t *testing.T) {
	t.Parallel()
	before := Counted{At: time.Unix(0, 0), Rows: map[string]cursor.Row{"a": {Sequence: 10, Epoch: 3}}}
	after := Counted{At: time.Unix(2, 0), Rows: map[string]cursor.Row{"a": {Sequence: 30, Epoch: 4}, "b": {}}}
	rate, ok := after.Since(before, "a")
	require.True(t, ok)
	require.InDelta(t, 10, rate, 0.01)
	_, ok = after.Since(before, "b")
	require.False(t, ok, "it was not there before")
	after.Rows["a"] = cursor.Row{Sequence: 10 + cursor.SeekGap, Epoch: 4}
	_, ok = after.Since(before, "a")
	require.False(t, ok)
}
