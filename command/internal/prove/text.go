package prove

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/fold"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// page collects an output for people, in lines of a width; 0: they may have any length.
type page struct {
	strings.Builder
	width int
}

// say adds a paragraph, folded. Lines after the first one have the indent, too.
func (p *page) say(indent, format string, args ...any) {
	p.WriteString(fold.Text(indent+fmt.Sprintf(format, args...), p.width, indent) + "\n")
}

// gap adds an empty line.
func (p *page) gap() { p.WriteByte('\n') }

func (p *page) to(w io.Writer) error {
	_, err := io.WriteString(w, visible.Text(p.String()))
	return err
}

// quoted is a name that others gave, as one word of a line: fold does not break it.
func quoted(text string) string { return `"` + visible.Short(text) + `"` }

// listed is how many rows are listed for people.
const listed = 10

// list adds rows, one a line.
func (p *page) list(rows []Row, total int) {
	shown := rows[:min(len(rows), listed)]
	for _, r := range shown {
		p.WriteString("  " + r.String() + "\n")
	}
	if rest := total - len(shown); rest > 0 {
		p.say("  ", "and %d more", rest)
	}
}

// String names a row by its id, with the time if there is one.
func (r Row) String() string {
	name := visible.Short(r.ID)
	if r.Created != nil {
		name += " of " + r.Created.Format(time.RFC3339Nano)
	}
	return name
}

func round(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}
