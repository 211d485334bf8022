package screen

import (
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Outcome prints what was done.
func (p Page) Outcome(o daemon.Outcome) error {
	text := visible.Inline(o.Text) + "\n"
	if o.Problem != "" {
		text += visible.Line(o.Problem) + "\n"
	}
	_, err := fmt.Fprint(p, text)
	return err
}

// Rehearsal prints what would be done, and to which records. The command itself needs the flags in more, too.
func (p Page) Rehearsal(o daemon.Outcome, more string) error {
	text := fmt.Sprintf("dry run, nothing is changed. Without --dry-run: %s\n", visible.Inline(o.Text))
	if o.Problem != "" {
		text += visible.Line(o.Problem) + "\n"
	}
	text = p.fold(text)
	if o.Records != nil && len(o.Records.Records) > 0 {
		text += p.records(o.Records.Records)
	}
	rest := ""
	if o.Records != nil && o.Records.Total > int64(len(o.Records.Records)) {
		rest = fmt.Sprintf("… and %d more of %s\n", o.Records.Total-int64(len(o.Records.Records)), o.Total())
	}
	if o.Changed {
		rest += fmt.Sprintf("to do this if %s by then: --expect=%s%s instead of --dry-run\n", o.Expected(), visible.Quoted(string(o.Expect)), more)
	}
	return p.print(text + p.fold(rest))
}

// records names records. It shows nothing of their content.
func (p Page) records(records []processor.Record) string {
	g := &Grid{page: p, columns: []Column{{Title: "RECORD", Least: 8}, {Title: "CREATED_AT"}, {Title: "POSITION", Extra: true}}}
	for _, r := range records {
		created := "-"
		if !r.CreatedAt.IsZero() {
			created = r.CreatedAt.Format(daemon.RecordTime)
		}
		g.Add(Cell{Text: visible.Short(r.ID)}, Cell{Text: created}, Cell{Text: visible.Short(string(r.Position))})
	}
	return g.String()
}
