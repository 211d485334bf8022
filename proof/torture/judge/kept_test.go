package judge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

// keptRow is a process up to row 2, which A delivers so often while a trigger keeps the row as it is.
func keptRow(deliveries int) *scene {
	s := begun(plain, 1)
	s.fault(history.Begin, 1, history.KeptAdvance, "", plain)
	for range deliveries {
		s.deliver(plain, "A", 2)
	}
	s.fault(history.Ended, 1, history.KeptAdvance, "", plain)
	return s
}

func TestJudge_AKeptRowExplainsOneRepeatByTheNextWorker(t *testing.T) {
	t.Parallel()
	v := judge.Judge(keptRow(1).again(plain).Run)
	require.Empty(t, v.Violations)
	require.Equal(t, []judge.Tally{{Kind: history.KeptAdvance, Struck: 1, Repeats: 1}}, v.Faults)

	s := keptRow(1)
	s.advance(plain, 2)
	s.rest(plain, "A", 3)
	require.Empty(t, judge.Judge(s.end().Run).Violations)
}

// The worker gave up the first attempt, and both arrive when the link is not stalled any more.
func TestJudge_AStalledLinkExplainsARepeatBesideAKeptRow(t *testing.T) {
	t.Parallel()
	s := begun(plain, 1)
	s.fault(history.Begin, 7, history.StallReceiver, "", plain)
	s.fault(history.Begin, 1, history.KeptAdvance, "", plain)
	s.fault(history.Ended, 7, history.StallReceiver, "", plain)
	s.deliver(plain, "A", 2)
	s.deliver(plain, "A", 2)
	s.fault(history.Ended, 1, history.KeptAdvance, "", plain)
	s.advance(plain, 2)
	s.rest(plain, "A", 3)
	require.Empty(t, judge.Judge(s.end().Run).Violations)
}

// badKept repeat rows for which a kept row is no reason.
var badKept = map[string]badHistory{
	"kept row: by the worker whose advance it was": {"I5", func() *scene {
		s := keptRow(2)
		s.advance(plain, 2)
		s.rest(plain, "A", 3)
		return s.end()
	}},
	"kept row: by a third worker": {"I5", func() *scene {
		s := keptRow(1)
		s.takeOver(plain)
		s.deliver(plain, "B", 2)
		s.takeOver(plain)
		s.rest(plain, "C", 2)
		return s.end()
	}},
	"kept row: by that worker, soon after another fault": {"I5", func() *scene {
		s := stage().others(plain)
		s.struck(7, history.CutDatabase, "A", "")
		s.takeOver(plain)
		s.deliver(plain, "A", 1)
		s.advance(plain, 1)
		s.fault(history.Begin, 1, history.KeptAdvance, "", plain)
		s.deliver(plain, "A", 2)
		s.deliver(plain, "A", 2)
		s.fault(history.Ended, 1, history.KeptAdvance, "", plain)
		s.advance(plain, 2)
		s.rest(plain, "A", 3)
		return s.end()
	}},
}
