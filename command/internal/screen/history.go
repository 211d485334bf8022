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
	g := &grid{page: p, tail: "REASON", columns: []column{
		{title: "AT"}, {title: "ACTOR", least: 8}, {title: "USER", least: 6}, {title: "ACTION"}, {title: "RECORD", least: 8},
	}}
	wide := p.Width == 0
	if wide {
		g.columns = append(g.columns, column{title: "FROM"}, column{title: "TO"})
	}
	for _, e := range events {
		row := []cell{{text: e.At.UTC().Format(time.RFC3339)}, {text: Dash(e.Actor)}, {text: Dash(e.User)}, {text: visible.Line(e.Action)}, {text: Dash(visible.Cut(daemon.RecordOf(e)))}}
		if wide {
			row = append(row, cell{text: Dash(visible.Cut(string(e.From)))}, cell{text: Dash(visible.Cut(string(e.To)))})
		}
		g.add(row...)
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
