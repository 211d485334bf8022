package screen

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// Bar is one line at the bottom of a terminal, below what is written to it. A nil Bar shows nothing.
type Bar struct {
	w    io.Writer
	env  Env
	mu   sync.Mutex
	text string // of the line; "": there is none
}

// eraseLine goes to the beginning of the line, and erases it.
const eraseLine = "\r\x1b[K"

// NewBar returns a bar at the bottom of a terminal; nil if w is none, or cannot replace a line.
func NewBar(w io.Writer, env Env) *Bar {
	if !Moves(w, env) {
		return nil
	}
	return &Bar{w: w, env: env}
}

// Write writes whole lines above the bar.
func (b *Bar) Write(lines []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text == "" {
		return b.w.Write(lines)
	}
	if _, err := fmt.Fprintf(b.w, "%s%s%s", eraseLine, lines, b.text); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// Show replaces the line. "" removes it.
func (b *Bar) Show(text string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if text == "" && b.text == "" {
		return
	}
	b.text = ansi.Truncate(text, max(1, width(b.w, b.env)-1), "…") // in the last column, some terminals begin a line
	fmt.Fprint(b.w, eraseLine+b.text)
}

// Width returns the columns of the terminal.
func (b *Bar) Width() int { return width(b.w, b.env) }

// Progress is how far a drain is.
type Progress struct {
	// Delivered is the number of records that were delivered since the start, of Total that waited then.
	Delivered, Total int64
	// More means that there were more than Total.
	More bool
	// Rate is the number of records in a second, lately.
	Rate float64
}

// Line returns the progress as one line, with a bar that fills its width.
func (p Progress) Line(width int) string {
	of := fmt.Sprint(p.Total)
	if p.More {
		of += "+"
	}
	text := fmt.Sprintf("%d of %s records, %s", p.Delivered, of, Rate(p.Rate))
	if left, ok := p.left(); ok {
		text += ", " + Age(left) + " left"
	}
	room := min(40, width-len(text)-4)
	if room < 5 || p.Total == 0 {
		return text
	}
	full := int(min(p.Delivered, p.Total) * int64(room) / p.Total)
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", room-full) + "] " + text
}

func (p Progress) left() (time.Duration, bool) {
	if p.Rate <= 0 || p.More || p.Delivered >= p.Total {
		return 0, false
	}
	return time.Duration(float64(p.Total-p.Delivered) / p.Rate * float64(time.Second)).Round(time.Second), true
}
