package screen

import (
	"fmt"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Partitions prints, for each table, how far its processes have come and which partitions are safe to drop.
func (p Page) Partitions(all []daemon.Retention) error {
	var b strings.Builder
	for i, t := range all {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(p.retention(t))
	}
	return p.print(b.String())
}

func (p Page) retention(t daemon.Retention) string {
	text := visible.Line(t.Table) + "\n"
	for _, reader := range t.Readers {
		text += fmt.Sprintf("  %s (%s): %s\n", visible.Line(reader.Process), visible.Line(reader.State), visible.Inline(reader.Has()))
	}
	for _, process := range t.Unknown {
		text += fmt.Sprintf("  %s: its cursor is in the database and not in the file, so no command can find out which table it reads\n", visible.Line(process))
	}
	if len(t.Partitions) == 0 {
		return p.fold(text + "  no partitions\n")
	}
	g := &Grid{page: p, tail: "WHY NOT", columns: []Column{{Title: "  PARTITION", Least: 12}, {Title: "SAFE TO DROP"}}}
	note := ""
	for _, part := range t.Partitions {
		safe := Cell{"no", Yellow}
		if part.Safe() {
			safe, note = Cell{"yes", Green}, "  Rows that come later do not count: keep a partition to which producers write, or will write.\n"
		}
		g.Add(Cell{Text: "  " + visible.Line(part.Name())}, safe)
		g.tails = append(g.tails, visible.Line(part.Why()))
	}
	return p.fold(text) + g.String() + p.fold(note)
}
