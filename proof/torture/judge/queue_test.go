package judge_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

// queued is a quiet history in which the messages of one process lie in a broker's queue.
func queued() *scene {
	s := quiet()
	for i, p := range s.Setting.Processes {
		if p.Name == exact {
			s.Setting.Processes[i].Sink = history.Queue
		}
	}
	return s
}

// lie puts messages into the queue, by their rows.
func (s *scene) lie(ranks ...int) *scene {
	before := s.Applied
	s.Applied = nil
	for i, rank := range ranks {
		m := before[slices.IndexFunc(before, func(a history.Applied) bool { return a.Key == key(rank) })]
		m.N = int64(i + 1)
		s.Applied = append(s.Applied, m)
	}
	return s
}

func TestJudge_ReadsTheBrokersQueue(t *testing.T) {
	t.Parallel()
	v := judge.Judge(queued().Run)
	require.Empty(t, v.Violations)
	require.Zero(t, v.Queued)

	s := queued().lie(1, 2, 2, 3, 2, 3, 4)
	s.fault(history.Begin, 1, history.KillBroker, "", "")
	s.fault(history.Ended, 1, history.KillBroker, "", "")
	s.fault(history.Begin, 2, history.StallReceiver, "", exact)
	s.fault(history.Ended, 2, history.StallReceiver, "", exact)
	v = judge.Judge(s.Run)
	require.Empty(t, v.Violations, "two faults and a checkpoint of 2 explain three repeats")
	require.Equal(t, 3, v.Queued)
}

func TestJudge_FindsWhatIsWrongInAQueue(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]badHistory{
		"a record never came":               {"I1", func() *scene { return queued().lie(1, 2, 4) }},
		"a record overtook another":         {"I3", func() *scene { return queued().lie(1, 3, 2, 3, 4) }},
		"a record came again for no reason": {"I5", func() *scene { return queued().lie(1, 2, 2, 3, 4) }},
		"more came again than faults can explain": {"I5", func() *scene {
			s := queued().lie(1, 2, 2, 2, 2, 3, 4)
			s.fault(history.Begin, 1, history.KillBroker, "", "")
			s.fault(history.Ended, 1, history.KillBroker, "", "")
			return s
		}},
		"a message is of no row":    {"I2", func() *scene { s := queued(); s.Applied[0].Key = "gone"; return s }},
		"a message was changed":     {"I9", func() *scene { s := queued(); s.Applied[0].Hash = "other"; return s }},
		"a message has no sequence": {"I9", func() *scene { s := queued(); s.Applied[0].Sequence = 0; return s }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := judge.Judge(b.history().Run)
			require.NotZero(t, v.Counts[b.invariant], "%v", v.Violations)
		})
	}
}
