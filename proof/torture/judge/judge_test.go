package judge_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

const (
	plain  = "plain"  // checkpoint 1
	two    = "two"    // checkpoint 2
	fenced = "fenced" // refuses outdated epochs
	exact  = "exact"  // a sql sink
	tidy   = "tidy"   // puts aside what is refused for good; has a limit and a breaker
	ms     = time.Millisecond
)

// scene is a history in the making. Time passes with each entry.
type scene struct {
	*history.Run
	now     time.Duration
	ids     int
	applied int
	at      map[string]history.Standing
}

const rows = 4

func key(rank int) string      { return fmt.Sprint("k", rank) }
func position(rank int) string { return fmt.Sprint("pos", rank) }
func hash(rank int) string     { return fmt.Sprint("hash", rank) }

// stage is a table of four rows and five processes that have not begun.
func stage() *scene {
	s := &scene{Run: &history.Run{}, at: map[string]history.Standing{}}
	s.Setting.Processes = []history.Process{
		{Name: plain, Table: "t", Sink: history.Webhook, Checkpoint: 1},
		{Name: two, Table: "t", Sink: history.Webhook, Checkpoint: 2},
		{Name: fenced, Table: "t", Sink: history.Webhook, Checkpoint: 1, Fencing: true, Signed: true},
		{Name: exact, Table: "t", Sink: history.SQL, Checkpoint: 2},
		{Name: tidy, Table: "t", Sink: history.Webhook, Checkpoint: 1, Letters: true, Attempts: 2, Limit: 50, Breaker: 3, Cooldown: 300 * ms},
	}
	s.Setting.Workers = []string{"A", "B", "C"}
	for rank := 1; rank <= rows; rank++ {
		tx := fmt.Sprint("tx", rank)
		s.Rows = append(s.Rows, history.Row{Table: "t", Position: position(rank), Key: key(rank), Hash: hash(rank)})
		s.Writes = append(s.Writes,
			history.Write{Step: history.Insert, Tx: tx, Table: "t", Key: key(rank), Hash: hash(rank)},
			history.Write{Step: history.Try, Tx: tx}, history.Write{Step: history.Committed, Tx: tx})
	}
	s.Writes = append(s.Writes, history.Write{Step: history.Insert, Tx: "gone", Table: "t", Key: "gone"}, history.Write{Step: history.Aborted, Tx: "gone"})
	for _, p := range s.Setting.Processes {
		s.at[p.Name] = history.Standing{State: "running"}
	}
	return s
}

func (s *scene) tick() time.Duration {
	s.now += 10 * ms
	return s.now
}

func (s *scene) act(d history.Delivery) {
	d.T = s.tick()
	s.Deliveries = append(s.Deliveries, d)
}

// receive is an attempt's arrival; worker A has epoch 1, B 2, and so on.
func (s *scene) receive(process, worker string, rank int) (id int) {
	s.ids++
	s.act(history.Delivery{
		Act: history.Receive, ID: s.ids, Process: process, Worker: worker, Key: key(rank), DedupKey: "dedup-" + key(rank),
		Position: position(rank), Hash: hash(rank), Sequence: int64(rank), Epoch: int64(worker[0]-'A') + 1, Attempt: 1,
	})
	return s.ids
}

func (s *scene) apply(id int) {
	s.applied++
	s.act(history.Delivery{Act: history.Apply, ID: id, N: s.applied})
}

func (s *scene) reply(id, status int) {
	s.act(history.Delivery{Act: history.Reply, ID: id, Status: status})
}

// deliver is an attempt that goes well.
func (s *scene) deliver(process, worker string, rank int) {
	id := s.receive(process, worker, rank)
	s.apply(id)
	s.reply(id, 204)
}

func (s *scene) move(process string, change func(*history.Standing)) {
	m := history.Move{T: s.tick(), Committed: s.now, N: int64(len(s.Moves) + 1), Tx: fmt.Sprint(700 + len(s.Moves)), Process: process, From: s.at[process], To: s.at[process]}
	change(&m.To)
	s.at[process] = m.To
	s.Moves = append(s.Moves, m)
}

