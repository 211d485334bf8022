package judge_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

// streamed is a quiet history in which the messages of one process stand in a stream, dated when its cursor passed them.
func streamed() *scene {
	s := quiet()
	for i, p := range s.Setting.Processes {
		if p.Name == exact {
			s.Setting.Processes[i].Sink = history.Stream
		}
	}
	for i := range s.Applied {
		s.Applied[i].Epoch = 1
		for _, m := range s.Moves {
			if m.Process == exact && m.To.Position == s.Applied[i].Position {
				s.Applied[i].T = m.T
			}
		}
	}
	return s
}

// back has an operator send the process of the stream to row 2 again. Its worker passes the two rows behind that once
// more, some of which are stored again.
func back(again ...int) *scene {
	s := streamed()
	s.Ends = nil
	s.now = s.Applied[rows-1].T + time.Second
	s.seek(exact, 2)
	s.takeOver(exact)
	for _, rank := range again {
		m := s.Applied[rank-1]
		m.N, m.Sequence, m.Epoch, m.T = int64(len(s.Applied)+1), 10_002+int64(rank), 3, s.tick()
		s.Applied = append(s.Applied, m)
	}
	for rank := 3; rank <= rows; rank++ {
		s.move(exact, func(to *history.Standing) { to.Position, to.Sequence = position(rank), 10_002+int64(rank) })
	}
	return s.end()
}

func TestJudge_ReadsTheStream(t *testing.T) {
	t.Parallel()
	require.Empty(t, judge.Judge(streamed().Run).Violations)
	v := judge.Judge(back(3, 4).Run)
	require.Empty(t, v.Violations)
	require.Equal(t, 2, v.Replayed)
	require.Empty(t, v.Repeats)
}

// badStreams have something wrong in a stream.
var badStreams = map[string]badHistory{
	"stream: a record never came":         {"I1", func() *scene { return streamed().lie(1, 2, 4) }},
	"stream: a record overtook another":   {"I3", func() *scene { return streamed().lie(1, 3, 2, 4) }},
	"stream: a message was changed":       {"I9", func() *scene { s := streamed(); s.Applied[0].Hash = "other"; return s }},
	"stream: a message has no sequence":   {"I9", func() *scene { s := streamed(); s.Applied[0].Sequence = 0; return s }},
	"stream: a message is of no row":      {"I2", func() *scene { s := streamed(); s.Applied[0].Key = "gone"; return s }},
	"stream: a superseded worker got in":  {"I6", func() *scene { s := streamed(); s.Applied[1].Epoch = 2; return s }},
	"stream: the cursor was there before": {"I7", func() *scene { s := streamed(); s.Applied[2].T += 5 * ms; return s }},
	"stream: a record came again, and no fault excuses that": {"I5", func() *scene {
		s := streamed().lie(1, 2, 2, 3, 4)
		s.struck(1, history.CutReceiver, "", exact)
		return s
	}},
	"stream: what an operator sought back to was dropped":       {"I1", func() *scene { return back() }},
	"stream: what an operator sought back to never came":        {"I1", func() *scene { return back(3) }},
	"stream: what an operator sought back to came out of order": {"I3", func() *scene { return back(4, 3) }},
}

// A broker's end repeats nothing of those that do not publish to it.
func TestJudge_AKilledBrokerExcusesItsOwnPublishersOnly(t *testing.T) {
	t.Parallel()
	s := until(plain)
	s.Faults = []history.Fault{
		{T: s.tick(), Phase: history.Begin, ID: 1, Kind: history.KillNATS, Broker: history.Stream},
		{T: s.tick(), Phase: history.Ended, ID: 1, Kind: history.KillNATS, Broker: history.Stream},
	}
	v := judge.Judge(s.again(plain).Run)
	require.NotZero(t, v.Counts["I5"], "%v", v.Violations)
}
