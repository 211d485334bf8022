package daemon

import (
	"encoding/json"
	"io"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// tailedJSON is one line. Fields may be added, never changed.
type tailedJSON struct {
	At        *time.Time `json:"at"` // null for a record that the cursor may have passed long before
	What      string     `json:"what"`
	RecordID  string     `json:"record_id,omitempty"`
	Position  string     `json:"position,omitempty"`
	CreatedAt *time.Time `json:"created_at,omitempty"`
	PassedBy  string     `json:"passed_by,omitempty"`
	Attempts  int        `json:"attempts,omitempty"`
	Error     string     `json:"error,omitempty"`
	Actor     string     `json:"actor,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	Payload   *string    `json:"payload,omitempty"` // of the row
	Base64    string     `json:"payload_base64,omitempty"`
	Sent      *string    `json:"amended_payload,omitempty"` // sent instead of it
	SentB64   string     `json:"amended_payload_base64,omitempty"`
}

// PrintTailedJSON writes a line of JSON.
func PrintTailedJSON(w io.Writer, o Tailed) error {
	line := tailedJSON{At: known(o.At), What: o.What, Error: o.Problem}
	if r := o.Record; r != nil {
		line.RecordID, line.Position, line.CreatedAt = r.ID, string(r.Position), known(r.CreatedAt)
		line.Payload, line.Base64 = inJSON(r.Payload)
	}
	if a := o.Amendment; a != nil {
		line.Sent, line.SentB64 = inJSON(a.Payload)
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
