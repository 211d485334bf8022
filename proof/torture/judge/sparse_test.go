package judge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

// between is a position after row 2 and before row 3.
const between = "pos2+"

// sparse has plain take few rows of its table, and its cursor pass over others behind row 2.
func sparse(change func(*history.Standing)) *scene {
	s := begun(plain, 2)
	s.Setting.Processes[0].Sparse = true
	s.move(plain, change)
	s.rest(plain, "A", 3)
	s.move(plain, func(to *history.Standing) { to.Position += "+" })
	return s.end()
}

func passes(to *history.Standing) { to.Position = between }

func TestJudge_ACursorMayPassOverWhatAConditionLeavesOut(t *testing.T) {
	t.Parallel()
	v := judge.Judge(sparse(passes).Run)
	require.Empty(t, v.Violations)
	require.Equal(t, 2, v.PassedBetween)
	require.Equal(t, 5*rows, v.Delivered)
}

// badSparse are cursors that pass over what they may not.
var badSparse = map[string]badHistory{
	"a row that is passed over takes a number": {"I7", func() *scene {
		return sparse(func(to *history.Standing) { passes(to); to.Sequence++ })
	}},
	"a row that the condition takes is passed over": {"I7", func() *scene {
		return sparse(func(to *history.Standing) { to.Position = "pos3+" })
	}},
	"a cursor moves back between two rows": {"I7", func() *scene {
		return sparse(func(to *history.Standing) { to.Position = "pos1+" })
	}},
	"a process without a condition passes over rows": {"I7", func() *scene {
		s := sparse(passes)
		s.Setting.Processes[0].Sparse = false
		return s
	}},
	"a process without a condition ends behind its table": {"I11", func() *scene {
		s := sparse(passes)
		s.Setting.Processes[0].Sparse = false
		return s
	}},
}
