package judge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

// skippedTwice has rows 3 and 4 refused for good, and both skipped by one operator.
func skippedTwice(actor string) *scene {
	s := begun(plain, 2)
	s.skip(plain, "A", 3)
	s.skip(plain, "B", 4)
	for i := range s.Actions {
		if s.Actions[i].Kind == "skip" {
			s.Actions[i].Actor = actor
		}
	}
	return s.end()
}

var badOnce = map[string]badHistory{
	"an operator who decided once skips twice": {"I10", func() *scene { return skippedTwice(history.OperatorOf(1)) }},
}

func TestJudge_AnOperatorMayDecideTwice(t *testing.T) {
	t.Parallel()
	v := judge.Judge(skippedTwice(history.Operator).Run)
	require.Empty(t, v.Violations)
	require.Equal(t, 2, v.PassedOver)
}
