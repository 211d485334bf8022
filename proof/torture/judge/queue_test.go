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
	s.struck(1, history.KillBroker, "", "")
	s.struck(2, history.StallReceiver, "", exact)
	v = judge.Judge(s.Run)
	require.Empty(t, v.Violations, "two faults and a checkpoint of 2 explain three repeats")
	require.Equal(t, 3, v.Queued)
}

// badQueues have something wrong in a broker's queue.
var badQueues = map[string]badHistory{
	"queue: a record never came":               {"I1", func() *scene { return queued().lie(1, 2, 4) }},
	"queue: a record overtook another":         {"I3", func() *scene { return queued().lie(1, 3, 2, 3, 4) }},
	"queue: a record came again for no reason": {"I5", func() *scene { return queued().lie(1, 2, 2, 3, 4) }},
	"queue: more came again than faults can explain": {"I5", func() *scene {
		s := queued().lie(1, 2, 2, 2, 2, 3, 4)
		s.struck(1, history.KillBroker, "", "")
		return s
	}},
	"queue: a message is of no row":    {"I2", func() *scene { s := queued(); s.Applied[0].Key = "gone"; return s }},
	"queue: a message was changed":     {"I9", func() *scene { s := queued(); s.Applied[0].Hash = "other"; return s }},
	"queue: a message has no sequence": {"I9", func() *scene { s := queued(); s.Applied[0].Sequence = 0; return s }},
}
