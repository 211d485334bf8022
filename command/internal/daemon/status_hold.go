package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Hold is a reason that holds delivery up, and what to do about it.
type Hold struct {
	Kind HoldKind
	// Text is the reason in one line.
	Text string
	// Next is what to do about it; "" if Text has it, or if there is nothing to do.
	Next string
	// SQL goes with Next, which ends before it; "" if there is none to run at once.
	SQL string
}

// String puts all of it into one line.
func (h Hold) String() string { return withNext(h.Text, h.Next, h.SQL) }

// withNext puts a problem and the next step into one sentence.
func withNext(problem, next, sql string) string {
	switch {
	case next == "":
		return problem
	case sql == "":
		return problem + "; next: " + next
	default:
		return problem + "; next: " + next + ": " + sql
	}
}

// lockedBy is the hold of a session that has a lock.
func lockedBy(l cursor.Locker, format string, args ...any) *Hold {
	next, sql := l.Step()
	return &Hold{Kind: HoldLocked, Text: fmt.Sprintf(format, args...), Next: next, SQL: sql}
}

// HoldKind is the kind of reason that can hold delivery up.
type HoldKind string

// The kinds of a Hold. If several apply, the first in this list counts.
const (
	HoldPaused   HoldKind = "paused"    // an operator paused it
	HoldHalted   HoldKind = "halted"    // a record failed for good
	HoldLocked   HoldKind = "locked"    // a stranger, or a worker without its network, has a lock on which delivery waits
	HoldFailing  HoldKind = "failing"   // a record is tried again and again
	HoldSink     HoldKind = "sink"      // the receiver is slow
	HoldFuture   HoldKind = "future"    // the next record is stamped ahead of the database's clock
	HoldWriter   HoldKind = "writer"    // a transaction may still insert before the records that wait
	HoldNobody   HoldKind = "no_worker" // no worker runs the process
	HoldHidden   HoldKind = "hidden"    // a worker has held the row for long, and why is hidden from this role
	HoldPromoted HoldKind = "promoted"  // a standby was promoted, and workers may still deliver from the old primary; comes beside another hold
)

const (
	// longCall is how long a sink call goes on before status names it.
	longCall = 5 * time.Second
	// longWait is how long a record waits, beyond poll and latency, before status assumes that no worker delivers.
	longWait = 10 * time.Second
	// longAhead is how far ahead of the clock a stamp must be to be more than rounding.
	longAhead = time.Second
	// pauseLookBack is how many of the last events are searched for a pause.
	pauseLookBack = 100
)

