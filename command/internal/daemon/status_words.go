package daemon

import (
	"fmt"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Word returns the state as people and programs see it: that of the row, or what is wrong although it runs.
func (s Status) Word() string {
	switch {
	case s.New:
		return "new"
	case s.State == cursor.Running && s.unread:
		return "cannot read"
	case s.State == cursor.Running && s.absent:
		return "no worker"
	case s.State == cursor.Running && s.Failure != nil:
		return "failing"
	default:
		return string(s.State)
	}
}

// Notes returns what a table has no room for: first the reason that holds delivery up, then what would hold it up
// after that.
func (s Status) Notes() []string {
	var notes []string
	kind := HoldKind("")
	if s.Hold != nil {
		kind = s.Hold.Kind
		notes = append(notes, s.Hold.String())
	}
	for _, also := range s.Also {
		notes = append(notes, also.String())
	}
	if f := s.Failure; f != nil && !f.OfServer() && kind != HoldHalted && kind != HoldFailing {
		notes = append(notes, fmt.Sprintf("record %s fails, %s: %s", visible.Short(f.RecordID), f.Tried(), visible.Line(f.Error)))
	}
	for i, writer := range s.Holding {
		if i > 0 || kind != HoldWriter {
			notes = append(notes, s.heldBy("records", writer).String())
		}
	}
	if note := s.lettersNote(); note != "" {
		notes = append(notes, note)
	}
	if s.Problem != "" {
		notes = append(notes, s.Problem)
	}
	return notes
}

// describe names a transaction and how to find it.
func describe(w table.Writer) string {
	who := fmt.Sprintf("pid %d (application %q, user %q)", w.PID, w.Application, w.User)
	if w.GID != "" {
		who = fmt.Sprintf("the prepared transaction %q (user %q)", w.GID, w.User)
	}
	if w.Ours {
		who = "a session of the dispatcher, of another role than its worker: " + who
	}
	if w.State != "" {
		who += ", " + w.State + command(w) + ","
	}
	if w.Since.IsZero() {
		return strings.TrimSuffix(who, ",")
	}
	return fmt.Sprintf("%s since %s", who, w.Since.UTC().Format(time.RFC3339))
}

// command describes what a session does, or did last.
func command(w table.Writer) string {
	switch {
	case w.Command == "":
		return ""
	case w.State == "active":
		return " in " + w.Command
	default:
		return " after " + w.Command
	}
}

func round(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
