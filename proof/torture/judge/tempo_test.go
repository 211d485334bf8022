package judge_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

// busy has every beat of a history take so many times as long as it should.
func (s *scene) busy(times int) *scene {
	s.Beats = nil
	for t := history.BeatInterval; t < s.now+time.Hour; t += 100 * history.BeatInterval {
		s.Beats = append(s.Beats, history.Beat{T: t, Took: time.Duration(times) * history.BeatNominal})
	}
	return s
}

// What is late on a machine that has nothing else to do is not late on one that is a hundred times as busy.
func TestJudge_AVerdictDoesNotDependOnHowBusyTheMachineIs(t *testing.T) {
	t.Parallel()
	all := merge(bad, badAnswers)
	for _, name := range []string{
		"a duplicate long after a fault",
		"sent while halted",
		"sent while paused",
		"status did not tell of a halt",
		"status told of a halt too late",
		"no metrics told of a halt",
		"metrics told of a halt too late",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := all[name].history().busy(1)
			require.NotEmpty(t, judge.Judge(s.Run).Violations)
			require.Empty(t, judge.Judge(s.busy(100).Run).Violations)
		})
	}
}

// What was never true is a fault at any speed.
func TestJudge_ABusyMachineExcusesNoLoss(t *testing.T) {
	t.Parallel()
	for name, b := range merge(bad, badLetters, badStale) {
		switch b.invariant {
		case "I1", "I2", "I3", "I4", "I6", "I7", "I9":
			require.NotZero(t, judge.Judge(b.history().busy(1000).Run).Counts[b.invariant], name)
		}
	}
}

// A second of which an eighth is left lets the time-out of a request run out. It excuses what such a time-out causes, as
// another fault would, and is named as that.
func TestJudge_ASecondThatIsOverloadedIsAFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		times     int
		unexcused int
	}{{1, 1}, {7, 1}, {9, 0}, {100, 0}} {
		s := bad["a duplicate without a fault"].history()
		for at := history.BeatInterval; at < s.now+time.Second; at += history.BeatInterval {
			s.Beats = append(s.Beats, history.Beat{T: at, Took: time.Duration(c.times) * history.BeatNominal})
		}
		v := judge.Judge(s.Run)
		require.Equal(t, c.unexcused, v.Counts["I5"], "%d times too busy", c.times)
		require.Equal(t, c.unexcused, v.Unexplained())
		if c.unexcused == 0 {
			require.Equal(t, history.Overload, v.Repeats[0].Kind)
			require.Equal(t, 1, v.Faults[len(v.Faults)-1].Repeats)
		}
	}
}
