package screen

import (
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// moment is a time of day in UTC, with its day if that is not today.
func moment(at time.Time) string {
	const clock = "15:04:05.000"
	if at = at.UTC(); at.Format(time.DateOnly) != time.Now().UTC().Format(time.DateOnly) {
		return at.Format(time.DateOnly + " " + clock)
	}
	return at.Format(clock)
}

// Tailed prints one thing that happened to a process.
func (p Page) Tailed(o daemon.Tailed) error {
	at := "-"
	if !o.At.IsZero() {
		at = moment(o.At)
	}
	head := fmt.Sprintf("%-12s %-10s ", at, visible.Line(o.What))
	return p.print(p.hang(head, visible.Inline(detail(o))))
}

func detail(o daemon.Tailed) string {
	switch {
	case o.Record != nil:
		text := "record " + visible.Short(o.Record.ID)
		if !o.Record.CreatedAt.IsZero() {
			text += ", created " + moment(o.Record.CreatedAt)
		}
		if o.Event != nil {
			text += ", by " + o.Event.Action
		}
		if o.Amendment != nil {
			return text + ", amended by " + visible.Line(o.Amendment.Actor) + ": " + visible.Line(string(o.Amendment.Payload))
		}
		if o.Record.Payload != nil {
			text += ": " + visible.Line(string(o.Record.Payload))
		}
		return text
	case o.Failure != nil:
		return fmt.Sprintf("record %s, attempt %d: %s", visible.Short(o.Failure.RecordID), o.Failure.Attempts, visible.Line(o.Failure.Error))
	case o.Event != nil:
		text := "by " + visible.Line(o.Event.Actor)
		if record := daemon.RecordOf(*o.Event); record != "" {
			text = "record " + visible.Short(record) + ", " + text
		}
		if o.Event.Reason != "" {
			text += ": " + visible.Line(o.Event.Reason)
		}
		return text
	case o.What == daemon.NeverRan:
		return visible.Line(o.Process) + " has not run yet"
	case o.Problem != "":
		return "the database does not answer, trying again: " + visible.Line(o.Problem)
	default:
		return "the database answers again"
	}
}
