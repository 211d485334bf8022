package daemon

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Sentence says where a record is, for people.
func (r Found) Sentence() string {
	process := visible.Shell(r.Process)
	switch r.Standing {
	case StandingNew:
		return "waits: the process has not run yet"
	case StandingBefore:
		return "is not delivered: it comes before the place at which the process began"
	case StandingDelivered:
		return "was delivered; " + r.since()
	case StandingFailing:
		return fmt.Sprintf("fails, %s: %s; next: `ordered-dispatcher retry %s`, or `ordered-dispatcher skip %[3]s --reason …`", r.Failure.Tried(), visible.Line(r.Failure.Error), process)
	case StandingNext:
		return "is the next one" + r.stopped()
	case StandingFenced:
		return fmt.Sprintf("waits, %s: %s may still insert a record before it%s", r.ahead(), describe(r.Writers[0]), r.stopped())
	case StandingWaiting:
		return "waits, " + r.ahead() + r.stopped()
	case StandingLetter:
		letter := r.Letters[len(r.Letters)-1]
		return fmt.Sprintf("is dead letter %d, after %s: %s; next: `ordered-dispatcher dead-letter replay %[1]d -c FILE`", letter.ID, letter.Failure.Tries(), visible.Line(letter.Failure.Error))
	case StandingReplayed, StandingDiscarded:
		letter := r.Letters[len(r.Letters)-1]
		return fmt.Sprintf("was dead letter %d, and was %s by %s at %s", letter.ID, letter.Resolution, visible.Line(letter.ResolvedBy), letter.ResolvedAt.UTC().Format(time.RFC3339))
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

// PrintFound writes what was found, for people. It returns whether a record was found.
func PrintFound(w io.Writer, all []Search) (found bool, err error) {
	var b strings.Builder
	for _, search := range all {
		if search.Problem != "" {
			fmt.Fprintf(&b, "%s: not known: %s\n", visible.Line(search.Process), visible.Inline(search.Problem))
		}
		for _, r := range search.Found {
			found = true
			printOne(&b, r)
		}
		if len(search.Found) == MaxFound {
			fmt.Fprintf(&b, "%s: there may be more: these are the last %d\n", visible.Line(search.Process), MaxFound)
		}
	}
	_, err = io.WriteString(w, visible.Text(b.String()))
	return found, err
}

func printOne(b *strings.Builder, r Found) {
	b.WriteString(folded(fmt.Sprintf("%s: record %s %s", visible.Line(r.Process), visible.Short(r.Record.ID), r.Sentence()), "  "))
	line := func(name, text string) { fmt.Fprintf(b, "  %-11s %s\n", name, visible.Inline(text)) }
	line("position", string(r.Record.Position))
	line("dedup key", r.DedupKey)
	if !r.Record.CreatedAt.IsZero() {
		line("created at", r.Record.CreatedAt.Format(RecordTime))
	}
	for i, e := range r.Halts[:min(len(r.Halts), 3)] {
		if i == 0 && r.Standing == StandingFailing {
			continue // the first line has it
		}
		line("halted", e.At.UTC().Format(time.RFC3339)+": "+visible.Line(e.Reason))
	}
	if a := r.Amendment; a != nil {
		line("amended", fmt.Sprintf("by %s at %s: %s", visible.Line(a.Actor), a.At.UTC().Format(time.RFC3339), visible.Line(a.Reason)))
	}
	if r.Record.Payload == nil {
		return
	}
	line("key", r.Record.Key)
	line("type", r.Record.Type)
	payload := string(r.Record.Payload)
	if !utf8.ValidString(payload) {
		payload = "(base64) " + base64.StdEncoding.EncodeToString(r.Record.Payload)
	}
	line("payload", payload)
}

// foldedWidth is the width of a terminal.
const foldedWidth = 80

// folded breaks a text into lines between words. The lines after the first one begin with the indent.
func folded(text, indent string) string { return foldedAfter("", text, indent) }

// foldedAfter is folded for a text that follows a head, which stays as it is.
func foldedAfter(head, text, indent string) string {
	var b strings.Builder
	b.WriteString(head)
	column := utf8.RuneCountInString(head)
	for _, word := range strings.Fields(visible.Inline(text)) {
		n := utf8.RuneCountInString(word)
		switch {
		case b.Len() > len(head) && column+1+n > foldedWidth:
			b.WriteString("\n" + indent)
			column = len(indent)
		case b.Len() > len(head):
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String() + "\n"
}

// foundJSON is one record in one process. Fields may be added, never changed.
type foundJSON struct {
	Process     string     `json:"process"`
	RecordID    string     `json:"record_id"`
	Position    string     `json:"position"`
	DedupKey    string     `json:"dedup_key"`
	CreatedAt   *time.Time `json:"created_at"`
	Standing    Standing   `json:"standing"`
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
		Standing: r.Standing, Between: r.Between, Cursor: string(r.Row.Position), State: string(r.Row.State), Amended: r.Amendment != nil,
		Key: r.Record.Key, Type: r.Record.Type,
	}
	if n := len(r.Letters); n > 0 {
		letter := r.Letters[n-1]
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
	j.setPayload(r.Record)
	return j
}

func (j *foundJSON) setPayload(r processor.Record) {
	switch {
	case r.Payload == nil:
	case utf8.Valid(r.Payload):
		text := string(r.Payload)
		j.Payload = &text
	default:
		j.Base64 = base64.StdEncoding.EncodeToString(r.Payload)
	}
}
