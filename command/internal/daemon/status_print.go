package daemon

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// PrintStatus writes a table for people, and below it what needs their attention.
func PrintStatus(w io.Writer, all []Status) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no cursors yet: the first `ordered-dispatcher run` makes one for each process")
		return err
	}
	var b strings.Builder
	columns := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "PROCESS\tSTATE\tLAG\tOLDEST\tSEQUENCE\tEPOCH\tHOLDER\tPOSITION")
	for _, s := range all {
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", visible.Line(s.Process), s.state(), s.lagRecords(), s.lagAge(),
			s.Sequence, s.Epoch, dash(s.Holder), dash(visible.Cut(string(s.Position))))
	}
	columns.Flush()
	for _, s := range all {
		for _, note := range s.notes() {
			fmt.Fprintf(&b, "%s: %s\n", visible.Line(s.Process), visible.Inline(note))
		}
	}
	_, err := io.WriteString(w, visible.Text(b.String()))
	return err
}

func (s Status) state() string {
	switch {
	case s.New:
		return "new"
	case s.State == cursor.Running && s.unread:
		return "cannot read"
	case s.State == cursor.Running && s.absent:
		return "no worker"
	case s.State == cursor.Running && s.Failure != nil:
		return "failing"
	default:
		return string(s.State)
	}
}

func (s Status) lagRecords() string {
	switch {
	case s.Lag == nil:
		return "-"
	case s.Lag.Records >= table.MaxLagRecords:
		return fmt.Sprintf("%d or more", s.Lag.Records)
	default:
		return strconv.FormatInt(s.Lag.Records, 10)
	}
}

func (s Status) lagAge() string {
	if s.Lag == nil || s.Lag.Age == nil {
		return "-"
	}
	return round(*s.Lag.Age)
}

// notes returns what a table has no room for: first the reason that holds delivery up, then what would hold it up
// after that.
func (s Status) notes() []string {
	var notes []string
	kind := HoldKind("")
	if s.Hold != nil {
		kind = s.Hold.Kind
		notes = append(notes, s.Hold.Text)
	}
	for _, also := range s.Also {
		notes = append(notes, also.Text)
	}
	if f := s.Failure; f != nil && !f.OfServer() && kind != HoldHalted && kind != HoldFailing {
		notes = append(notes, fmt.Sprintf("record %s fails, %s: %s", visible.Short(f.RecordID), f.Tried(), visible.Line(f.Error)))
	}
	for i, writer := range s.Holding {
		if i > 0 || kind != HoldWriter {
			notes = append(notes, s.heldBy("records", writer).String())
		}
	}
	if note := s.lettersNote(); note != "" {
		notes = append(notes, note)
	}
	if s.Problem != "" {
		notes = append(notes, s.Problem)
	}
	return notes
}

// describe names a transaction and how to find it.
func describe(w table.Writer) string {
	who := fmt.Sprintf("pid %d (application %q, user %q)", w.PID, w.Application, w.User)
	if w.GID != "" {
		who = fmt.Sprintf("the prepared transaction %q (user %q)", w.GID, w.User)
	}
	if w.Ours {
		who = "a session of the dispatcher, of another role than its worker: " + who
	}
	if w.State != "" {
		who += ", " + w.State + command(w) + ","
	}
	if w.Since.IsZero() {
		return strings.TrimSuffix(who, ",")
	}
	return fmt.Sprintf("%s since %s", who, w.Since.UTC().Format(time.RFC3339))
}

// command describes what a session does, or did last.
func command(w table.Writer) string {
	switch {
	case w.Command == "":
		return ""
	case w.State == "active":
		return " in " + w.Command
	default:
		return " after " + w.Command
	}
}

// dash returns the text for a cell of a table: a dash if it is empty.
func dash(text string) string {
	if text = visible.Line(text); text == "" {
		return "-"
	}
	return text
}

func round(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
