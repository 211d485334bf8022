package judge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

// letter puts a record aside with its audit row, in one transaction.
func (s *scene) letter(process string, rank int) *history.Letter {
	s.move(process, func(to *history.Standing) { to.Position, to.Sequence = position(rank), int64(rank) })
	s.event(process, "dead_letter")
	s.Letters = append(s.Letters, history.Letter{
		Tx: s.Moves[len(s.Moves)-1].Tx, Process: process, Key: key(rank), Position: position(rank), Hash: hash(rank), Sequence: int64(rank), Attempts: 1,
	})
	return &s.Letters[len(s.Letters)-1]
}

// asideAt2 is tidy with row 1 delivered, and row 2 put aside after it was answered so often.
func asideAt2(statuses ...int) *scene {
	s := begun(tidy, 1)
	for _, status := range statuses {
		s.reply(s.receive(tidy, "A", 2), status)
	}
	s.letter(tidy, 2)
	return s
}

// replayed has row 2 delivered after all, by an operator in an epoch of their own.
func replayed() *scene {
	s := asideAt2(422)
	s.deliver(tidy, "A", 3)
	s.advance(tidy, 3)
	s.takeOver(tidy)
	s.deliver(tidy, "B", 2)
	s.Letters[0].Tx, s.Letters[0].Resolution = "later", "replayed"
	s.takeOver(tidy)
	s.deliver(tidy, "C", 4)
	s.advance(tidy, 4)
	return s.end()
}

// rested delivers what is behind row 2.
func (s *scene) rested() *scene {
	s.rest(tidy, "A", 3)
	return s.end()
}

func TestJudge_GoodLetters(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*scene{"refused": asideAt2(422).rested(), "tried": asideAt2(500, 500).rested()} {
		v := judge.Judge(s.Run)
		require.Empty(t, v.Violations, name)
		require.Equal(t, 1, v.PutAside)
		require.Equal(t, 5*rows-1, v.Delivered)
	}
	v := judge.Judge(replayed().Run)
	require.Empty(t, v.Violations)
	require.Equal(t, 1, v.ReplayedLetters)
	require.Equal(t, 5*rows, v.Delivered)
}

// An acknowledgement that was lost on its way does not keep a record from being put aside.
func TestJudge_AFaultMayLoseTheAcknowledgementOfALetter(t *testing.T) {
	t.Parallel()
	lost := func(faults ...history.Fault) *judge.Verdict {
		s := asideAt2(204, 422).rested()
		s.Faults = faults
		return judge.Judge(s.Run)
	}
	require.NotZero(t, lost().Counts["I10"])
	cut := history.Fault{ID: 1, Phase: history.Begin, Kind: history.CutReceiver, Process: tidy}
	require.Zero(t, lost(cut).Counts["I10"])
}

// A replay may be cut short behind its delivery, as long as it takes: then its letter stays open.
func TestJudge_AFaultMayEndAReplayBehindItsDelivery(t *testing.T) {
	t.Parallel()
	open := func(after time.Duration) int {
		s := replayed()
		s.Letters[0].Resolution = ""
		for _, m := range s.Moves {
			if m.Process == tidy && m.To.Sequence == 2 && m.From.Sequence == 1 {
				s.Letters[0].Tx = m.Tx
			}
		}
		var sent time.Duration
		for _, d := range s.Deliveries {
			if d.Act == history.Receive && d.Process == tidy && d.Key == key(2) {
				sent = d.T
			}
		}
		s.Faults = []history.Fault{{ID: 1, Phase: history.Begin, T: sent + after, Kind: history.Crash}}
		return judge.Judge(s.Run).Counts["I10"]
	}
	require.Zero(t, open(3*time.Second))
	require.NotZero(t, open(history.ReplayTimeout+time.Second))
}

// A fault may keep attempts from arriving. Those at a broker that is away do not count.
func TestJudge_ABrokerThatIsAwayPutsNoRecordAside(t *testing.T) {
	t.Parallel()
	during := func(sink history.SinkKind, kind history.Kind) int {
		s := asideAt2(500).rested()
		for i, p := range s.Setting.Processes {
			if p.Name == tidy {
				s.Setting.Processes[i].Sink = sink
			}
		}
		s.Faults = []history.Fault{{ID: 1, Phase: history.Begin, Kind: kind}}
		return judge.Judge(s.Run).Counts["I10"]
	}
	require.Zero(t, during(history.Webhook, history.CutReceiver))
	require.NotZero(t, during(history.Queue, history.KillBroker))
	require.NotZero(t, during(history.Stream, history.KillNATS))
}

// A process halts over an answer that speaks of its sender, whatever it does with records that are refused.
func TestJudge_AProcessHaltsOverAnAnswerThatSpeaksOfUs(t *testing.T) {
	t.Parallel()
	for _, status := range []int{302, 401, 403, 404, 410} {
		s := begun(tidy, 0)
		s.reply(s.receive(tidy, "A", 1), status)
		s.state(tidy, "halted", "halt")
		s.now += time.Second
		s.state(tidy, "running", "retry")
		s.rest(tidy, "A", 1)
		v := judge.Judge(s.end().Run)
		require.Empty(t, v.Violations, status)
		require.Equal(t, 1, v.Halts)
	}
}

