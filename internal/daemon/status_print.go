package daemon

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// PrintStatus writes a table for people, and below it what needs their eye.
func PrintStatus(w io.Writer, all []Status) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no cursors yet: the first `ordered-dispatcher run` makes one for each process")
		return err
	}
	var b strings.Builder
	columns := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "PROCESS\tSTATE\tLAG\tOLDEST\tSEQUENCE\tEPOCH\tHOLDER\tPOSITION")
	for _, s := range all {
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", s.Process, s.state(), s.lagRecords(), s.lagAge(),
			s.Sequence, s.Epoch, dash(s.Holder), dash(string(s.Position)))
	}
	columns.Flush()
	for _, s := range all {
		for _, note := range s.notes() {
			fmt.Fprintf(&b, "%s: %s\n", s.Process, note)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s Status) state() string {
	switch {
	case s.New:
		return "new"
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

// notes says what a table has no room for.
func (s Status) notes() []string {
	var notes []string
	if f := s.Failure; f != nil {
		notes = append(notes, failureNote(*f, s.State))
	}
	for _, writer := range s.Holding {
		notes = append(notes, "records are held back by "+describe(writer)+"; they follow when it ends")
	}
	if s.Problem != "" {
		notes = append(notes, s.Problem)
	}
	return notes
}

func failureNote(f cursor.Failure, state cursor.State) string {
	next := "the next attempt is due"
	switch {
	case state == cursor.Halted:
		next = "nothing behind it is delivered until an operator decides"
	case f.Wait > 0:
		next = "the next attempt comes in " + round(f.Wait)
	}
	kind := "failed"
	if f.Permanent {
		kind = "can never succeed, says the receiver, and failed"
	}
	return fmt.Sprintf("record %s at position %s %s %d times since %s; %s: %s",
		f.RecordID, f.Position, kind, f.Attempts, f.First.Format(time.RFC3339), next, oneLine(f.Error))
}

// describe names a transaction and how to find it.
func describe(w table.Writer) string {
	who := fmt.Sprintf("pid %d (application %q, user %q)", w.PID, w.Application, w.User)
	if w.GID != "" {
		who = fmt.Sprintf("the prepared transaction %q (user %q)", w.GID, w.User)
	}
	if w.Since.IsZero() {
		return who
	}
	return fmt.Sprintf("%s since %s", who, w.Since.UTC().Format(time.RFC3339))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func dash(text string) string {
	if text == "" {
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
