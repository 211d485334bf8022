package plan

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// Fault is one line of the schedule.
type Fault struct {
	// ID counts from 1, in the order of time.
	ID   int
	Kind history.Kind
	At   time.Duration
	// For is how long it lasts: how long a worker stays stopped, a link stalled, a row locked. A fault that needs the
	// victim's next move waits for it no longer than that.
	For time.Duration
	// Worker, Process and Table are the victim's; those that do not apply are "".
	Worker, Process, Table string
	// Broker is the victim, by the sink of those that publish to it.
	Broker history.SinkKind
	// Victim names one that is none of these.
	Victim string
	// Choice decides what the kind leaves open.
	Choice uint64
}

// Shape is who is there to be harmed.
type Shape struct {
	Workers   []string
	Processes []history.Process
	Tables    []string
	// Faults befall a process beside those of its sink, by its name.
	Faults map[string][]Chance
	// Tracks are those of further victims.
	Tracks []Track
}

// Track is one victim's sequence of faults.
type Track struct {
	// Victim is the fault to be: who it befalls.
	Victim Fault
	Kinds  []Chance
	// Min and Max are the pause between two of them.
	Min, Max time.Duration
}

// Chance of a kind, relative to the others of its track, and how long it lasts.
type Chance struct {
	Weight   int
	Kind     history.Kind
	Min, Max time.Duration
}

// start is when the first faults may come: the workers are up by then.
const start = time.Second