func (s *scene) takeOver(process string) {
	s.move(process, func(to *history.Standing) { to.Epoch++ })
}

func (s *scene) advance(process string, rank int) {
	s.move(process, func(to *history.Standing) { to.Position, to.Sequence = position(rank), int64(rank) })
}

// state changes it with an event of the audit, in one transaction.
func (s *scene) state(process, state, kind string) {
	s.move(process, func(to *history.Standing) { to.State = state })
	s.event(process, kind)
}

// event is the audit of the last move.
func (s *scene) event(process, kind string) {
	s.Actions = append(s.Actions, history.Action{Tx: s.Moves[len(s.Moves)-1].Tx, Process: process, Kind: kind, Actor: "somebody"})
}

// seek moves the cursor by hand.
func (s *scene) seek(process string, rank int) {
	s.move(process, func(to *history.Standing) {
		to.Position, to.Sequence, to.Epoch = "", to.Sequence+10_000, to.Epoch+1
		if rank > 0 {
			to.Position = position(rank)
		}
	})
	s.event(process, "seek")
}

func (s *scene) fault(phase history.Phase, id int, kind history.Kind, worker, process string) {
	s.Faults = append(s.Faults, history.Fault{T: s.tick(), Phase: phase, ID: id, Kind: kind, Worker: worker, Process: process})
}

// struck is a fault that ends as soon as it has begun.
func (s *scene) struck(id int, kind history.Kind, worker, process string) {
	s.fault(history.Begin, id, kind, worker, process)
	s.fault(history.Ended, id, kind, worker, process)
}

// whole is a process from its beginning to its end without a fault.
func (s *scene) whole(process string) {
	s.takeOver(process)
	s.rest(process, "A", 1)
}

// rest delivers and advances from a row on.
func (s *scene) rest(process, worker string, from int) {
	for rank := from; rank <= rows; rank++ {
		if process == exact {
			s.Applied = append(s.Applied, history.Applied{N: int64(rank), Process: exact, Key: key(rank), Position: position(rank), Hash: hash(rank), Sequence: int64(rank)})
		} else {
			s.deliver(process, worker, rank)
		}
		s.advance(process, rank)
	}
}

// end looks at all processes as they stand.
func (s *scene) end() *scene {
	for _, p := range s.Setting.Processes {
		at := s.at[p.Name]
		s.Ends = append(s.Ends, history.End{Process: p.Name, Waited: ms, Patience: time.Second, Cursor: at, Status: at, Sessions: 3, Allowed: 8})
	}
	return s
}

// others makes every process but one whole.
func (s *scene) others(but string) *scene {
	for _, p := range s.Setting.Processes {
		if p.Name != but {
			s.whole(p.Name)
		}
	}
	return s
}

// begun has every process but one whole, and worker A of that one has delivered and passed its first rows.
func begun(process string, passed int) *scene {
	s := stage().others(process)
	s.takeOver(process)
	for rank := 1; rank <= passed; rank++ {
		s.deliver(process, "A", rank)
		s.advance(process, rank)
	}
	return s
}

// quiet is a run without a fault.
func quiet() *scene { return stage().others("").end() }

// stormy has the worker of plain killed with row 2 in flight, its answer lost; a poison record; an unknown transaction.
func stormy() *scene {
	s := begun(plain, 1)
	s.apply(s.receive(plain, "A", 2))
	s.struck(1, history.Kill, "A", "")
	s.takeOver(plain)
	s.deliver(plain, "B", 2)
	s.advance(plain, 2)
	s.reply(s.receive(plain, "B", 3), 422)
	s.state(plain, "halted", "halt")
	s.now += time.Second
	s.state(plain, "running", "retry")
	s.move(plain, func(to *history.Standing) { to.Timeline = 1 })
	s.move(plain, func(to *history.Standing) { to.Timeline, to.Epoch = 2, to.Epoch+1_000_100 })
	s.rest(plain, "B", 3)
	s.Writes = append(s.Writes,
		history.Write{Step: history.Insert, Tx: "?", Table: "t", Key: "lost"}, history.Write{Step: history.Try, Tx: "?"}, history.Write{Step: history.Unknown, Tx: "?"})
	return s.end()
}

