package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// tailTime is the time of day of a line.
const tailTime = "15:04:05.000"

// PrintTailed writes a line for people, in at most 80 columns as far as the texts of others allow it.
func PrintTailed(w io.Writer, o Tailed) error {
	head := fmt.Sprintf("%s %-10s ", o.At.UTC().Format(tailTime), visible.Line(o.What))
	_, err := io.WriteString(w, foldedAfter(head, o.detail(), strings.Repeat(" ", len(head))))
	return err
}

func (o Tailed) detail() string {
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
		if record := RecordOf(*o.Event); record != "" {
			text = "record " + visible.Short(record) + ", " + text
		}
		if o.Event.Reason != "" {
			text += ": " + visible.Line(o.Event.Reason)
		}
		return text
	case o.What == neverRan:
		return visible.Line(o.Process) + " has not run yet"
	case o.Problem != "":
		return "the database does not answer, trying again: " + visible.Line(o.Problem)
	default:
		return "the database answers again"
	}
}

// tailedJSON is one line. Fields may be added, never changed.
type tailedJSON struct {
	At        time.Time  `json:"at"`
	What      string     `json:"what"`
	RecordID  string     `json:"record_id,omitempty"`
	Position  string     `json:"position,omitempty"`
	CreatedAt *time.Time `json:"created_at,omitempty"`
	PassedBy  string     `json:"passed_by,omitempty"`
	Attempts  int        `json:"attempts,omitempty"`
	Error     string     `json:"error,omitempty"`
	Actor     string     `json:"actor,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	Payload   *string    `json:"payload,omitempty"`
}

// PrintTailedJSON writes a line of JSON.
func PrintTailedJSON(w io.Writer, o Tailed) error {
	line := tailedJSON{At: o.At.UTC(), What: o.What, Error: o.Problem}
	if r := o.Record; r != nil {
		line.RecordID, line.Position, line.CreatedAt = r.ID, string(r.Position), known(r.CreatedAt)
		if r.Payload != nil {
			payload := string(r.Payload)
			line.Payload = &payload
		}
	}
	if f := o.Failure; f != nil {
		line.RecordID, line.Position, line.Attempts, line.Error = f.RecordID, string(f.Position), f.Attempts, f.Error
	}
	if e := o.Event; e != nil {
		line.Actor, line.Reason = e.Actor, e.Reason
		if o.Record != nil {
			line.PassedBy = e.Action
		} else {
			line.RecordID, line.Position = RecordOf(*e), string(e.To)
		}
	}
	return json.NewEncoder(visible.JSON(w)).Encode(line)
}
