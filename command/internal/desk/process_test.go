package desk

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// Between two steps of a look the row is newer than the head.
func TestProcess_ShowsNoHeadThatADecisionIsNotAbout(t *testing.T) {
	t.Parallel()
	failing := func(at cursor.Position, class cursor.Class) *cursor.Failure {
		return &cursor.Failure{Position: at, RecordID: "of the failure", Attempts: 1, Class: class}
	}
	for name, c := range map[string]struct {
		row   cursor.Row
		shown bool
	}{
		"it waits":                   {cursor.Row{Position: "1"}, true},
		"it fails":                   {cursor.Row{Position: "1", Failure: failing("2", cursor.ClassPermanent)}, true},
		"the server is at fault":     {cursor.Row{Position: "1", Failure: failing("1", cursor.ClassRestored)}, true},
		"it was passed":              {cursor.Row{Position: "2"}, false},
		"it was passed, and 3 fails": {cursor.Row{Position: "2", Failure: failing("3", cursor.ClassPermanent)}, false},
		"its row came before 3":      {cursor.Row{Position: "1", Failure: failing("3", cursor.ClassPermanent)}, false},
	} {
		b := newBoard(Config{}, nil)
		b.at = time.Now()
		b.memories["a"] = &memory{process: "a", row: c.row, detail: detail{head: &Record{ID: "of the head", Position: "2"}}}
		p, err := b.process("a", Full, time.Now())
		require.NoError(t, err)
		require.Equal(t, c.shown, p.Head != nil, name)
		require.Equal(t, c.shown, p.HeadProblem == "", name)
	}
}

func TestProcess_AHeadThatMovedComesBeforeOtherProblems(t *testing.T) {
	t.Parallel()
	b := newBoard(Config{}, nil)
	b.at = time.Now()
	b.memories["a"] = &memory{process: "a", row: cursor.Row{Position: "2"}, detail: detail{head: &Record{Position: "2"}, headProblem: "of the history"}}
	p, err := b.process("a", Full, time.Now())
	require.NoError(t, err)
	require.Nil(t, p.Head)
	require.Contains(t, p.HeadProblem, "has moved past it")
}

func TestProcess_AHistoryThatCannotBeReadIsAProblemBesideTheHead(t *testing.T) {
	t.Parallel()
	pool, d := left(t)
	insert(t, pool, "bob", 1)
	until(t, d, func(p Process) bool { return p.Head != nil && p.HeadProblem == "" })
	pgtest.Exec(t, pool, `ALTER TABLE od.cursor_event RENAME TO gone`)
	d.stop()
	d.running.Wait() // so no other look comes in between
	d.board.nudge("a")
	d.board.noteDetail(t.Context(), "a")
	p, err := d.board.process("a", Full, time.Now())
	require.NoError(t, err)
	require.Equal(t, "bob", p.Head.Key)
	require.Contains(t, p.HeadProblem, "cursor_event")
}