func TestJudge_GoodHistories(t *testing.T) {
	t.Parallel()
	v := judge.Judge(quiet().Run)
	require.Empty(t, v.Violations)
	require.Equal(t, 5*rows, v.Delivered)
	require.Empty(t, v.Repeats)
	require.Equal(t, 5, v.TakeOvers)

	v = judge.Judge(stormy().Run)
	require.Empty(t, v.Violations)
	require.Equal(t, []judge.Repeat{{Process: plain, Key: key(2), Attempt: v.Repeats[0].Attempt, Cause: 1, Kind: history.Kill}}, v.Repeats)
	require.Equal(t, 1, v.Halts)
	require.Equal(t, []judge.Tally{{Kind: history.Kill, Struck: 1, Repeats: 1}}, v.Faults)
}

// skipped has row 3 refused for good and skipped by an operator.
func skipped() *scene {
	s := begun(plain, 2)
	s.skip(plain, "A", 3)
	s.deliver(plain, "B", 4)
	s.advance(plain, 4)
	return s.end()
}

// skip has a row refused for good and skipped.
func (s *scene) skip(process, worker string, rank int) {
	s.reply(s.receive(process, worker, rank), 422)
	s.state(process, "halted", "halt")
	failed := &s.Moves[len(s.Moves)-1].To
	failed.Failed = position(rank)
	s.at[process] = *failed
	s.move(process, func(to *history.Standing) {
		*to = history.Standing{Position: position(rank), Sequence: int64(rank), Epoch: to.Epoch + 1, State: "running"}
	})
	s.event(process, "skip")
}

// sought is a whole process that an operator sends back to row 1, and once more to the end.
func sought() *scene {
	s := begun(plain, rows)
	s.seek(plain, 1)
	for rank := 2; rank <= 3; rank++ {
		s.deliver(plain, "B", rank)
		s.Deliveries[len(s.Deliveries)-3].Sequence = 10_003 + int64(rank)
		s.move(plain, func(to *history.Standing) { to.Position, to.Sequence = position(rank), 10_003+int64(rank) })
	}
	s.seek(plain, rows)
	return s.end()
}

func TestJudge_OperatorsDecideWhatIsOwed(t *testing.T) {
	t.Parallel()
	v := judge.Judge(skipped().Run)
	require.Empty(t, v.Violations)
	require.Equal(t, 1, v.PassedOver)
	require.Equal(t, 1, v.Actions)

	v = judge.Judge(sought().Run)
	require.Empty(t, v.Violations)
	require.Equal(t, 2, v.Replayed)
	require.Empty(t, v.Repeats)
	require.Equal(t, 5*rows+2, v.Delivered)
	require.Equal(t, 2, v.Actions)
}

// until is stormy up to the point where row 2 of plain was applied by A and not yet passed.
func until(process string) *scene {
	s := begun(process, 1)
	s.apply(s.receive(process, "A", 2))
	return s
}

// again takes over and ends a history that until began: row 2 is applied a second time.
func (s *scene) again(process string) *scene {
	s.takeOver(process)
	s.rest(process, "B", 2)
	return s.end()
}

// badHistory breaks an invariant.
type badHistory struct {
	invariant string
	history   func() *scene
}

// merge panics if a name comes twice: one of the two would not be judged.
func merge(some ...map[string]badHistory) map[string]badHistory {
	all := map[string]badHistory{}
	for _, more := range some {
		for name, b := range more {
			if _, twice := all[name]; twice {
				panic("twice: " + name)
			}
			all[name] = b
		}
	}
	return all
}

