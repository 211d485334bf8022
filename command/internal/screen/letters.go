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
	g := &grid{page: p, tail: "ERROR", columns: []column{
		{title: "ID", right: true}, {title: "PROCESS", least: 10}, {title: "RECORD", least: 8}, {title: "PUT ASIDE"}, {title: "ATTEMPTS", right: true, extra: true},
		{title: "CLASS"}, {title: "RESOLUTION"},
	}}
	wide := p.Width == 0
	if wide {
		g.columns = append(g.columns, column{title: "POSITION"})
	}
	for _, l := range letters {
		row := []cell{{text: strconv.FormatInt(l.ID, 10)}, {text: visible.Line(l.Process)}, {text: visible.Short(l.RecordID)}, {text: l.At.UTC().Format(time.RFC3339)},
			{text: strconv.Itoa(l.Failure.Attempts)}, {text: visible.Line(string(l.Failure.Class))}, {text: daemon.Resolution(l)}}
		if wide {
			row = append(row, cell{text: visible.Short(string(l.Position))})
		}
		g.add(row...)
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
