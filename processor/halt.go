package processor

import (
	"fmt"
	"log/slog"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// This file has the words of a halt over a record: what Drain returns, what the log and `status` show, and what a
// refused decision proposes. A halt over the database is worded where it is found: server.go here, halt.go and
// identity.go in package cursor, rows.go in package table. Its error names the next step.

// RefusedFix is what to do after a halt of cursor.ClassRefused, before the retry. No receiver may have been asked, as
// where a table of ours is missing.
const RefusedFix = "correct what the error names (credentials, address, settings; after a change of the configuration or of a ${NAME}, restart the workers)"

// HaltError is the error of Drain when the process is halted. Package cursor/operator has what an operator can do:
// Retry, Skip or Seek.
type HaltError struct {
	Process string
	Failure cursor.Failure
}

func (e *HaltError) Error() string {
	text := fmt.Sprintf("process %q is %s", e.Process, e.Cause())
	if next := e.Next(); next != "" {
		text += "; next: " + next
	}
	return text
}

// Cause says in one line what the process is halted over. After a halt over the database, that names the next step.
func (e *HaltError) Cause() string {
	f, where := e.Failure, ""
	switch {
	case f.OfServer():
		return "halted: " + visible.Line(f.Error)
	case f == (cursor.Failure{}):
		return "halted"
	}
	switch f.Class {
	case cursor.ClassRefused:
		return fmt.Sprintf("halted: the receiver or a setting is at fault, not record %s, %s: %s", visible.Short(f.RecordID), f.Tried(), visible.Line(f.Error))
	case cursor.ClassPermanent:
		where = ", which the receiver refuses for good"
	case cursor.ClassUnreadable:
		where = ", which cannot be read or prepared"
	case cursor.ClassUnknown:
		where = ", which the receiver may have: look there first"
	}
	return fmt.Sprintf("halted at record %s%s, %s: %s", visible.Short(f.RecordID), where, f.Tried(), visible.Line(f.Error))
}

// Next is what an operator does after the halt. It proposes to pass over a record only if a record is at fault. It is
// empty after a halt over the database, whose error names the next step.
func (e *HaltError) Next() string {
	process := visible.Shell(e.Process)
	switch f := e.Failure; {
	case f.OfServer():
		return ""
	case f.OfUs():
		return fmt.Sprintf("%s, then `ordered-dispatcher retry %s`", RefusedFix, process)
	case f == (cursor.Failure{}):
		return fmt.Sprintf("`ordered-dispatcher retry %s`", process)
	case f.Class == cursor.ClassUnreadable:
		return fmt.Sprintf("correct the row or what prepares it (`upcast`: restart the workers), then `ordered-dispatcher retry %[1]s`, or `ordered-dispatcher skip %[1]s --reason …`", process)
	case f.Class == cursor.ClassPermanent:
		return fmt.Sprintf("`ordered-dispatcher retry %[1]s`, `ordered-dispatcher amend %[1]s --payload NEW -c FILE --reason …`, or `ordered-dispatcher skip %[1]s --reason …`", process)
	default:
		return fmt.Sprintf("`ordered-dispatcher retry %[1]s`, or `ordered-dispatcher skip %[1]s --reason …`", process)
	}
}

// halted logs a halt. The attributes have what differs between two halts, so that logs can be grouped by message.
func (r *reporter) halted(f cursor.Failure) {
	if f.OfServer() {
		r.trouble(slog.LevelError, "halted over its database, and not over a record: nothing is delivered until an operator decides", "err", f.Error)
		return
	}
	what := "halted: nothing after this record is delivered until an operator decides: `ordered-dispatcher retry` or `skip`"
	switch {
	case f.OfUs():
		what = "halted: the receiver or a setting is at fault, so nothing is sent: " + RefusedFix + ", then `ordered-dispatcher retry`"
	case f.Class == cursor.ClassPermanent: // see Next
		what = "halted: nothing after this record is delivered until an operator decides: `ordered-dispatcher retry`, `amend` or `skip`"
	}
	r.trouble(slog.LevelError, what, "position", visible.Cut(string(f.Position)), "record_id", visible.Cut(f.RecordID), "attempt", f.Attempts, "err", f.Error)
}
