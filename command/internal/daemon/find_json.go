package daemon

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"time"
	"unicode/utf8"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// foundJSON is one record in one process. Fields may be added, never changed.
type foundJSON struct {
	Process     string     `json:"process"`
	RecordID    string     `json:"record_id"`
	Position    string     `json:"position"`
	DedupKey    string     `json:"dedup_key"`
	CreatedAt   *time.Time `json:"created_at"`
	Standing    Standing   `json:"standing"`
	Gone        bool       `json:"gone,omitempty"`
	Between     int64      `json:"between,string"`
	Cursor      string     `json:"cursor"`
	State       string     `json:"state"`
	Attempts    int        `json:"attempts,omitempty"`
	Error       string     `json:"error,omitempty"`
	Class       string     `json:"class,omitempty"`
	NextAttempt *time.Time `json:"next_attempt_at,omitempty"`
	DeadLetter  int64      `json:"dead_letter,omitempty,string"`
	Action      string     `json:"passed_by,omitempty"`
	Actor       string     `json:"actor,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	Amended     bool       `json:"amended,omitempty"`
	Key         string     `json:"key,omitempty"`
	Type        string     `json:"type,omitempty"`
	Payload     *string    `json:"payload,omitempty"`
	Base64      string     `json:"payload_base64,omitempty"`
	Cut         bool       `json:"payload_cut,omitempty"`
	Withheld    bool       `json:"payload_withheld,omitempty"`
	// Sent is the payload that is sent instead of that of the row.
	Sent       *string `json:"amended_payload,omitempty"`
	SentBase64 string  `json:"amended_payload_base64,omitempty"`
}

// PrintFoundJSON writes one line: {"found": […], "problems": {…}}.
func PrintFoundJSON(w io.Writer, all []Search) (found bool, err error) {
	document := struct {
		Found    []foundJSON       `json:"found"`
		Problems map[string]string `json:"problems,omitempty"`
	}{Found: []foundJSON{}, Problems: map[string]string{}}
	for _, search := range all {
		if search.Problem != "" {
			document.Problems[search.Process] = search.Problem
		}
		for _, r := range search.Found {
			document.Found = append(document.Found, newFoundJSON(r))
		}
	}
	return len(document.Found) > 0, json.NewEncoder(visible.JSON(w)).Encode(document)
}

func newFoundJSON(r Found) foundJSON {
	j := foundJSON{
		Process: r.Process, RecordID: r.Record.ID, Position: string(r.Record.Position), DedupKey: r.DedupKey, CreatedAt: known(r.Record.CreatedAt),
		Standing: r.Standing, Gone: r.Gone, Between: r.Between, Cursor: string(r.Row.Position), State: string(r.Row.State), Amended: r.Amendment != nil,
		Key: r.Record.Key, Type: r.Record.Type, Cut: r.Record.Cut(), Withheld: r.Record.Withheld,
	}
	if len(r.Letters) > 0 {
		letter := r.Letters[0]
		j.DeadLetter, j.Attempts, j.Error, j.Class = letter.ID, letter.Failure.Attempts, letter.Failure.Error, string(letter.Failure.Class)
	}
	if f := r.Failure; f != nil {
		next := time.Now().Add(f.Wait).UTC()
		j.Attempts, j.Error, j.Class, j.NextAttempt = f.Attempts, f.Error, string(f.Class), &next
		if r.Row.State == cursor.Halted {
			j.NextAttempt = nil
		}
	}
	if e := r.Omitted; e != nil {
		j.Action, j.Actor, j.Reason = e.Action, e.Actor, e.Reason
	}
	j.Payload, j.Base64 = inJSON(r.Record.Payload)
	if r.Amendment != nil && r.Record.Payload != nil {
		j.Sent, j.SentBase64 = inJSON(r.Amendment.Payload)
	}
	return j
}

// inJSON returns a payload as text or, if it is none, in base64.
func inJSON(payload []byte) (text *string, encoded string) {
	switch s := string(payload); {
	case payload == nil:
		return nil, ""
	case utf8.ValidString(s):
		return &s, ""
	default:
		return nil, base64.StdEncoding.EncodeToString(payload)
	}
}