// hold finds the reason that holds a process up; nil if there is none, as far as is known.
func (s Status) hold() *Hold {
	stranger := slices.IndexFunc(s.lockers, func(l cursor.Locker) bool { return !l.Worker() })
	torn := slices.IndexFunc(s.lockers, func(l cursor.Locker) bool { return l.Worker() && l.Torn() })
	lease := slices.IndexFunc(s.lockers, longLease)
	switch {
	case s.New:
		return nil
	case s.State == cursor.Paused && s.Failure != nil && s.Failure.OfServer():
		return &Hold{HoldPaused, fmt.Sprintf("paused%s, and `resume` is refused: %s", s.pausedBy(), visible.Line(s.Failure.Error)), "", ""}
	case s.State == cursor.Paused:
		return &Hold{HoldPaused, "paused" + s.pausedBy(), fmt.Sprintf("`ordered-dispatcher resume %s`", visible.Shell(s.Process)), ""}
	case s.State == cursor.Halted:
		return s.halted()
	case stranger >= 0:
		l := s.lockers[stranger]
		return lockedBy(l, "the cursor's row is locked by %s: no worker can deliver", visible.Line(l.String()))
	case s.deserted && len(s.strangers) > 0 && s.strangers[0].Certain:
		l := s.strangers[0]
		return lockedBy(l, "records wait, and %s has locked the cursor table: no worker can deliver", visible.Line(l.String()))
	case s.deserted && len(s.strangers) > 0 && s.live:
		l := s.strangers[0]
		h := lockedBy(l, "records wait, and no worker holds the cursor's row, although one is there: %s %s", visible.Line(l.String()), l.Locks())
		h.Next = "read the worker's log. If the row is locked: " + h.Next
		return h
	case torn >= 0:
		l := s.lockers[torn]
		return lockedBy(l, "the cursor's row is locked by %s", visible.Line(l.String()))
	case len(s.blockers) > 0:
		l := s.blockers[0]
		return lockedBy(l, "%s waits for %s: nothing is written down or delivered", s.waiter(), l.Lock())
	case s.operator != nil:
		next, sql := adviceOn(*s.operator)
		return &Hold{HoldLocked, fmt.Sprintf("the cursor's row is locked by %s: no worker can deliver", operating(*s.operator)), next, sql}
	case s.Failure != nil && s.absent: // before the next attempt, which no worker makes
		return s.unwatched()
	case s.Failure != nil && s.deserted:
		return s.untried()
	case s.Failure != nil:
		return &Hold{HoldFailing, s.failing(), "", ""}
	case lease >= 0 && s.lockers[lease].Replicating:
		return &Hold{HoldLocked, visible.Line(s.lockers[lease].String()) + ": " + cursor.WhileReplicating, cursor.KeepReplicating, ""}
	case lease >= 0 && slowDatabase(s.lockers[lease]):
		return &Hold{HoldLocked, fmt.Sprintf("its worker %s waits for the database, and not for the receiver: a command of %s has been running for %s",
			visible.Line(s.Holder), visible.Line(s.lockers[lease].String()), round(s.lockers[lease].Running)), "see what it waits for in pg_stat_activity", ""}
	case lease >= 0 && s.bounds.longCall(s.lockers[lease]):
		return &Hold{HoldSink, fmt.Sprintf("a call of the receiver has been running since %s, by worker %s",
			moment(s.bounds.calledAt(s.lockers[lease])), visible.Line(s.Holder)), "see what the receiver does; its time-out ends the call. " + pinned(s.bounds), ""}
	case s.veiled != nil && s.lasts():
		problem, next := s.hidden()
		return &Hold{HoldHidden, problem, next, ""}
	case s.Lag != nil && s.Lag.Ahead > longAhead:
		return &Hold{HoldFuture, fmt.Sprintf("the next record is stamped %s, which is %s ahead of the database's clock: it waits until then",
			moment(s.Lag.Stamp), round(s.Lag.Ahead)), "if the stamp is wrong, run the UPDATE that `ordered-dispatcher doctor` prints", ""}
	case s.absent: // before a writer, which holds up only records that a worker reads
		return s.unwatched()
	case len(s.Holding) > 0 && !s.moving:
		h := s.heldBy("records", s.Holding[0])
		return &Hold{HoldWriter, h.problem, h.next, h.sql}
	case s.deserted:
		return s.nobody()
	default:
		return nil
	}
}

// longLease reports whether a worker has held its lock for long without a checkpoint.
func longLease(l cursor.Locker) bool { return l.Worker() && !l.Operator() && l.Age > longCall }

// waiter names the session that has the row and waits for a lock.
func (s Status) waiter() string {
	if s.operator != nil {
		return operating(*s.operator)
	}
	return "its worker " + visible.Line(s.Holder)
}

// operating names an operator's session.
func operating(l cursor.Locker) string { return "an operator's session, " + visible.Line(l.String()) }

// slowDatabase reports whether the database takes most, or much, of a worker's time.
func slowDatabase(l cursor.Locker) bool { return l.Running > min(l.Age/2, longCall) }

// pausedBy names the person who paused the process, if the audit has it.
func (s Status) pausedBy() string {
	if s.paused == nil {
		return ", by hand"
	}
	text := fmt.Sprintf(" by %s since %s", visible.Line(s.paused.Actor), moment(s.paused.At))
	if s.paused.Reason != "" {
		text += fmt.Sprintf(": %q", visible.Line(s.paused.Reason))
	}
	return text
}

func (s Status) halted() *Hold {
	halt := processor.HaltError{Process: s.Process}
	if s.Failure != nil {
		halt.Failure = *s.Failure
	}
	return &Hold{HoldHalted, halt.Cause(), halt.Next(), ""}
}

func (s Status) failing() string {
	next := "the next attempt is due"
	if s.Failure.Wait > 0 {
		next = fmt.Sprintf("the next attempt comes in %s, or at once with `ordered-dispatcher retry %s`", round(s.Failure.Wait), visible.Shell(s.Process))
	}
	return fmt.Sprintf("record %s fails, %s: %s; %s", visible.Short(s.Failure.RecordID), s.Failure.Tried(), visible.Line(s.Failure.Error), next)
}

func (s Status) unwatched() *Hold {
	if s.promoted != "" {
		return s.missesWorker("no worker of it has a session on this server")
	}
	return s.missesWorker("no worker runs it")
}

func (s Status) nobody() *Hold {
	const problem = "records wait, and no worker holds the cursor's row"
	if !s.live || s.promoted != "" {
		return s.missesWorker(problem)
	}
	h := s.missesWorker(problem + ", although one is there")
	h.Next = "read its log. This role can read the table; if the worker's cannot, `ordered-dispatcher doctor` names the grant, run as " + oneOf(s.roles)
	return h
}