// bad are histories each of which breaks one invariant.
var bad = map[string]badHistory{
	"a row was never delivered": {"I1", func() *scene {
		s := begun(exact, 0)
		return s.end()
	}},
	"a row was applied and never acknowledged, and the cursor passed it": {"I1", func() *scene {
		s := quiet()
		s.Deliveries = slices.DeleteFunc(s.Deliveries, func(d history.Delivery) bool { return d.Act == history.Reply && d.ID == rows })
		return s
	}},
	"a committed row is not in the table": {"I1", func() *scene {
		s := quiet()
		s.Writes = append(s.Writes, history.Write{Step: history.Insert, Tx: "x", Table: "t", Key: "x"}, history.Write{Step: history.Committed, Tx: "x"})
		return s
	}},
	"a row was delivered that is not in the table": {"I2", func() *scene {
		s := quiet()
		s.deliver(plain, "A", rows+1)
		return s
	}},
	"a row that was rolled back is in the table": {"I2", func() *scene {
		s := quiet()
		s.Writes[2].Step = history.Aborted
		return s
	}},
	"half of a transaction is in the table": {"I2", func() *scene {
		s := quiet()
		s.Writes[2].Step = history.Unknown
		s.Writes = append(s.Writes, history.Write{Step: history.Insert, Tx: "tx1", Table: "t", Key: "half"})
		return s
	}},
	"first applications change places": {"I3", func() *scene {
		s := begun(exact, 0)
		s.rest(exact, "A", 1)
		s.Applied[1].N, s.Applied[2].N = s.Applied[2].N, s.Applied[1].N
		return s.end()
	}},
	"the next row is sent before the answer": {"I4", func() *scene {
		s := begun(plain, 0)
		first := s.receive(plain, "A", 1)
		s.apply(first)
		second := s.receive(plain, "A", 2)
		s.reply(first, 204)
		s.apply(second)
		s.reply(second, 204)
		s.advance(plain, 1)
		s.advance(plain, 2)
		s.rest(plain, "A", 3)
		return s.end()
	}},
	"the next row is sent behind a refusal": {"I4", func() *scene {
		s := begun(plain, 0)
		s.reply(s.receive(plain, "A", 1), 500)
		s.deliver(plain, "A", 2)
		return s.end()
	}},
	"a duplicate without a fault": {"I5", func() *scene { return until(plain).again(plain) }},
	"a duplicate beside a fault of another worker": {"I5", func() *scene {
		s := until(plain)
		s.struck(1, history.Kill, "C", "")
		return s.again(plain)
	}},
	"a duplicate long after a fault": {"I5", func() *scene {
		s := stage().others(plain)
		s.struck(1, history.Kill, "A", "")
		s.now += time.Minute
		s.takeOver(plain)
		s.apply(s.receive(plain, "A", 1))
		s.takeOver(plain)
		s.rest(plain, "B", 1)
		return s.end()
	}},
	"a duplicate beside a fault that may cause none": {"I5", func() *scene {
		s := until(plain)
		s.struck(1, history.Terminate, "A", "")
		return s.again(plain)
	}},
	"a duplicate beside a fault that met nobody": {"I5", func() *scene {
		s := until(plain)
		s.fault(history.Begin, 1, history.TerminateBackend, "", plain)
		s.fault(history.Missed, 1, history.TerminateBackend, "", plain)
		return s.again(plain)
	}},
	"a duplicate beside a scripted answer to another attempt": {"I5", func() *scene {
		s := until(plain)
		s.struck(1, history.AnswerLie, "", plain)
		return s.again(plain)
	}},
	"more duplicates of one fault than the checkpoint": {"I5", func() *scene {
		s := begun(two, 0)
		for rank := 1; rank <= 3; rank++ {
			s.deliver(two, "A", rank)
		}
		s.struck(1, history.Kill, "A", "")
		s.takeOver(two)
		s.rest(two, "B", 1)
		return s.end()
	}},
	"a sql sink applied a row twice": {"I5", func() *scene {
		s := quiet()
		s.Applied = append(s.Applied, s.Applied[rows-1])
		return s
	}},
	"a fencing receiver applied an outdated epoch": {"I6", func() *scene {
		s := until(fenced)
		s.fault(history.Begin, 1, history.Stop, "A", "")
		s.takeOver(fenced)
		s.deliver(fenced, "B", 2)
		s.apply(s.receive(fenced, "A", 2))
		s.advance(fenced, 2)
		s.rest(fenced, "B", 3)
		return s.end()
	}},
	"the receiver refused the newest epoch": {"I6", func() *scene {
		s := quiet()
		id := s.receive(fenced, "A", rows)
		s.act(history.Delivery{Act: history.Refuse, ID: id})
		return s
	}},
	"the cursor moved back": {"I7", func() *scene {
		s := quiet()
		s.advance(plain, 1)
		return s
	}},
	"the cursor passed more than a checkpoint": {"I7", func() *scene {
		s := begun(plain, 0)
		s.deliver(plain, "A", 1)
		s.deliver(plain, "A", 2)
		s.advance(plain, 2)
		s.rest(plain, "A", 3)
		return s.end()
	}},
	"the cursor moved before the answer": {"I7", func() *scene {
		s := begun(plain, 0)
		id := s.receive(plain, "A", 1)
		s.apply(id)
		s.advance(plain, 1)
		s.reply(id, 204)
		s.rest(plain, "A", 2)
		return s.end()
	}},
	"the epoch fell": {"I7", func() *scene {
		s := quiet()
		s.move(plain, func(to *history.Standing) { to.Epoch-- })
		return s
	}},
	"an epoch was left out": {"I7", func() *scene {
		s := quiet()
		s.move(plain, func(to *history.Standing) { to.Epoch += 2 })
		return s
	}},
	"the sequence is not the count": {"I7", func() *scene {
		s := quiet()
		s.move(plain, func(to *history.Standing) { to.Sequence++ })
		return s
	}},
	"a move that the audit does not show": {"I7", func() *scene {
		s := quiet()
		s.Moves = slices.Delete(s.Moves, 2, 3)
		return s
	}},
	"two workers at once": {"I8", func() *scene {
		s := until(plain)
		s.reply(s.ids, 204)
		s.takeOver(plain)
		s.deliver(plain, "B", 2)
		s.receive(plain, "A", 2)
		s.advance(plain, 2)
		s.rest(plain, "B", 3)
		return s.end()
	}},
	"contents were changed":         {"I9", func() *scene { return quiet().first(func(d *history.Delivery) { d.Hash = "other" }) }},
	"a wrong signature":             {"I9", func() *scene { return quiet().first(func(d *history.Delivery) { d.BadSign = true }) }},
	"a position of another row":     {"I9", func() *scene { return quiet().first(func(d *history.Delivery) { d.Position = position(2) }) }},
	"a sequence with a hole":        {"I9", func() *scene { return quiet().first(func(d *history.Delivery) { d.Sequence++ }) }},
	"another dedup key":             {"I9", func() *scene { return stormy().first(func(d *history.Delivery) { d.DedupKey = "" }) }},
	"the table holds other content": {"I9", func() *scene { s := quiet(); s.Writes[0].Hash = "other"; return s }},
	"sent while halted": {"I10", func() *scene {
		s := begun(plain, 0)
		s.reply(s.receive(plain, "A", 1), 422)
		s.state(plain, "halted", "halt")
		s.now += time.Second
		s.reply(s.receive(plain, "A", 1), 422)
		s.state(plain, "running", "retry")
		s.rest(plain, "A", 1)
		return s.end()
	}},
	"sent while paused": {"I10", func() *scene {
		s := begun(plain, 0)
		s.state(plain, "paused", "pause")
		s.now += time.Second
		s.deliver(plain, "A", 1)
		s.state(plain, "running", "resume")
		s.advance(plain, 1)
		s.rest(plain, "A", 2)
		return s.end()
	}},
	"halted without a refusal": {"I10", func() *scene {
		s := quiet()
		s.state(plain, "halted", "halt")
		s.state(plain, "running", "retry")
		return s
	}},
	"an operator's skip that the audit does not show": {"I7", func() *scene {
		s := skipped()
		s.Actions = s.Actions[:1]
		return s
	}},
	"a pause that the audit does not show": {"I10", func() *scene {
		s := quiet()
		s.state(plain, "paused", "configure")
		s.state(plain, "running", "resume")
		return s
	}},
	"a pause that is only in the audit": {"I10", func() *scene {
		s := quiet()
		s.Actions = append(s.Actions, history.Action{Tx: "none", Process: plain, Kind: "pause"})
		return s
	}},
	"a skip of another record than the failing one": {"I10", func() *scene {
		s := skipped()
		s.Moves[len(s.Moves)-2].From.Failed = position(1)
		return s
	}},
	"a seek that uses numbers again": {"I10", func() *scene {
		s := begun(plain, rows)
		s.seek(plain, 2)
		s.Moves[len(s.Moves)-1].To.Sequence -= 10_000
		return s.end()
	}},
	"a row behind a seek was never delivered": {"I1", func() *scene {
		s := begun(plain, rows)
		s.seek(plain, 2)
		return s.end()
	}},
	"it did not catch up": {"I11", func() *scene {
		s := quiet()
		s.Ends[0].Cursor.Position = position(rows - 1)
		s.Ends[0].Status = s.Ends[0].Cursor
		return s
	}},
	"it stood still":             {"I11", func() *scene { s := quiet(); s.Ends[0].Stood = time.Hour; return s }},
	"sessions were left":         {"I11", func() *scene { s := quiet(); s.Ends[0].Sessions = 9; return s }},
	"nobody looked at the end":   {"I11", func() *scene { s := quiet(); s.Ends = s.Ends[1:]; return s }},
	"status counts another lag":  {"I12", func() *scene { s := quiet(); s.Ends[0].Lag = 1; return s }},
	"status says another epoch":  {"I12", func() *scene { s := quiet(); s.Ends[0].Status.Epoch++; return s }},
	"status counts less records": {"I12", func() *scene { s := quiet(); s.Ends[0].Status.Sequence--; return s }},
}

