package judge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

// superseded has worker A acknowledge rows 1 and 2 of two, whose checkpoint is 2, and pass row 1. Then B takes over, and
// delivers row 2 again. What A has on the wire is stalled.
func superseded() *scene {
	s := begun(two, 1)
	s.deliver(two, "A", 2)
	s.fault(history.Begin, 1, history.StallReceiver, "", two)
	s.takeOver(two)
	s.deliver(two, "B", 2)
	return s
}

// lateAhead is a request of a superseded worker that arrives before the next worker has come so far.
func lateAhead() *scene {
	s := superseded()
	s.deliver(two, "A", 3)
	s.advance(two, 2)
	s.rest(two, "B", 3)
	return s.end()
}

// A receiver that compares no epochs sees, of a superseded worker, at most the one record that was on the wire. It may be
// ahead of the next worker, by no more than lies between two checkpoints, and then everything before it has been applied.
func TestJudge_ALateRequestMayBeOneCheckpointAhead(t *testing.T) {
	t.Parallel()
	v := judge.Judge(lateAhead().Run)
	require.Empty(t, v.Violations)
	require.Equal(t, 1, v.Ahead)
	require.Equal(t, 1, v.Stale)
	require.Len(t, v.Repeats, 2)
}

// A row that its worker tries again is one row on the wire, however many requests that are.
func TestJudge_ALateRequestMayComeAgain(t *testing.T) {
	t.Parallel()
	s := superseded()
	s.reply(s.receive(two, "A", 3), 500)
	s.deliver(two, "A", 3)
	s.deliver(two, "A", 3)
	s.advance(two, 2)
	s.rest(two, "B", 3)
	v := judge.Judge(s.end().Run)
	require.Empty(t, v.Violations)
	require.Equal(t, 1, v.Ahead)
}

// With a checkpoint of 1 the next worker has begun with the row on the wire. It is ahead only if that attempt failed.
func TestJudge_ALateRequestMayOvertakeAFailedAttempt(t *testing.T) {
	t.Parallel()
	s := begun(plain, 1)
	s.fault(history.Begin, 1, history.StallReceiver, "", plain)
	s.takeOver(plain)
	s.reply(s.receive(plain, "B", 2), 500)
	s.deliver(plain, "A", 2)
	s.rest(plain, "B", 2)
	v := judge.Judge(s.end().Run)
	require.Empty(t, v.Violations)
	require.Equal(t, 1, v.Ahead)
}

// badStale are late requests just beyond what is allowed.
var badStale = map[string]badHistory{
	"a late request without a fault": {"I8", func() *scene {
		s := lateAhead()
		s.Faults = nil
		return s
	}},
	"a late request further ahead than the checkpoint": {"I6", func() *scene {
		s := superseded()
		s.Deliveries = s.Deliveries[:len(s.Deliveries)-3] // of B
		s.deliver(two, "A", 3)
		s.deliver(two, "B", 2)
		s.deliver(two, "A", 4)
		s.advance(two, 2)
		s.rest(two, "B", 3)
		return s.end()
	}},
	"two rows of one worker were ahead": {"I6", func() *scene {
		s := begun(two, 1)
		s.fault(history.Begin, 1, history.StallReceiver, "", two)
		s.takeOver(two)
		s.reply(s.receive(two, "B", 2), 500)
		s.deliver(two, "A", 2)
		s.deliver(two, "A", 3)
		s.rest(two, "B", 2)
		return s.end()
	}},
	"a late request with a hole before it": {"I3", func() *scene {
		s := begun(two, 1)
		s.fault(history.Begin, 1, history.StallReceiver, "", two)
		s.takeOver(two)
		s.reply(s.receive(two, "B", 2), 500)
		s.deliver(two, "A", 3)
		s.rest(two, "B", 2)
		return s.end()
	}},
	"a late request to a receiver that compares epochs": {"I6", func() *scene {
		s := lateAhead()
		for i := range s.Setting.Processes {
			s.Setting.Processes[i].Fencing = true
		}
		return s
	}},
}
