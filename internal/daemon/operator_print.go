package daemon

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// PrintOutcome says what was done.
func PrintOutcome(w io.Writer, o Outcome) error {
	text := o.Text + "\n"
	if o.Problem != "" {
		text += o.Problem + "\n"
	}
	_, err := io.WriteString(w, Visible(text))
	return err
}

// PrintRehearsal says what would be done, and to which records.
func PrintRehearsal(w io.Writer, o Outcome) error {
	var b strings.Builder
	fmt.Fprintf(&b, "dry run, nothing is changed. Without --dry-run: %s\n", o.Text)
	if o.Problem != "" {
		fmt.Fprintln(&b, o.Problem)
	}
	if o.Records != nil && len(o.Records.Records) > 0 {
		printRecords(&b, o.Records.Records)
	}
	if o.Records != nil && o.Records.Total > int64(len(o.Records.Records)) {
		fmt.Fprintf(&b, "… and %d more of %s\n", o.Records.Total-int64(len(o.Records.Records)), o.total())
	}
	if o.Changed {
		fmt.Fprintf(&b, "to do this if the cursor has not moved by then: --expect=%s instead of --dry-run\n", SingleQuoted(string(o.Before.Position)))
	}
	_, err := io.WriteString(w, Visible(b.String()))
	return err
}

// recordTime is exact, and of one width.
const recordTime = "2006-01-02T15:04:05.000000Z"

// printRecords names records, and shows nothing of what they hold.
func printRecords(w io.Writer, records []processor.Record) {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "RECORD\tCREATED_AT\tPOSITION")
	for _, r := range records {
		created := "-"
		if !r.CreatedAt.IsZero() {
			created = r.CreatedAt.Format(recordTime)
		}
		fmt.Fprintf(columns, "%s\t%s\t%s\n", oneLine(r.ID), created, oneLine(string(r.Position)))
	}
	columns.Flush()
}
