package screen

import (
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/fold"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// DefaultWidth is the number of columns where neither COLUMNS nor a terminal gives one.
const DefaultWidth = 80

// Page is where people read.
type Page struct {
	w io.Writer
	// Width is the number of columns; 0: lines may have any length.
	Width int
	// Colour tells whether states and severities have colours.
	Colour bool
}

// Env looks up a variable of the environment.
type Env func(name string) (value string, ok bool)

// NewPage returns the page of a writer. COLUMNS is the width, or else the terminal has one. There are colours on a
// terminal, unless NO_COLOR is set or TERM is dumb.
func NewPage(w io.Writer, env Env) Page {
	return Page{w: w, Width: width(w, env), Colour: Terminal(w) && colours(env)}
}

// Wide returns the page without a limit on the length of lines.
func (p Page) Wide() Page {
	p.Width = 0
	return p
}

// On returns the page on another writer.
func (p Page) On(w io.Writer) Page {
	p.w = w
	return p
}

// Terminal reports whether a reader or a writer is a terminal. The null device is none.
func Terminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Moves reports whether w is a terminal on which text can be replaced.
func Moves(w io.Writer, env Env) bool { return Terminal(w) && !dumb(env) }

func width(w io.Writer, env Env) int {
	text, _ := env("COLUMNS")
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return n
	}
	if file, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(file.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return DefaultWidth
}

func colours(env Env) bool {
	no, _ := env("NO_COLOR")
	return no == "" && !dumb(env)
}

func dumb(env Env) bool {
	terminal, _ := env("TERM")
	return terminal == "dumb"
}

// print writes text that may contain colours of ours. Everything else in it has gone through package visible.
func (p Page) print(text string) error {
	_, err := io.WriteString(p.w, text)
	return err
}

// Write folds whole lines of plain text for people. Each call begins a line.
func (p Page) Write(text []byte) (int, error) {
	if err := p.print(p.fold(visible.Text(string(text)))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// fold folds each line. What follows the first line of each is indented a little more than it.
func (p Page) fold(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(line, "\n")
		if excerpt.MatchString(body) {
			b.WriteString(line)
			continue
		}
		b.WriteString(fold.Text(body, p.Width, leading(body)+under))
		b.WriteString(line[len(body):])
	}
	return b.String()
}

// hang folds a text after a head. Each further line begins under the first word of the text.
func (p Page) hang(head, text string) string {
	return fold.After(head, text, p.Width) + "\n"
}

// excerpt is a line of a file that a message shows, or the line that points into it.
var excerpt = regexp.MustCompile(`^[> ]*[0-9]* *(\||\^)`)

func leading(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " "))] }

// The colours, as the terminal's own theme shows them.
const (
	Bold    = "1"
	Faint   = "2"
	Reverse = "7"
	Red     = "31"
	Green   = "32"
	Yellow  = "33"
	Cyan    = "36"
)

// Paint colours a text; "" leaves it as it is.
func (p Page) Paint(colour, text string) string {
	if !p.Colour || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
