package screen

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// maxReason is the number of characters of a reason that are shown; JSON has all of it.
const maxReason = 240

// History prints events, the newest first. A page of any width shows positions, too.
func (p Page) History(events []operator.Event) error {
	g := &Grid{page: p, tail: "REASON", columns: []Column{
		{Title: "AT"}, {Title: "ACTOR", Least: 8}, {Title: "USER", Least: 6}, {Title: "ACTION"}, {Title: "RECORD", Least: 8},
	}}
	wide := p.Width == 0
	if wide {
		g.columns = append(g.columns, Column{Title: "FROM"}, Column{Title: "TO"})
	}
	for _, e := range events {
		row := []Cell{{Text: e.At.UTC().Format(time.RFC3339)}, {Text: Dash(e.Actor)}, {Text: Dash(e.User)}, {Text: visible.Line(e.Action)}, {Text: Dash(visible.Cut(daemon.RecordOf(e)))}}
		if wide {
			row = append(row, Cell{Text: Dash(visible.Cut(string(e.From)))}, Cell{Text: Dash(visible.Cut(string(e.To)))})
		}
		g.Add(row...)
		g.tails = append(g.tails, start(visible.Line(e.Reason)))
	}
	return p.print(g.String())
}

// start returns the beginning of a long text.
func start(text string) string {
	if runes := []rune(text); len(runes) > maxReason {
		return string(runes[:maxReason]) + "…"
	}
	return text
}