// first changes the first attempt at the receiver.
func (s *scene) first(change func(*history.Delivery)) *scene {
	change(&s.Deliveries[0])
	return s
}

func TestJudge_FindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{}
	for name, b := range merge(bad, badAnswers, badLetters, badStale, badSparse, badOnce, badCells, badPromotions, badQueues, badStreams, badKept) {
		t.Run(name, func(t *testing.T) {
			v := judge.Judge(b.history().Run)
			require.NotZero(t, v.Counts[b.invariant], "%v", v.Violations)
			require.False(t, v.Good())
		})
		broken[b.invariant] = true
	}
	for i := range 17 {
		require.Contains(t, broken, fmt.Sprint("I", i+1))
	}
}

// A fault excuses one row of a process with a checkpoint of 1, however often that row is repeated.
func TestJudge_AFaultExcusesItsRowAgainAndAgain(t *testing.T) {
	t.Parallel()
	s := until(plain)
	s.fault(history.Begin, 1, history.StallReceiver, "", plain)
	s.apply(s.receive(plain, "A", 2))
	s.fault(history.Ended, 1, history.StallReceiver, "", plain)
	s.apply(s.receive(plain, "A", 2))
	s.rest(plain, "A", 2)
	v := judge.Judge(s.end().Run)
	require.Empty(t, v.Violations)
	require.Len(t, v.Repeats, 3)
}

// A scripted answer is the cause of the repetition of its own attempt, whatever else goes on.
func TestJudge_TheScriptedAnswerComesFirst(t *testing.T) {
	t.Parallel()
	s := begun(plain, 0)
	s.fault(history.Begin, 1, history.StallReceiver, "", plain)
	s.fault(history.Begin, 2, history.AnswerLie, "", plain)
	id := s.receive(plain, "A", 1)
	s.Deliveries[len(s.Deliveries)-1].Fault = 2
	s.apply(id)
	s.reply(id, 500)
	s.fault(history.Ended, 2, history.AnswerLie, "", plain)
	s.fault(history.Ended, 1, history.StallReceiver, "", plain)
	s.rest(plain, "A", 1)
	v := judge.Judge(s.end().Run)
	require.Empty(t, v.Violations)
	require.Equal(t, 2, v.Repeats[0].Cause)
}