// Make returns the faults of a run, in the order of time.
func Make(seed uint64, length time.Duration, shape Shape) []Fault {
	p := planner{seed: seed, length: length}
	p.server()
	for _, worker := range shape.Workers {
		p.track(workerFaults, pause{300 * time.Millisecond, 2 * time.Second}, Fault{Worker: worker})
	}
	for _, process := range shape.Processes {
		p.track(slices.Concat(processFaults(process), shape.Faults[process.Name]), pause{200 * time.Millisecond, 5 * time.Second}, Fault{Process: process.Name})
	}
	p.track(rabbitFaults, pause{8 * time.Second, 20 * time.Second}, Fault{Broker: history.Queue})
	p.track(natsFaults, pause{5 * time.Second, 15 * time.Second}, Fault{Broker: history.Stream})
	for _, table := range shape.Tables {
		p.track(producerFaults, pause{3 * time.Second, 12 * time.Second}, Fault{Table: table})
	}
	for _, t := range shape.Tracks {
		p.track(t.Kinds, pause{t.Min, t.Max}, t.Victim)
	}
	slices.SortStableFunc(p.faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	for i := range p.faults {
		p.faults[i].ID = i + 1
	}
	return p.faults
}

func processFaults(p history.Process) []Chance {
	switch {
	case p.Sink == history.SQL:
		return sqlFaults
	case p.Sink == history.Queue, p.Sink == history.Stream:
		return publisherFaults
	case p.Sink == history.Remote: // a seek while the target is ahead of the cursor is refused, and waits for an operator
		return slices.DeleteFunc(slices.Clone(publisherFaults), func(c Chance) bool {
			return c.Kind == history.OperatorBack || c.Kind == history.OperatorForward
		})
	case p.Letters:
		return slices.Concat(webhookFaults, letterFaults)
	default:
		return slices.Concat(webhookFaults, haltFaults)
	}
}

// pause between two faults of a track: at least and at most.
type pause struct{ min, max time.Duration }

// A worker loses its leases when it is away for five seconds, and the server frees their rows after ten: half of the
// long faults go beyond that.
var (
	workerFaults = []Chance{
		{4, history.Kill, 0, 300 * time.Millisecond},
		{3, history.Terminate, 0, 300 * time.Millisecond},
		{3, history.Stop, 200 * time.Millisecond, 3 * time.Second},
		{1, history.Stop, 6 * time.Second, 14 * time.Second},
		{5, history.CutDatabase, 0, 0},
		{2, history.StallDatabase, 200 * time.Millisecond, 3 * time.Second},
		{1, history.StallDatabase, 5 * time.Second, 13 * time.Second},
		{3, history.TearToDatabase, time.Second, time.Second},
		{3, history.TearFromDatabase, time.Second, time.Second},
	}
	webhookFaults = []Chance{
		{2, history.AnswerLate, 3 * time.Second, 3 * time.Second},
		{2, history.AnswerNever, 3 * time.Second, 3 * time.Second},
		{2, history.AnswerMute, 3 * time.Second, 3 * time.Second},
		{3, history.AnswerError, 3 * time.Second, 3 * time.Second},
		{3, history.AnswerLie, 3 * time.Second, 3 * time.Second},
		{2, history.AnswerBusy, 3 * time.Second, 3 * time.Second},
		{3, history.AnswerReset, 3 * time.Second, 3 * time.Second},
		{2, history.Outage, 500 * time.Millisecond, 3 * time.Second},
		{2, history.OperatorPause, 100 * time.Millisecond, 1500 * time.Millisecond},
		{1, history.OperatorBack, 0, 0},
		{1, history.OperatorForward, 0, 0},
		{3, history.CutReceiver, 0, 0},
		{2, history.StallReceiver, 300 * time.Millisecond, 3 * time.Second},
		{2, history.TearToReceiver, 3 * time.Second, 3 * time.Second},
		{2, history.TearFromReceiver, 3 * time.Second, 3 * time.Second},
		{2, history.StealLock, 100 * time.Millisecond, 2 * time.Second},
		{1, history.StealLock, 4 * time.Second, 7 * time.Second},
		{4, history.TerminateBackend, 1500 * time.Millisecond, 1500 * time.Millisecond},
	}
	// Of processes that halt at what is refused for good. Those that watch are given time to notice one.
	haltFaults = []Chance{
		{2, history.AnswerPoison, 3 * time.Second, 3 * time.Second},
		{1, history.AnswerRedirect, 3 * time.Second, 3 * time.Second},
		{2, history.OperatorSkip, 3 * time.Second, 3 * time.Second},
		{2, history.AnswerUnnoticed, 17 * time.Second, 20 * time.Second},
	}
	// Of processes that put it aside.
	letterFaults = []Chance{
		{4, history.AnswerAside, 3 * time.Second, 3 * time.Second},
		{3, history.OperatorReplay, 3 * time.Second, 3 * time.Second},
	}
	sqlFaults = []Chance{
		{2, history.StealLock, 100 * time.Millisecond, 2 * time.Second},
		{1, history.StealLock, 4 * time.Second, 7 * time.Second},
		{3, history.LockSinkTable, 100 * time.Millisecond, 2 * time.Second},
		{4, history.TerminateBackend, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{2, history.OperatorPause, 100 * time.Millisecond, 1500 * time.Millisecond},
		{1, history.OperatorBack, 0, 0},
		{1, history.OperatorForward, 0, 0},
	}
	publisherFaults = []Chance{
		{3, history.CutReceiver, 0, 0},
		{2, history.StallReceiver, 300 * time.Millisecond, 3 * time.Second},
		{2, history.TearToReceiver, 3 * time.Second, 3 * time.Second},
		{2, history.TearFromReceiver, 3 * time.Second, 3 * time.Second},
		{2, history.StealLock, 100 * time.Millisecond, 2 * time.Second},
		{4, history.TerminateBackend, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{2, history.OperatorPause, 100 * time.Millisecond, 1500 * time.Millisecond},
		{1, history.OperatorBack, 0, 0},
		{1, history.OperatorForward, 0, 0},
	}
	rabbitFaults   = []Chance{{1, history.KillBroker, 0, 2 * time.Second}}
	natsFaults     = []Chance{{1, history.KillNATS, 0, 2 * time.Second}}
	producerFaults = []Chance{
		{1, history.LongProducer, 1 * time.Second, 6 * time.Second},
		{1, history.ForgottenPrepared, 1 * time.Second, 6 * time.Second},
	}
)

type planner struct {
	seed   uint64
	length time.Duration
	tracks uint64
	faults []Fault
}

// random is another one for each track, so that a victim more or less changes nothing for the others.
func (p *planner) random() *rand.Rand {
	p.tracks++
	return rand.New(rand.NewPCG(p.seed, p.tracks))
}

// track fills the run with faults of one victim.
func (p *planner) track(kinds []Chance, between pause, victim Fault) {
	random := p.random()
	at := start
	for {
		at += within(random, between.min, between.max)
		f := victim
		c := choose(random, kinds)
		f.Kind, f.At, f.For, f.Choice = c.Kind, at, within(random, c.Min, c.Max), random.Uint64()
		if f.At > p.length {
			return
		}
		if f.At+f.For <= p.length { // else another one may fit
			p.faults = append(p.faults, f)
			at += f.For
		}
	}
}

const (
	promotionInterval = 3 * time.Minute
	shortestPromotion = 20 * time.Second // run with one
)

// server crashes it every now and then; in the middle of every three minutes its standby is promoted instead.
func (p *planner) server() {
	random := p.random()
	stretches := int(p.length/promotionInterval) + 1
	stretch := p.length / time.Duration(stretches)
	for i := range stretches {
		from := time.Duration(i) * stretch
		promotion := Fault{Kind: history.Promote, At: from + stretch/2, For: 3 * time.Second, Choice: random.Uint64()}
		if stretch < shortestPromotion {
			promotion.At = from + stretch // none
		} else {
			p.faults = append(p.faults, promotion)
		}
		p.crashes(random, from+start, promotion.At)
		p.crashes(random, promotion.At+promotion.For+10*time.Second, from+stretch)
	}
}

func (p *planner) crashes(random *rand.Rand, from, to time.Duration) {
	const lasts = 2 * time.Second
	for {
		from += within(random, 5*time.Second, 20*time.Second)
		if from+lasts > to {
			return
		}
		p.faults = append(p.faults, Fault{Kind: history.Crash, At: from, For: lasts, Choice: random.Uint64()})
		from += lasts
	}
}

func within(random *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(random.Int64N(int64(to-from)+1))
}

func choose(random *rand.Rand, kinds []Chance) Chance {
	sum := 0
	for _, c := range kinds {
		sum += c.Weight
	}
	n := random.IntN(sum)
	for _, c := range kinds {
		if n -= c.Weight; n < 0 {
			return c
		}
	}
	panic("unreachable: n is below the sum")
}
