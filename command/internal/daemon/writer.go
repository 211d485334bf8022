package daemon

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// heldBack describes how a transaction is in the way of records, and what to do about it.
type heldBack struct {
	problem, next string
	sql           string // goes with next
	fix           string // of the doctor; "" = next
	waited        bool   // records are waiting for it, as far as is known
}

// String puts all of it into one sentence.
func (h heldBack) String() string { return withNext(h.problem, h.next, h.sql) }

// step is the next step in one line.
func (h heldBack) step() string {
	if h.sql == "" {
		return h.next
	}
	return h.next + ": " + h.sql
}

// waitForIt is the next step for a transaction that is not known to hold up the first record.
const waitForIt = "wait until it ends"

// heldBy describes how a writer is in the way of records of a process. It never proposes to end a transaction that
// may be a COMMIT which waits for a standby, or one that is not known to hold up the records that wait.
func (s Status) heldBy(records string, w table.Writer) heldBack {
	who := visible.Line(describe(w))
	switch {
	case w.Ours:
		return heldBack{problem: fmt.Sprintf("%s are held back by %s", records, who), next: endOf(w), waited: true}
	case w.Replicating:
		return heldBack{problem: fmt.Sprintf("%s are held back by %s, whose COMMIT waits for a synchronous standby", records, who), next: cursor.KeepReplicating, waited: true}
	case w.HiddenFrom != "":
		return heldBack{problem: fmt.Sprintf("%s are held back by %s, %s", records, who, cursor.MayReplicate), next: endOf(w), waited: true}
	case w.MayBeCommitted:
		return heldBack{problem: fmt.Sprintf("%s are held back by %s, whose COMMIT PREPARED may be waiting for a synchronous standby", records, who), next: lockerOf(w).Fix(), waited: true}
	case s.absent || s.State != cursor.Running || s.Lag == nil:
		return heldBack{problem: "a worker that starts now may have to wait for " + who, next: waitForIt}
	case s.moving || s.Lag.Records == 0:
		return heldBack{problem: fmt.Sprintf("newer %s may be held back by %s: %s", records, who, inTheWay(w)), next: waitForIt}
	case w.TimesHiddenFrom != "":
		return heldBack{problem: fmt.Sprintf("%s may be held back by %s, if its transaction was open before they were stamped", records, who),
			next: waitForIt + "; " + sinceWhen(w.TimesHiddenFrom), waited: true}
	case beganAfter(w, s.Lag.begun):
		next, sql := endOfLater(w, s.Lag.begun.Add(*s.Lag.Age))
		return heldBack{problem: fmt.Sprintf("%s may be held back by %s: its open transaction began after the first of them was stamped, so it inserts nothing before that one, but a worker may wait for it", records, who),
			next: next, sql: sql, waited: true}
	default:
		next, sql := orEnd(w, lockerOf(w).Fix())
		return heldBack{problem: fmt.Sprintf("%s are held back by %s: %s%s", records, who, inTheWay(w), although(w)),
			next: next, sql: sql, fix: endOf(w), waited: true}
	}
}

// inTheWay describes how a transaction may be in the way of the records that wait.
func inTheWay(w table.Writer) string {
	if w.GID != "" {
		return "when it began is not recorded, so it may have inserted before them"
	}
	return "its open transaction may still insert before them"
}

// although explains how a writer that inserts nothing is in the way.
func although(w table.Writer) string {
	if w.Command != "DELETE" && w.Command != "UPDATE" {
		return ""
	}
	return fmt.Sprintf(" (a transaction with %s has the lock of one that inserts)", w.Command)
}

// lockerOf returns a writer as the holder of a lock. The advice how to end it needs that form.
func lockerOf(w table.Writer) cursor.Locker {
	return cursor.Locker{PID: w.PID, GID: w.GID, Transaction: w.Transaction, Since: w.Since,
		Replicating: w.Replicating, HiddenFrom: w.HiddenFrom, MayBeCommitted: w.MayBeCommitted}
}

// endOf returns the SQL that ends a transaction. It never proposes to end a session of the dispatcher, which
// delivers.
func endOf(w table.Writer) string {
	switch {
	case w.Ours:
		return "run all of the dispatcher as one role: the fence of a now() default leaves out only sessions of the worker's own role"
	case w.GID != "" && !w.MayBeCommitted:
		return fmt.Sprintf("ROLLBACK PREPARED %s; -- or COMMIT PREPARED, as its coordinator decides", visible.Literal(w.GID))
	default:
		return lockerOf(w).Fix()
	}
}

// endOfLater is the next step for a transaction that began after the waiting record was stamped. A worker's fence
// waits for it only if the fence has seen nothing since then, because the worker has just begun to read. If that
// lasts, the transaction is in the way all the same.
func endOfLater(w table.Writer, now time.Time) (next, sql string) {
	if now.Sub(w.Since) >= longHeld {
		return orEnd(w, endOf(w))
	}
	return waitForIt, ""
}

// orEnd is the step to wait for a transaction, or to end it. end is how, in words, if there is no SQL to run at once.
func orEnd(w table.Writer, end string) (next, sql string) {
	if sql = lockerOf(w).SQL(); sql != "" && sql == end {
		return waitForIt + ", or end it", sql
	}
	return waitForIt + ", or end it: " + end, ""
}

// held finds the transactions that hold records back.
func (d *doctor) held(ctx context.Context, p Process, source *table.Source, s Status) error {
	if err := s.lookForWriters(ctx, source); err != nil || len(s.Holding) == 0 {
		return err
	}
	pause(ctx, stays)
	if err := s.stay(ctx, source); err != nil {
		return err
	}
	now, err := databaseTime(ctx, d.pool)
	if err != nil {
		return err
	}
	looked := []Status{s}
	if err := move(ctx, d.store, looked); err != nil {
		return err
	}
	s = looked[0]
	for _, w := range s.Holding {
		h, severity := s.heldBy("records of "+p.Source.Table, w), Note
		if h.waited && s.Lag != nil && s.Lag.Records > 0 {
			severity = heldFor(w.Since, now)
		}
		d.find(p.Name, severity, cmp.Or(h.fix, h.step()), "%s", h.problem)
	}
	return nil
}

// leads reports whether the session is the worker that has the row.
func (s Status) leads(l cursor.Locker) bool {
	return l.Process == s.Process && l.Worker() && !l.Operator()
}

// standing returns the parts of a process's status that show what holds its records back.
func (d *doctor) standing(ctx context.Context, p Process, source *table.Source, rows []cursor.Row) (Status, error) {
	seen, err := d.config.presence(ctx, d.pool)
	if err != nil {
		return Status{}, err
	}
	s := statuses(rows, []Process{p})[0]
	s.see(seen)
	s.veiled = of(p.Name, d.long.veiled)
	if s.New || s.Position == cursor.Unplaced {
		return s, nil
	}
	lag, err := source.Lag(ctx, s.Position)
	if processor.IsPermanent(err) {
		return s, nil // the check of the position reports it
	}
	s.Lag = lagOf(lag)
	return s, err
}
