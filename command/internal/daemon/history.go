package daemon

import (
	"encoding/json"
	"io"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// RecordOf returns the id of the record that an event was about; "" if there is none.
func RecordOf(e operator.Event) string {
	var detail struct {
		RecordID string `json:"record_id"`
	}
	_ = json.Unmarshal(e.Detail, &detail)
	return detail.RecordID
}

// eventJSON is one event in JSON. Fields may be added, never changed.
type eventJSON struct {
	ID      int64     `json:"id,string"`
	At      time.Time `json:"at"`
	Process string    `json:"process"`
	Actor   string    `json:"actor"`
	// User is the role that was logged in. The actor can be another name.
	User   string          `json:"db_user"`
	Action string          `json:"action"`
	Reason string          `json:"reason"`
	From   string          `json:"from_position"`
	To     string          `json:"to_position"`
	Detail json.RawMessage `json:"detail"`
}

// PrintHistoryJSON writes one line: {"events": […]}.
func PrintHistoryJSON(w io.Writer, events []operator.Event) error {
	document := struct {
		Events []eventJSON `json:"events"`
	}{Events: []eventJSON{}}
	for _, e := range events {
		document.Events = append(document.Events, eventJSON{
			e.ID, e.At, e.Process, e.Actor, e.User, e.Action, e.Reason, string(e.From), string(e.To), e.Detail})
	}
	return json.NewEncoder(visible.JSON(w)).Encode(document)
}

// RecordTime is the layout of the time of a record: exact, and always equally wide.
const RecordTime = "2006-01-02T15:04:05.000000Z"
