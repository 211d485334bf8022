package console

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
)

// What is red is in the list of those that need somebody.
func TestFleet_AStateIsRedOnlyWhereSomebodyIsNeeded(t *testing.T) {
	t.Parallel()
	idle := desk.Line{Process: "idle", State: "no worker"}
	late := desk.Line{Process: "late", State: "no worker", Need: &desk.Need{Rank: 3, Text: "no worker runs it, and records wait"}}
	tone := func(lines ...desk.Line) string { return query{}.counts(lines)[1].Tone }
	require.Equal(t, "warn", tone(idle))
	require.Equal(t, "bad", tone(idle, late))
	require.Equal(t, "warn", stateOfLine(idle).Tone)
	require.Equal(t, "bad", stateOfLine(late).Tone)
	require.NotEqual(t, basisOf(idle), basisOf(desk.Line{Process: "idle", State: "no worker", Need: late.Need}), "the row is made again")
	require.Equal(t, "bad", stateOfLine(desk.Line{State: "halted", Need: &desk.Need{}}).Tone)
}

func TestNeeds_SayEachSentenceOnce(t *testing.T) {
	t.Parallel()
	n := newNeeds(desk.Fleet{Processes: []desk.Line{{
		Process: "a", State: "failing", Need: &desk.Need{Rank: 4, Text: "record 1 fails: 20 attempts"},
		Hold: &desk.Hold{Cause: desk.CauseReceiver, Text: "record 1 fails, 20 attempts since noon"},
	}}})
	require.Equal(t, [][]words{newProse("record 1 fails, 20 attempts since noon")}, n.List[0].Why)
}
