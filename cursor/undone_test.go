package cursor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
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

// TestLost_NamesAnOldPrimaryThatComesBack: an operator who decided there, as the halt said, had it deliver what it alone has.
func TestLost_NamesAnOldPrimaryThatComesBack(t *testing.T) {
	t.Parallel()
	seen := Seen{}.See(Row{Epoch: 5, start: start{place: "7/10"}})
	for _, c := range []struct {
		server identity
		old    bool
	}{
		{identity{system: "7", timeline: "9"}, true}, {identity{system: "7", timeline: "10"}, false}, {identity{system: "7", timeline: "11"}, false},
		{identity{system: "8", timeline: "9"}, false}, {identity{}, false},
	} {
		text := seen.lost(lockedRow{Row: Row{Epoch: 4}, server: c.server})
		require.Equal(t, c.old, strings.Contains(text, "an old one that is not fenced: fence it, and make no decision here; the workers go back by themselves. If there is no other, the database was restored, and each decision on it needs --fenced: "), text)
		require.Equal(t, !c.old, strings.Contains(text, "The database was restored from a backup or a snapshot"), text)
		require.Contains(t, text, "Compare what receivers have with the table")
	}
}

// TestRestoredClasses_AreTheRestoredOnes: the statements of package tables know classes by their texts.
func TestRestoredClasses_AreTheRestoredOnes(t *testing.T) {
	t.Parallel()
	require.Equal(t, "'"+string(ClassRestored)+"', '"+string(ClassOldPrimary)+"'", tables.RestoredClasses)
}
