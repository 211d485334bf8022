package prove

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// width is the number of columns that every output for people fits into, if no single word is longer.
const width = 80

// page collects an output for people.
type page struct{ strings.Builder }

// say adds a paragraph, folded. Lines after the first one have the indent, too.
func (p *page) say(indent, format string, args ...any) {
	p.WriteString(fold(fmt.Sprintf(format, args...), indent))
}

// gap adds an empty line.
func (p *page) gap() { p.WriteByte('\n') }

func (p *page) to(w io.Writer) error {
	_, err := io.WriteString(w, visible.Text(p.String()))
	return err
}

// fold breaks a text between words, so that its lines fit into the width.
func fold(text, indent string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
			b.WriteString(indent)
			column = len(indent) + n
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = len(indent) + n
		default:
			b.WriteByte(' ')
			column += 1 + n
		}
		b.WriteString(word)
	}
	b.WriteByte('\n')
	return b.String()
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
