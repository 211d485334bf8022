package screen

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// column is a column of a grid.
type column struct {
	title string
	least int  // it may be shortened to so many characters; 0: it is never shortened
	right bool // numbers stand at the right
	// extra columns are left out where the grid does not fit with them, the last one first.
	extra bool
}

// cell is one field of a grid.
type cell struct{ text, colour string }

// grid is a table that fits into the width of a page.
type grid struct {
	page    Page
	columns []column
	rows    [][]cell
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

// add adds a row.
func (g *grid) add(cells ...cell) {
	for i, c := range cells {
		cells[i].text = visible.Inline(c.text)
	}
	g.rows = append(g.rows, cells)
}

// String returns the lines.
func (g *grid) String() string {
	widths := g.fit()
	room := g.room(widths)
	var b strings.Builder
	heads := make([]cell, len(g.columns))
	for i, c := range g.columns {
		heads[i] = cell{c.title, bold}
	}
	tail := ""
	if g.tail != "" && room > 0 {
		tail = g.tail
	}
	b.WriteString(g.line(heads, widths, g.page.paint(bold, tail)) + "\n")
	for i, row := range g.rows {
		text := ""
		if g.tail != "" {
			text = visible.Inline(g.tails[i])
		}
		if room > 0 {
			indent := strings.Repeat(" ", g.page.Width-room)
			b.WriteString(g.line(row, widths, strings.ReplaceAll(Fold(text, room, ""), "\n", "\n"+indent)) + "\n")
		} else {
			b.WriteString(g.line(row, widths, "") + "\n")
			if text != "" {
				b.WriteString(under + Fold(text, g.page.Width-len(under), under) + "\n")
			}
		}
		if g.below == nil {
			continue
		}
		for _, note := range g.below[i] {
			b.WriteString(Fold(under+note, g.page.Width, under+under) + "\n")
		}
	}
	return b.String()
}

// room returns how many columns the tail has; 0: it goes below, or there is none. A page of any width has room.
func (g *grid) room(widths []int) int {
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
func (g *grid) fit() []int {
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
			if c.least > 0 && widths[i] > max(c.least, len(c.title)) && (widest < 0 || widths[i] > widths[widest]) {
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
func (g *grid) last() int {
	for i, c := range slices.Backward(g.columns) {
		if c.extra {
			return i
		}
	}
	return -1
}

func (g *grid) drop(at int) {
	g.columns = slices.Delete(slices.Clone(g.columns), at, at+1)
	for i, row := range g.rows {
		g.rows[i] = slices.Delete(slices.Clone(row), at, at+1)
	}
}

// natural returns the width of the widest cell of each column.
func (g *grid) natural() []int {
	widths := make([]int, len(g.columns))
	for i, c := range g.columns {
		widths[i] = ansi.StringWidth(c.title)
		for _, row := range g.rows {
			widths[i] = max(widths[i], ansi.StringWidth(row[i].text))
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
func (g *grid) line(row []cell, widths []int, tail string) string {
	var b strings.Builder
	for i, c := range row {
		text := shorten(c.text, widths[i])
		pad := strings.Repeat(" ", widths[i]-ansi.StringWidth(text))
		if i > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		if g.columns[i].right {
			b.WriteString(pad + g.page.paint(c.colour, text))
		} else {
			b.WriteString(g.page.paint(c.colour, text) + pad)
		}
	}
	if tail != "" {
		b.WriteString(strings.Repeat(" ", gap) + tail)
	}
	return strings.TrimRight(b.String(), " ")
}

// shorten returns a text in at most so many columns: its beginning and its end, with … between them.
func shorten(text string, width int) string {
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
