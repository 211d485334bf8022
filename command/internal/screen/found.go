package screen

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Found prints where records are. It returns whether there is one.
func (p Page) Found(all []daemon.Search) (found bool, err error) {
	var b strings.Builder
	for _, search := range all {
		process := visible.Line(search.Process)
		if search.Problem != "" {
			b.WriteString(p.fold(process + ": not known: " + visible.Inline(search.Problem) + "\n"))
		}
		for _, r := range search.Found {
			found = true
			b.WriteString(p.found(r))
		}
		if search.More {
			b.WriteString(p.fold(fmt.Sprintf("%s: there are more: these are the last %d\n", process, len(search.Found))))
		}
	}
	return found, p.print(b.String())
}

// maxHalts is how many earlier failures of a record are printed.
const maxHalts = 3

// found describes one record in one process.
func (p Page) found(r daemon.Found) string {
	var b strings.Builder
	text := visible.Line(r.Process) + ": " + r.Sentence()
	if next := r.Next(); next != "" {
		text += "; next: " + next
	}
	b.WriteString(p.fold(visible.Inline(text) + "\n"))
	line := func(name, text string) { b.WriteString(p.hang(fmt.Sprintf("  %-11s ", name), visible.Inline(text))) }
	line("position", string(r.Record.Position))
	line("dedup key", r.DedupKey)
	if !r.Record.CreatedAt.IsZero() {
		line("created at", r.Record.CreatedAt.Format(daemon.RecordTime))
	}
	for i, e := range r.Halts[:min(len(r.Halts), maxHalts)] {
		if i == 0 && r.Standing == daemon.StandingFailing {
			continue // the first line has it
		}
		line("halted", e.At.UTC().Format(time.RFC3339)+": "+visible.Line(e.Reason))
	}
	if a := r.Amendment; a != nil {
		line("amended", fmt.Sprintf("by %s at %s: %s", visible.Line(a.Actor), a.At.UTC().Format(time.RFC3339), visible.Line(a.Reason)))
		line("", "another payload is sent instead of that of the row")
	}
	if r.Record.Withheld {
		line("payload", "the role may read only the id and the time of a record")
	}
	if r.Record.Payload == nil {
		return b.String()
	}
	line("key", r.Record.Key)
	line("type", r.Record.Type)
	payload := func(name string, content []byte) {
		text := string(content)
		if !utf8.ValidString(text) {
			text = "(base64) " + base64.StdEncoding.EncodeToString(content)
		}
		fmt.Fprintf(&b, "  %-11s %s\n", name, visible.Inline(text)) // in one line, as it may be pasted
	}
	of := "payload"
	if r.Amendment != nil {
		of = "of the row"
		payload("sent", r.Amendment.Payload)
	}
	payload(of, r.Record.Payload)
	if r.Record.Cut() {
		line("", fmt.Sprintf("… these are the first %d of %d bytes", len(r.Record.Payload), r.Record.Bytes))
	}
	return b.String()
}
