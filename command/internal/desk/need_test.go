package desk

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

func TestWhy_SaysEachThingOnce(t *testing.T) {
	t.Parallel()
	failing := &Need{rankFailing, "record 1 fails: 20 attempts"}
	hold := &Hold{Cause: CauseReceiver, Text: "record 1 fails, 20 attempts since noon: answered 503"}
	locked := &Hold{Cause: CauseLock, Text: "the cursor's row is locked by pid 7"}
	for _, c := range []struct {
		line Line
		want []string
	}{
		{Line{Hold: hold}, nil},
		{Line{Need: failing}, []string{failing.Text}},
		{Line{Need: failing, Hold: hold}, []string{hold.Text}},
		{Line{Need: failing, Hold: locked}, []string{failing.Text, locked.Text}},
		{Line{Need: &Need{rankLetters, "1 dead letter is open"}, Hold: hold}, []string{"1 dead letter is open", hold.Text}},
	} {
		require.Equal(t, c.want, c.line.Why())
	}
}

// Whatever else is said of it: a fence, say, or a lock.
func TestNeed_AProcessWithoutAWorkerNeedsSomebodyOnceRecordsWait(t *testing.T) {
	t.Parallel()
	for _, cause := range []Cause{CauseNobody, CauseFence, ""} {
		m := &memory{process: "a", row: cursor.Row{State: cursor.Running}, cause: cause}
		need := m.need(Line{State: "no worker", Waiting: &Waiting{Records: 1}})
		require.NotNil(t, need, cause)
		require.Equal(t, rankNobody, need.Rank, cause)
		require.Nil(t, m.need(Line{State: "no worker", Waiting: &Waiting{}}), cause)
		require.Nil(t, m.need(Line{State: "no worker"}), cause)
	}
}
