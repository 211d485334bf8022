package daemon

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// PrintOutcome writes what was done.
func PrintOutcome(w io.Writer, o Outcome) error {
	text := visible.Inline(o.Text) + "\n"
	if o.Problem != "" {
		text += visible.Line(o.Problem) + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// PrintRehearsal writes what would be done, and to which records.
func PrintRehearsal(w io.Writer, o Outcome) error {
	var b strings.Builder
	fmt.Fprintf(&b, "dry run, nothing is changed. Without --dry-run: %s\n", visible.Inline(o.Text))
	if o.Problem != "" {
		fmt.Fprintln(&b, visible.Line(o.Problem))
	}
	if o.Records != nil && len(o.Records.Records) > 0 {
		printRecords(&b, o.Records.Records)
	}
	if o.Records != nil && o.Records.Total > int64(len(o.Records.Records)) {
		fmt.Fprintf(&b, "… and %d more of %s\n", o.Records.Total-int64(len(o.Records.Records)), o.total())
	}
	if o.Changed {
		fmt.Fprintf(&b, "to do this if %s by then: --expect=%s instead of --dry-run\n", o.expected(), visible.Quoted(string(o.Expect)))
	}
	_, err := io.WriteString(w, visible.Text(b.String()))
	return err
}

// expected describes the record or place to which o.Expect belongs.
func (o Outcome) expected() string {
	if f := o.Before.Failure; f != nil && o.Expect == f.Position && f.RecordID != "" {
		return "record " + visible.Short(f.RecordID) + " still fails"
	}
	return "the cursor has not moved"
}

// recordTime is exact, and always equally wide.
const recordTime = "2006-01-02T15:04:05.000000Z"

// printRecords names records. It shows nothing of their content.
func printRecords(w io.Writer, records []processor.Record) {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "RECORD\tCREATED_AT\tPOSITION")
	for _, r := range records {
		created := "-"
		if !r.CreatedAt.IsZero() {
			created = r.CreatedAt.Format(recordTime)
		}
		fmt.Fprintf(columns, "%s\t%s\t%s\n", visible.Short(r.ID), created, visible.Short(string(r.Position)))
	}
	columns.Flush()
}
