package daemon

import (
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Sentence describes for people where a record is.
func (r Found) Sentence() string {
	text := "record " + visible.Short(r.Record.ID) + " " + r.whereabouts()
	if r.Gone {
		text += "; its row is gone, or has another place now"
	}
	return text
}

// Next is a command that moves the record on; "" if it needs none.
func (r Found) Next() string {
	switch r.Standing {
	case StandingFailing:
		halt := processor.HaltError{Process: r.Process, Failure: *r.Failure}
		return halt.Next()
	case StandingLetter:
		return fmt.Sprintf("`ordered-dispatcher dead-letter replay %d -c FILE`", r.Letters[0].ID)
	default:
		return ""
	}
}

func (r Found) whereabouts() string {
	switch r.Standing {
	case StandingNew:
		return "waits: the process has not run yet"
	case StandingBefore:
		return "is not delivered: it comes before the place at which the process began"
	case StandingDelivered:
		return "was delivered; " + r.since()
	case StandingFailing:
		return fmt.Sprintf("fails, %s: %s", r.Failure.Tried(), visible.Line(r.Failure.Error))
	case StandingNext:
		return "is the next one" + r.stopped()
	case StandingFenced:
		return fmt.Sprintf("waits, %s: %s may still insert a record before it%s", r.ahead(), describe(r.Writers[0]), r.stopped())
	case StandingWaiting:
		return "waits, " + r.ahead() + r.stopped()
	case StandingLetter:
		letter := r.Letters[0]
		return fmt.Sprintf("is dead letter %d, after %s: %s", letter.ID, letter.Failure.Tries(), visible.Line(letter.Failure.Error))
	case StandingReplayed, StandingDiscarded:
		letter := r.Letters[0]
		return fmt.Sprintf("was dead letter %d, and was %s by %s at %s", letter.ID, letter.Resolution, visible.Line(letter.ResolvedBy), letter.ResolvedAt.UTC().Format(time.RFC3339))
	case StandingPutAside:
		return "was put aside as a dead letter that is not there any more; " + r.since()
	case StandingSkipped:
		return fmt.Sprintf("was passed over by %s, %s at %s: %s; %s", r.Omitted.Action, visible.Line(r.Omitted.Actor), r.Omitted.At.UTC().Format(time.RFC3339), visible.Line(r.Omitted.Reason), r.since())
	default:
		return "is before the cursor, and the history does not show how it was passed; " + r.since()
	}
}

// ahead describes what comes before a record that waits.
func (r Found) ahead() string {
	if r.Between == 0 {
		return "and is the next one"
	}
	return counted(r.Between, "record") + " before it"
}

// since describes how many records the cursor has passed since.
func (r Found) since() string {
	if r.Between == 0 {
		return "the cursor is at it"
	}
	return "the cursor is " + counted(r.Between, "record") + " after it"
}

// stopped adds that the process delivers nothing.
func (r Found) stopped() string {
	switch {
	case r.Row.State == cursor.Running:
		return ""
	case r.Row.Failure != nil && r.Row.Failure.RecordID != "":
		return fmt.Sprintf("; the process is %s, at record %s", r.Row.State, visible.Short(r.Row.Failure.RecordID))
	default:
		return fmt.Sprintf("; the process is %s", r.Row.State)
	}
}

// counted is a number of records that was counted only so far.
func counted(n int64, one string) string {
	if n >= table.MaxLagRecords {
		return fmt.Sprintf("%d or more %ss", n, one)
	}
	return amount(int(n), one)
}
