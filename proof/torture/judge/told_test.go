package judge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

// tell is a true answer of status, or of a worker's metrics.
func (s *scene) tell(worker, process string) *history.Told {
	at := s.at[process]
	t := history.Told{From: s.tick(), T: s.tick(), Worker: worker, Process: process, At: at, Lag: rows - at.Sequence}
	if worker != "" {
		t.At, t.Lag = history.Standing{Sequence: at.Sequence, Epoch: at.Epoch, State: at.State}, -1
	} else if at.State != "running" {
		t.Hold = at.State
	}
	s.Told = append(s.Told, t)
	return &s.Told[len(s.Told)-1]
}

// watched has plain halted for twenty seconds and paused for one; status tells the former at once, metrics after ten seconds.
func watched() *scene {
	s := begun(plain, 1)
	s.reply(s.receive(plain, "A", 2), 422)
	s.state(plain, "halted", "halt")
	s.tell("", plain)
	s.now += 10 * time.Second
	s.tell("B", plain)
	s.now += 10 * time.Second
	s.state(plain, "running", "retry")
	s.state(plain, "paused", "pause")
	s.tell("", plain)
	s.now += time.Second
	s.state(plain, "running", "resume")
	s.rest(plain, "A", 2)
	s.tell("", plain)
	return s.end()
}

// held is quiet, with a transaction that keeps rows back, a stranger who has locked the row, and an answer during each.
func held() *scene {
	s := begun(plain, 0)
	began := s.now
	t := s.tell("", plain)
	t.Hold, t.HeldBack = "writer", 1
	s.Holds = append(s.Holds, history.Hold{From: began, To: s.tick(), Kind: history.HoldsTable, Table: "t"})
	began = s.now
	s.tell("", plain).Hold = "locked"
	s.Holds = append(s.Holds, history.Hold{From: began, To: s.tick(), Kind: history.HoldsRow, Process: plain})
	s.rest(plain, "A", 1)
	return s.end()
}

func TestJudge_GoodAnswers(t *testing.T) {
	t.Parallel()
	v := judge.Judge(watched().Run)
	require.Empty(t, v.Violations)
	require.Equal(t, 4, v.Told)
	require.Equal(t, 2, v.ToldByStatus)
	require.Equal(t, 1, v.ToldByMetrics)

	v = judge.Judge(held().Run)
	require.Empty(t, v.Violations)
	require.Equal(t, 2, v.Told)
}

// A writer holds up nothing that a worker delivers: status names none while a worker has the row, or the cursor moves.
func TestJudge_NoWriterIsNamedWhileAWorkerDelivers(t *testing.T) {
	t.Parallel()
	s := held()
	s.Told[0].Hold, s.Told[0].HeldBack, s.Told[0].Leased = "", 0, true
	require.Empty(t, judge.Judge(s.Run).Violations)

	s = begun(plain, 0)
	began := s.now
	answer := s.tell("", plain)
	s.rest(plain, "A", 1)
	answer.T = s.tick()
	s.Holds = append(s.Holds, history.Hold{From: began, To: s.tick(), Kind: history.HoldsTable, Table: "t"})
	require.Empty(t, judge.Judge(s.end().Run).Violations)
}

// What a change of the row takes to be seen is no lie, nor is what was true when the question was asked.
func TestJudge_AnAnswerMayBeOfAnyMomentBehindItsQuestion(t *testing.T) {
	t.Parallel()
	s := begun(plain, 0)
	answer := s.tell("", plain)
	s.rest(plain, "A", 1)
	answer.T = s.tick()
	require.Empty(t, judge.Judge(s.end().Run).Violations)
}

// A lag is that of its time: rows that are committed later are not among it, and need not be while they are.
func TestJudge_ALagIsOfItsTime(t *testing.T) {
	t.Parallel()
	s := begun(plain, 0)
	s.tell("", plain).Lag = rows - 1
	began := s.tick()
	s.tell("", plain).Lag = rows - 1
	s.tell("", plain)
	for i, w := range s.Writes {
		if w.Tx == fmt.Sprint("tx", rows) {
			s.Writes[i].T = began
		}
	}
	s.Writes[3*rows-1].T = s.tick() // its commit
	s.tell("", plain)
	s.rest(plain, "A", 1)
	require.Empty(t, judge.Judge(s.end().Run).Violations)
}

