package judge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

// promotedBy is a process whose standby was promoted behind row 2, by so much in sequence and epoch.
func promotedBy(sequence, epoch int64) *scene {
	s := begun(plain, 0)
	s.move(plain, func(to *history.Standing) { to.Timeline = 1 })
	s.deliver(plain, "A", 1)
	s.advance(plain, 1)
	s.deliver(plain, "A", 2)
	s.advance(plain, 2)
	s.move(plain, func(to *history.Standing) {
		to.Timeline, to.Sequence, to.Epoch = 2, to.Sequence+sequence, to.Epoch+epoch
	})
	s.event(plain, "promoted")
	s.takeOver(plain)
	for rank := 3; rank <= rows; rank++ {
		s.deliver(plain, "A", rank)
		s.Deliveries[len(s.Deliveries)-3].Sequence += sequence
		s.advance(plain, rank)
		s.Moves[len(s.Moves)-1].To.Sequence += sequence
		s.at[plain] = s.Moves[len(s.Moves)-1].To
	}
	return s.end()
}

func TestJudge_APromotionMovesNumbersAndNothingElse(t *testing.T) {
	t.Parallel()
	require.Empty(t, judge.Judge(promotedBy(7_000_000_000, 1_000_700).Run).Violations)
}

// decidedBehind is promotedBy, with an operator who pauses the process before a promotion is noted, and resumes it with so much more
// of epoch.
func decidedBehind(epoch int64, faults ...history.Phase) *scene {
	s := begun(plain, 0)
	s.move(plain, func(to *history.Standing) { to.Timeline = 1 })
	for _, phase := range faults {
		s.fault(phase, 1, history.Promote, "", "")
	}
	s.state(plain, "paused", "pause")
	s.move(plain, func(to *history.Standing) { to.State, to.Epoch = "running", to.Epoch+epoch })
	s.event(plain, "resume")
	s.rest(plain, "A", 1)
	return s.end()
}

func TestJudge_ADecisionBeforeAPromotionIsNotedBeginsARangeOfEpochs(t *testing.T) {
	t.Parallel()
	require.Empty(t, judge.Judge(decidedBehind(1_000_000, history.Begin, history.Ended).Run).Violations)
	require.Empty(t, judge.Judge(decidedBehind(1).Run).Violations)
	for _, epoch := range []int64{1, 1_000_000} {
		s := decidedBehind(epoch, history.Begin)
		require.Empty(t, judge.Judge(s.Run).Counts["I7"]+judge.Judge(s.Run).Counts["I16"], "either, while it is under way")
	}
}

var badPromotions = map[string]badHistory{
	"a promotion that moves the epoch alone":       {"I7", func() *scene { return promotedBy(0, 1_000_700) }},
	"a promotion that moves the sequence alone":    {"I7", func() *scene { return promotedBy(1_000_000_000, 0) }},
	"a promotion that moves the sequence by a few": {"I7", func() *scene { return promotedBy(7_000_000_001, 1_000_700) }},
	"a leap that the audit does not show": {"I7", func() *scene {
		s := promotedBy(1_000_000_000, 1_000_100)
		s.Actions = nil
		return s
	}},
	"an operator's decision that counts on before a promotion is noted": {"I16", func() *scene {
		return decidedBehind(1, history.Begin, history.Ended)
	}},
	"an operator's decision that has the epoch leap, and no standby was promoted": {"I7", func() *scene {
		return decidedBehind(1_000_000)
	}},
	"a leap on the same timeline": {"I7", func() *scene {
		s := promotedBy(1_000_000_000, 1_000_100)
		for i := range s.Moves {
			s.Moves[i].From.Timeline, s.Moves[i].To.Timeline = 0, 0
		}
		s.at[plain] = s.Moves[len(s.Moves)-1].To
		return s.end()
	}},
}
