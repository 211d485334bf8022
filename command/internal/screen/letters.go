package screen

import (
	"fmt"
	"strconv"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// DeadLetters prints a list of dead letters. A page of any width shows positions, too.
func (p Page) DeadLetters(letters []cursor.DeadLetter) error {
	if len(letters) == 0 {
		_, err := fmt.Fprintln(p, "no dead letters")
		return err
	}
	g := &Grid{page: p, tail: "ERROR", columns: []Column{
		{Title: "ID"}, {Title: "PROCESS", Least: 10}, {Title: "RECORD", Least: 8}, {Title: "PUT ASIDE"}, {Title: "ATTEMPTS", Right: true, Extra: true},
		{Title: "CLASS"}, {Title: "RESOLUTION"},
	}}
	wide := p.Width == 0
	if wide {
		g.columns = append(g.columns, Column{Title: "POSITION"})
	}
	for _, l := range letters {
		row := []Cell{{Text: strconv.FormatInt(l.ID, 10)}, {Text: visible.Line(l.Process)}, {Text: visible.Short(l.RecordID)}, {Text: l.At.UTC().Format(time.RFC3339)},
			{Text: strconv.Itoa(l.Failure.Attempts)}, {Text: visible.Line(string(l.Failure.Class))}, {Text: daemon.Resolution(l)}}
		if wide {
			row = append(row, Cell{Text: visible.Short(string(l.Position))})
		}
		g.Add(row...)
		g.tails = append(g.tails, visible.Line(l.Failure.Error))
	}
	return p.print(g.String())
}

// Selection prints the dead letters that a command would decide about. rehearsed is the decision in words.
func (p Page) Selection(letters []cursor.DeadLetter, rehearsed string) error {
	_, err := fmt.Fprintf(p, "dry run, nothing is changed. Without --dry-run %s of %s %s:\n", daemon.Letters(len(letters)), visible.Line(letters[0].Process), rehearsed)
	if err != nil {
		return err
	}
	return p.DeadLetters(letters)
}