// Nobody is told while the server is away, and by a worker not while that is harmed.
func TestJudge_WhoIsHarmedHasMoreTimeToTell(t *testing.T) {
	t.Parallel()
	s := watched()
	s.Told = s.Told[:1]
	require.NotZero(t, judge.Judge(s.Run).Counts["I10"])
	halt := s.Moves[len(s.Moves)-8].Committed
	for i, worker := range s.Setting.Workers {
		s.Faults = append(s.Faults,
			history.Fault{T: halt, Phase: history.Begin, ID: i + 1, Kind: history.Stop, Worker: worker},
			history.Fault{T: halt + 10*time.Second, Phase: history.Ended, ID: i + 1, Kind: history.Stop, Worker: worker})
	}
	require.Empty(t, judge.Judge(s.Run).Violations)
	s.Told = nil
	require.NotZero(t, judge.Judge(s.Run).Counts["I10"], "status asks the server")
	s.Faults = append(s.Faults[:0],
		history.Fault{T: halt, Phase: history.Begin, ID: 1, Kind: history.Promote},
		history.Fault{T: halt + 10*time.Second, Phase: history.Ended, ID: 1, Kind: history.Promote})
	require.Empty(t, judge.Judge(s.Run).Violations)
}

// badAnswers are histories in which somebody was not told the truth, or not in time.
var badAnswers = map[string]badHistory{
	"status did not tell of a halt": {"I10", func() *scene {
		s := watched()
		s.Told = s.Told[1:]
		return s
	}},
	"status told of a halt too late": {"I10", func() *scene {
		s := watched()
		s.Told[0].T += 16 * time.Second
		return s
	}},
	"no metrics told of a halt": {"I10", func() *scene {
		s := watched()
		s.Told = append(s.Told[:1], s.Told[2:]...)
		return s
	}},
	"metrics told of a halt too late": {"I10", func() *scene {
		s := watched()
		s.Told[1].From, s.Told[1].T = s.Told[1].From+9*time.Second, s.Told[1].T+9*time.Second
		return s
	}},
	"status says that it runs while it is halted": {"I10", func() *scene {
		s := watched()
		s.Told = append(s.Told, s.Told[1])
		lie := &s.Told[len(s.Told)-1]
		lie.At.State = "running"
		return s
	}},
	"metrics say that it is halted when it is not": {"I10", func() *scene {
		s := quiet()
		s.tell("A", plain).At.State = "halted"
		return s
	}},
	"status does not name a halt": {"I10", func() *scene {
		s := watched()
		s.Told[0].Hold = ""
		return s
	}},
	"status does not name who has locked the row": {"I10", func() *scene {
		s := held()
		s.Told[1].Hold = ""
		return s
	}},
	"status does not name a transaction that keeps rows back": {"I10", func() *scene {
		s := held()
		s.Told[0].HeldBack = 0
		return s
	}},
	"status names no writer, and the cursor had moved before it was asked": {"I10", func() *scene {
		s := begun(plain, 1)
		s.now += 10 * time.Millisecond
		began := s.now
		s.tell("", plain)
		s.Holds = append(s.Holds, history.Hold{From: began, To: s.tick(), Kind: history.HoldsTable, Table: "t"})
		s.now += 10 * time.Millisecond
		s.rest(plain, "A", 2)
		return s.end()
	}},
	"status names a writer and not that it holds anything up, and nothing was delivered": {"I10", func() *scene {
		s := held()
		s.Told[0].Hold = ""
		return s
	}},
	"status does not name a record that fails": {"I10", func() *scene {
		s := begun(plain, 0)
		s.reply(s.receive(plain, "A", 1), 500)
		s.move(plain, func(to *history.Standing) { to.Failed = position(1) })
		s.tell("", plain)
		s.move(plain, func(to *history.Standing) { to.Failed = "" })
		s.rest(plain, "A", 1)
		return s.end()
	}},
	"status keeps to an old position": {"I12", func() *scene {
		s := quiet()
		s.now += time.Minute
		t := s.tell("", plain)
		t.At.Position, t.At.Sequence, t.Lag = position(3), 3, 1
		return s
	}},
	"status says another position": {"I12", func() *scene {
		s := quiet()
		t := s.tell("", plain)
		t.At.Position, t.Lag = position(3), 1
		return s
	}},
	"metrics keep to an old sequence": {"I12", func() *scene {
		s := quiet()
		s.now += time.Minute
		s.tell("A", plain).At.Sequence = 3
		return s
	}},
	"metrics say another epoch": {"I12", func() *scene {
		s := quiet()
		s.tell("A", plain).At.Epoch++
		return s
	}},
	"status keeps a row back from the lag": {"I12", func() *scene {
		s := watched()
		s.Told[0].Lag--
		return s
	}},
	"status makes up a lag": {"I12", func() *scene {
		s := quiet()
		s.tell("", plain).Lag = 1
		return s
	}},
}
