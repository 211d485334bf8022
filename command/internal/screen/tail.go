package screen

import (
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// tailTime is the time of day of a line.
const tailTime = "15:04:05.000"

// Tailed prints one thing that happened to a process.
func (p Page) Tailed(o daemon.Tailed) error {
	at := "-"
	if !o.At.IsZero() {
		at = o.At.UTC().Format(tailTime)
	}
	head := fmt.Sprintf("%-12s %-10s ", at, visible.Line(o.What))
	return p.print(p.hang(head, visible.Inline(detail(o))))
}

func detail(o daemon.Tailed) string {
	switch {
	case o.Record != nil:
		text := "record " + visible.Short(o.Record.ID)
		if !o.Record.CreatedAt.IsZero() {
			text += ", created " + o.Record.CreatedAt.Format(tailTime)
		}
		if o.Event != nil {
			text += ", by " + o.Event.Action
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