// badLetters are histories in which a record was put aside wrongly, or sent too fast.
var badLetters = map[string]badHistory{
	"a row was passed as if it had been put aside": {"I1", func() *scene {
		s := asideAt2(422).rested()
		s.Letters = nil
		return s
	}},
	"a delivered row was passed as if it had been put aside": {"I1", func() *scene {
		s := begun(tidy, 0)
		s.deliver(tidy, "A", 1)
		s.letter(tidy, 1)
		s.Letters = nil
		s.rest(tidy, "A", 2)
		return s.end()
	}},
	"a letter was replayed and never delivered": {"I1", func() *scene {
		s := asideAt2(422)
		s.Letters[0].Tx, s.Letters[0].Resolution = "later", "replayed"
		return s.rested()
	}},
	"a letter is of no row": {"I2", func() *scene {
		s := asideAt2(422).rested()
		s.Letters[0].Key = "nobody's"
		return s
	}},
	"a row behind a letter is sent before it is put aside": {"I4", func() *scene {
		s := begun(tidy, 0)
		s.reply(s.receive(tidy, "A", 1), 422)
		s.deliver(tidy, "A", 2)
		s.letter(tidy, 1)
		s.advance(tidy, 2)
		return s.rested()
	}},
	"rows behind a letter change places": {"I3", func() *scene {
		s := asideAt2(422)
		s.deliver(tidy, "A", 4)
		s.deliver(tidy, "A", 3)
		s.advance(tidy, 3)
		s.advance(tidy, 4)
		return s.end()
	}},
	"a letter without the move of the cursor": {"I7", func() *scene {
		s := quiet()
		s.letter(tidy, 4)
		s.Moves = s.Moves[:len(s.Moves)-1]
		return s
	}},
	"a letter of another transaction than the move": {"I7", func() *scene {
		s := asideAt2(422).rested()
		s.Letters[0].Tx = "later"
		return s
	}},
	"a letter that begins an epoch": {"I7", func() *scene {
		s := asideAt2(422)
		s.move(tidy, func(to *history.Standing) { to.Position, to.Sequence, to.Epoch = position(3), 3, to.Epoch+1 })
		s.event(tidy, "dead_letter")
		s.Letters = append(s.Letters, history.Letter{Tx: s.Moves[len(s.Moves)-1].Tx, Process: tidy, Key: key(3), Position: position(3), Hash: hash(3), Sequence: 3})
		return s.end()
	}},
	"the contents of a letter were changed": {"I9", func() *scene {
		s := asideAt2(422).rested()
		s.Letters[0].Hash = "other"
		return s
	}},
	"a letter that nobody had refused":          {"I10", func() *scene { return asideAt2().rested() }},
	"a letter over an answer that speaks of us": {"I10", func() *scene { return asideAt2(401).rested() }},
	"a letter over a redirect":                  {"I10", func() *scene { return asideAt2(302).rested() }},
	"a letter that is sent and was discarded": {"I10", func() *scene {
		s := replayed()
		s.Letters[0].Resolution = "discarded"
		return s
	}},
	"a letter that is sent twice by operators": {"I5", func() *scene {
		s := replayed()
		s.at[tidy] = history.Standing{Epoch: 2}
		s.deliver(tidy, "B", 2)
		return s
	}},
	"a letter that was tried too seldom":     {"I10", func() *scene { return asideAt2(500).rested() }},
	"a letter that was acknowledged":         {"I10", func() *scene { return asideAt2(204, 422).rested() }},
	"a letter of a process that should halt": {"I10", func() *scene { s := asideAt2(422).rested(); s.Setting.Processes[4].Letters = false; return s }},
	"faster than the limit":                  {"I13", func() *scene { return hurried(7) }},
	"faster than the breaker": {"I13", func() *scene {
		s := begun(tidy, 0)
		for range 3 {
			s.now += time.Second
			s.reply(s.receive(tidy, "A", 1), 503)
		}
		s.now += 200 * ms
		s.rest(tidy, "A", 1)
		return s.end()
	}},
}

// hurried receives its last row again, so many times at nearly the same moment.
func hurried(times int) *scene {
	s := quiet()
	s.now += time.Second
	for range times {
		s.reply(s.receive(tidy, "A", rows), 204)
		s.now -= 19 * ms
	}
	return s
}

func TestJudge_ALimitLetsAFewOutTogether(t *testing.T) {
	t.Parallel()
	require.Empty(t, judge.Judge(hurried(5).Run).Violations)
}

func TestJudge_ABreakerThatWaits(t *testing.T) {
	t.Parallel()
	s := begun(tidy, 0)
	for range 5 {
		s.now += 300 * ms
		s.reply(s.receive(tidy, "A", 1), 503)
	}
	s.now += 300 * ms
	s.rest(tidy, "A", 1)
	v := judge.Judge(s.end().Run)
	require.Empty(t, v.Violations, fmt.Sprint(v.Counts))
}
