package live

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/quantity"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// View returns the frame.
func (m *model) View() tea.View {
	v := tea.NewView(m.frame())
	v.AltScreen = true
	v.WindowTitle = "ordered-dispatcher status"
	return v
}

// frame returns the lines of the screen: a first line, the page, and a last line with the keys.
func (m *model) frame() string {
	body, keys := m.body()
	room := max(0, m.high-2)
	scrolls := m.open && m.dialog == nil && !m.help
	if scrolls {
		m.down = max(0, min(m.down, len(body)-room))
		body = body[m.down:]
	}
	if len(body) > room {
		body = append(body[:max(0, room-1)], "…")
		if scrolls && room > 0 {
			body[room-1] = "… PgDn shows the rest"
		}
	}
	for len(body) < room {
		body = append(body, "")
	}
	lines := append([]string{m.first()}, body...)
	lines = append(lines, m.page.Paint(screen.Faint, keys))
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, m.page.Width, "…")
	}
	return strings.Join(lines[max(0, len(lines)-m.high):], "\n")
}

// body returns the page, and the keys that it has.
func (m *model) body() (lines []string, keys string) {
	s, ok := m.process()
	switch {
	case m.dialog != nil:
		return m.dialog.lines(m.page), ""
	case m.help:
		return strings.Split(help, "\n"), "any key: back"
	case m.open && ok:
		return m.detail(s), "esc back   ↑↓ other process   v payload   p " + string(m.pauses()) + "   r retry   ? help   q quit"
	default:
		return m.fleet(), "↑↓ move   enter open   p " + string(m.pauses()) + "   r retry   ? help   q quit"
	}
}

const help = `
  ↑ ↓  k j     move to another process; also PgUp, PgDn, Home, End
               (in a process, PgUp and PgDn show its other lines)
  enter        open the process: its failing record, attempts, next attempt
  esc          back
  v            in a process: show the payload of the next record, or hide it
  p            pause the process, or resume it
  r            try the failing record again, or let a halted process go on
  ?            this page
  q  ctrl+c    quit; a decision that waits for its worker may be done then

  p and r first show what they would do. Then they ask for the reason, which
  the history keeps. A retry does nothing if the cursor has moved since.

  What needs a person comes first: halted, cannot read, failing, no worker.
  LEFT is how long the records that wait take, if they become fewer as in the
  last half minute. The curve has the rate of the last two minutes.`

// first returns the line at the top: how many processes are in which state, and when that was seen.
func (m *model) first() string {
	if m.away != nil {
		text := fmt.Sprintf("no answer from the database since %s: %s", m.away.since.UTC().Format("15:04:05"), m.away.text)
		return m.page.Paint(screen.Red, ansi.Truncate(text, m.page.Width, "…"))
	}
	if m.seen.IsZero() {
		return "asking the database …"
	}
	left := m.page.Paint(screen.Bold, quantity.Of(len(m.all), "process"))
	counts := map[string]int{}
	var order []string
	for _, s := range m.all {
		state := s.Word()
		if counts[state] == 0 {
			order = append(order, state)
		}
		counts[state]++
	}
	for i, state := range order {
		sign := ", "
		if i == 0 {
			sign = ": "
		}
		left += sign + m.page.Paint(screen.StateColour(state), fmt.Sprintf("%d %s", counts[state], state))
	}
	right := m.seen.UTC().Format("15:04:05Z")
	if behind := m.now.Sub(m.seen); behind > 3*screen.WatchInterval {
		right = "seen " + screen.Age(behind.Round(screen.WatchInterval)) + " ago"
	}
	space := max(2, m.page.Width-ansi.StringWidth(left)-len(right))
	return left + strings.Repeat(" ", space) + right
}

// notesRoom is how many lines below the list explain the chosen process.
func (m *model) notesRoom() int { return min(8, max(0, (m.high-4)/2)) }

// room returns how many processes the list shows.
func (m *model) room() int { return max(1, m.high-3-m.notesRoom()-1) }

// curveWidth returns how many columns a curve takes.
func curveWidth(page int) int {
	if page < 100 {
		return 12
	}
	return 24
}

// fleet returns the list of all processes, and what is known of the chosen one.
func (m *model) fleet() []string {
	if len(m.all) == 0 {
		switch {
		case m.away != nil:
			return append([]string{""}, folded(m.away.text, m.page.Width)...)
		case m.seen.IsZero():
			return nil
		}
		return []string{"", "no cursors yet: the first `ordered-dispatcher run` makes one for each process"}
	}
	at, room := max(0, m.at()), m.room()
	m.top = min(max(m.top, at-room+1), at)
	m.top = max(0, min(m.top, len(m.all)-room))
	rows := m.all[m.top:min(len(m.all), m.top+room)]
	lines := m.list(rows)
	for len(lines) < room+1 {
		lines = append(lines, "")
	}
	if rest := len(m.all) - m.top - len(rows); rest > 0 || m.top > 0 {
		lines = append(lines, m.page.Paint(screen.Faint, fmt.Sprintf("%d to %d of %d", m.top+1, m.top+len(rows), len(m.all))))
	} else {
		lines = append(lines, "")
	}
	var notes []string
	for _, note := range m.all[at].Notes() {
		notes = append(notes, folded(visible.Inline(note), m.page.Width)...)
	}
	if n := m.notesRoom(); len(notes) > n {
		notes = append(notes[:max(0, n-1)], "… enter shows all of it")
	}
	return append(lines, notes...)
}

// list returns the lines of some processes, with their titles.
func (m *model) list(rows []daemon.Status) []string {
	wide := m.page.Width >= 100
	columns := []screen.Column{{Title: "  PROCESS", Least: 12}, {Title: "STATE"}, {Title: "WAITING", Right: true}, {Title: "OLDEST", Right: true},
		{Title: "RATE", Right: true}, {Title: "2 MINUTES"}, {Title: "LEFT", Right: true}}
	if wide {
		columns = append(columns, screen.Column{Title: "WORKER", Least: 8}, screen.Column{Title: "LAST-RECORD", Least: 11})
	}
	grid := screen.NewGrid(m.page, columns)
	for _, s := range rows {
		state, trace := s.Word(), m.traces[s.Process]
		mark := "  "
		if s.Process == m.chosen {
			mark = "> "
		}
		cells := []screen.Cell{{Text: mark + visible.Line(s.Process)}, {Text: state, Colour: screen.StateColour(state)}, {Text: screen.Waiting(s)}, {Text: screen.Oldest(s)},
			{Text: trace.rateText()}, {Text: trace.curve(curveWidth(m.page.Width)), Colour: screen.Cyan}, {Text: trace.leftText()}}
		if wide {
			cells = append(cells, screen.Cell{Text: screen.Dash(s.Worker())}, screen.Cell{Text: screen.LastRecord(s)})
		}
		grid.Add(cells...)
	}
	lines := strings.Split(strings.TrimRight(grid.String(), "\n"), "\n")
	for i, s := range rows {
		if s.Process == m.chosen && m.page.Colour {
			lines[i+1] = m.page.Paint(screen.Reverse, ansi.Strip(lines[i+1]))
		}
	}
	return lines
}

// hard breaks a line that may have no spaces.
func hard(line string, width int) []string {
	return strings.Split(ansi.Hardwrap(line, max(1, width), true), "\n")
}
