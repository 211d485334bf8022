package cursor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUndone_IsOfOneTimeline: a promoted standby that lacks advances is on another one.
func TestUndone_IsOfOneTimeline(t *testing.T) {
	t.Parallel()
	seen := Seen{}.See(Row{Epoch: 5, start: start{place: "7/1"}})
	for _, c := range []struct {
		epoch    Epoch
		timeline string
		undone   bool
	}{{4, "1", true}, {4, "2", false}, {5, "1", false}, {6, "1", false}} {
		row := lockedRow{Row: Row{Epoch: c.epoch}, server: identity{system: "7", timeline: c.timeline}}
		require.Equal(t, c.undone, seen.undone(row), c)
	}
}
