package screen

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/fold"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Column is a column of a grid.
type Column struct {
	Title string
	Least int  // it may be shortened to so many characters; 0: it is never shortened
	Right bool // numbers are at the right
	Extra bool // it is left out where the grid does not fit with it, the last such column first
}

// Cell is one field of a grid.
type Cell struct{ Text, Colour string }

// Grid is a table that fits into the width of a page.
type Grid struct {
	page    Page
	columns []Column
	rows    [][]Cell
	// tail is a last column whose text is folded; "": there is none.
	tail  string
	tails []string // one for each row
	// below has lines under each row, which are folded on their own.
	below [][]string
}

const (
	gap       = 2
	leastTail = 24 // a tail in fewer columns goes below its row
	under     = "  "
)

// NewGrid returns a grid without rows.
func NewGrid(page Page, columns []Column) *Grid { return &Grid{page: page, columns: columns} }

// Add adds a row, with a cell for each column.
func (g *Grid) Add(cells ...Cell) {
	for i, c := range cells {
		cells[i].Text = visible.Inline(c.Text)
	}
	g.rows = append(g.rows, cells)
}

// String returns the lines.
func (g *Grid) String() string {
	widths := g.fit()
	room := g.room(widths)
	var b strings.Builder
	heads := make([]Cell, len(g.columns))
	for i, c := range g.columns {
		heads[i] = Cell{c.Title, Bold}
	}
	tail := ""
	if g.tail != "" && room > 0 {
		tail = g.tail
	}
	b.WriteString(g.line(heads, widths, g.page.Paint(Bold, tail)) + "\n")
	for i, row := range g.rows {
		text := ""
		if g.tail != "" {
			text = visible.Inline(g.tails[i])
		}
		if room > 0 {
			indent := strings.Repeat(" ", g.page.Width-room)
			b.WriteString(g.line(row, widths, strings.ReplaceAll(fold.Text(text, room, ""), "\n", "\n"+indent)) + "\n")
		} else {
			b.WriteString(g.line(row, widths, "") + "\n")
			if text != "" {
				b.WriteString(under + fold.Text(text, g.page.Width-len(under), under) + "\n")
			}
		}
		if g.below == nil {
			continue
		}
		for _, note := range g.below[i] {
			b.WriteString(fold.Text(under+note, g.page.Width, under+under) + "\n")
		}
	}
	return b.String()
}

// room returns how many columns the tail has; 0: it goes below, or there is none. A page of any width has room.
func (g *Grid) room(widths []int) int {
	switch left := g.page.Width - total(widths) - gap; {
	case g.tail == "":
		return 0
	case g.page.Width == 0:
		g.page.Width = unlimited
		return unlimited - total(widths) - gap
	case left >= leastTail:
		return left
	default:
		return 0
	}
}

// unlimited is a width that no line has.
const unlimited = 1 << 30

// fit drops and shortens columns until a line is no wider than the page. It returns their widths.
func (g *Grid) fit() []int {
	if len(g.columns) == 0 {
		return nil
	}
	widths := g.natural()
	for g.page.Width > 0 && total(widths) > g.page.Width {
		at := g.last()
		if at < 0 {
			break
		}
		g.drop(at)
		widths = g.natural()
	}
	for g.page.Width > 0 && total(widths) > g.page.Width {
		widest := -1
		for i, c := range g.columns {
			if c.Least > 0 && widths[i] > max(c.Least, len(c.Title)) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// last returns the last of the extra columns; -1 if there is none.
func (g *Grid) last() int {
	for i, c := range slices.Backward(g.columns) {
		if c.Extra {
			return i
		}
	}
	return -1
}

func (g *Grid) drop(at int) {
	g.columns = slices.Delete(slices.Clone(g.columns), at, at+1)
	for i, row := range g.rows {
		g.rows[i] = slices.Delete(slices.Clone(row), at, at+1)
	}
}

// natural returns the width of the widest cell of each column.
func (g *Grid) natural() []int {
	widths := make([]int, len(g.columns))
	for i, c := range g.columns {
		widths[i] = ansi.StringWidth(c.Title)
		for _, row := range g.rows {
			widths[i] = max(widths[i], ansi.StringWidth(row[i].Text))
		}
	}
	return widths
}

func total(widths []int) int {
	sum := gap * max(0, len(widths)-1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// line returns one line of the grid, without spaces at its end.
func (g *Grid) line(row []Cell, widths []int, tail string) string {
	var b strings.Builder
	for i, c := range row {
		text := Shorten(c.Text, widths[i])
		pad := strings.Repeat(" ", widths[i]-ansi.StringWidth(text))
		if i > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		if g.columns[i].Right {
			b.WriteString(pad + g.page.Paint(c.Colour, text))
		} else {
			b.WriteString(g.page.Paint(c.Colour, text) + pad)
		}
	}
	if tail != "" {
		b.WriteString(strings.Repeat(" ", gap) + tail)
	}
	return strings.TrimRight(b.String(), " ")
}

// Shorten returns a text in at most so many columns: its beginning and its end, with … between them.
func Shorten(text string, width int) string {
	size := ansi.StringWidth(text)
	if size <= width {
		return text
	}
	if width < 2 {
		return ansi.Truncate(text, width, "")
	}
	end := (width - 1) / 2
	return ansi.Truncate(text, width-1-end, "") + "…" + ansi.TruncateLeft(text, size-end, "")
}
