package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// maxReason is the number of characters of a reason that fit in a line; JSON has all of it.
const maxReason = 120

// PrintHistory writes a table for people, the newest event first.
func PrintHistory(w io.Writer, events []operator.Event) error {
	var b strings.Builder
	columns := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "AT\tACTOR\tUSER\tACTION\tRECORD\tREASON\tFROM\tTO")
	for _, e := range events {
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.At.Format(time.RFC3339), dash(e.Actor), dash(e.User), visible.Line(e.Action),
			dash(visible.Cut(recordOf(e))), dash(short(visible.Line(e.Reason))), dash(visible.Cut(string(e.From))), dash(visible.Cut(string(e.To))))
	}
	columns.Flush()
	_, err := io.WriteString(w, visible.Text(b.String()))
	return err
}

// recordOf returns the id of the record that an event was about; "" if there is none.
func recordOf(e operator.Event) string {
	var detail struct {
		RecordID string `json:"record_id"`
	}
	_ = json.Unmarshal(e.Detail, &detail)
	return detail.RecordID
}

func short(text string) string {
	if runes := []rune(text); len(runes) > maxReason {
		return string(runes[:maxReason]) + "…"
	}
	return text
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