func (s Status) untried() *Hold {
	return s.missesWorker(fmt.Sprintf("record %s fails, %s: %s; the next attempt is due, and no worker makes it",
		visible.Short(s.Failure.RecordID), s.Failure.Tried(), visible.Line(s.Failure.Error)))
}

// missesWorker is the hold of a process without a worker: the problem, and which worker was the last one.
func (s Status) missesWorker(problem string) *Hold {
	last := "no worker ever had it"
	if s.Holder != "" {
		last = "its last worker was " + visible.Line(s.Holder)
	}
	also, sql := s.mayBeLocked()
	if s.promoted != "" {
		return &Hold{HoldNobody, fmt.Sprintf("%s: %s, and nothing has moved here since %s. A standby was promoted since then (%s), and workers may still deliver from the old primary",
			problem, last, moment(s.UpdatedAt), s.promoted),
			"fence the old primary first, then see that `ordered-dispatcher run` runs with this server, and read its log" + also, sql}
	}
	return &Hold{HoldNobody, fmt.Sprintf("%s: %s, and nothing has moved since %s", problem, last, moment(s.UpdatedAt)),
		"see that `ordered-dispatcher run` runs, and read its log" + also, sql}
}

// mayBeLocked names the sessions that may have locked the row of a process for which no worker is known to run.
func (s Status) mayBeLocked() (also, sql string) {
	if len(s.strangers) == 0 {
		return "", ""
	}
	l := s.strangers[0]
	next, sql := l.Step()
	return fmt.Sprintf(". If it runs, %s %s; then %s", visible.Line(l.String()), l.Locks(), next), sql
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// explain finds what hold needs besides the row.
func (r *StatusReader) explain(ctx context.Context, s *Status, lockers []cursor.Locker, long holders) {
	for _, l := range lockers {
		if l.Process == s.Process {
			s.lockers = append(s.lockers, l)
		}
	}
	s.operator, s.veiled = of(s.Process, long.operators), of(s.Process, long.veiled)
	if s.operator != nil || s.veiled != nil || slices.ContainsFunc(s.lockers, longLease) {
		s.bounds = r.bounds(s.Process)
		blockers, err := r.store.Blockers(ctx, s.Process)
		if err != nil {
			s.Problem = err.Error()
		}
		s.blockers = blockers
	}
	if s.State != cursor.Paused || s.New {
		return
	}
	events, err := operator.New(r.store).History(ctx, s.Process, pauseLookBack)
	if err != nil {
		s.Problem = err.Error()
		return
	}
	if at := slices.IndexFunc(events, func(e operator.Event) bool { return e.Action == "pause" }); at >= 0 {
		s.paused = &events[at]
	}
}

// overdue reports whether records wait longer than any worker would let them. For a process with a limit that cannot
// be decided: it waits without the lease.
func (s Status) overdue(p Process) bool {
	return s.waits(p) && s.Lag.Age != nil && *s.Lag.Age > longWait+p.Poll+p.Source.Latency
}

// perhapsOverdue is overdue for records whose age is not known.
func (s Status) perhapsOverdue(p Process) bool { return s.waits(p) && s.Lag.Age == nil }

// waits reports whether records wait for no known reason.
func (s Status) waits(p Process) bool {
	return s.hold() == nil && len(s.lockers) == 0 && p.Limit == (processor.Limit{}) && s.Lag != nil && s.Lag.Records > 0
}

// due reports whether the next attempt at a failing record may be made and is not made, as far as one look shows.
func (s Status) due() bool {
	return s.State == cursor.Running && s.Failure != nil && s.Failure.Wait == 0 && len(s.lockers) == 0
}

// maxDueWait bounds how long a worker may take to begin the next attempt at a failing record.
const maxDueWait = 5 * time.Second

// desert looks a second time at a process whose records, or whose next attempt, are overdue. A busy worker is without
// its lock for a moment at each checkpoint, and another worker looks once in each poll.
func (r *StatusReader) desert(ctx context.Context, s *Status) error {
	row, err := r.store.Look(ctx, s.Process)
	if err != nil {
		return err
	}
	lockers, err := r.store.Lockers(ctx)
	held := slices.ContainsFunc(lockers, func(l cursor.Locker) bool { return l.Process == s.Process })
	s.deserted = err == nil && !held && row.UpdatedAt.Equal(s.UpdatedAt)
	if s.deserted {
		s.strangers, err = r.store.Strangers(ctx)
	}
	return err
}
