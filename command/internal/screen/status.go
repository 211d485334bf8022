package screen

import (
	"fmt"
	"strconv"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Status prints a line for each process, and under it what needs attention. rates has how many records a process
// delivers in a second, if that is known. A page of any width shows positions, sequences and epochs, too.
func (p Page) Status(all []daemon.Status, rates map[string]float64) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(p, "no cursors yet: the first `ordered-dispatcher run` makes one for each process")
		return err
	}
	g := &Grid{page: p, columns: []Column{
		{Title: "PROCESS", Least: 12}, {Title: "STATE"}, {Title: "WAITING", Right: true}, {Title: "OLDEST", Right: true},
		{Title: "RATE", Right: true}, {Title: "WORKER", Least: 8}, {Title: "LAST-RECORD", Least: 11},
	}}
	wide := p.Width == 0
	if wide {
		g.columns = append(g.columns, Column{Title: "SEQUENCE", Right: true}, Column{Title: "EPOCH", Right: true}, Column{Title: "POSITION"})
	}
	for _, s := range all {
		rate := "-"
		if r, ok := rates[s.Process]; ok {
			rate = Rate(r)
		}
		state := s.Word()
		row := []Cell{{Text: visible.Line(s.Process)}, {state, StateColour(state)}, {Text: Waiting(s)}, {Text: Oldest(s)}, {Text: rate},
			{Text: Dash(s.Worker())}, {Text: LastRecord(s)}}
		if wide {
			row = append(row, Cell{Text: strconv.FormatInt(s.Sequence, 10)}, Cell{Text: fmt.Sprint(s.Epoch)}, Cell{Text: Dash(visible.Cut(string(s.Position)))})
		}
		var notes []string
		for _, note := range s.Notes() {
			notes = append(notes, visible.Inline(note))
		}
		g.Add(row...)
		g.below = append(g.below, notes)
	}
	return p.print(g.String())
}

// Waiting returns how many records of a process wait.
func Waiting(s daemon.Status) string {
	switch {
	case s.Lag == nil:
		return "-"
	case s.Lag.Records >= table.MaxLagRecords:
		return fmt.Sprintf("%d+", s.Lag.Records)
	default:
		return strconv.FormatInt(s.Lag.Records, 10)
	}
}

// Oldest returns for how long the first record has waited.
func Oldest(s daemon.Status) string {
	if s.Lag == nil || s.Lag.Age == nil {
		return "-"
	}
	return Age(*s.Lag.Age)
}

// LastRecord returns the id of the record at the cursor: the last one that was delivered or passed over.
func LastRecord(s daemon.Status) string { return Dash(visible.Cut(table.RecordAt(s.Position))) }

// StateColour returns the colour of a state: red if a person must act, yellow if one may have to.
func StateColour(state string) string {
	switch state {
	case "running":
		return Green
	case "halted", "cannot read":
		return Red
	default:
		return Yellow
	}
}
