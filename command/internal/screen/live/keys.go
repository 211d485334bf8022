package live

import (
	tea "charm.land/bubbletea/v2"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// pressed takes a key. A dialog takes all of them but ctrl+c.
func (m *model) pressed(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case m.dialog != nil:
		cmd, done := m.dialog.pressed(key)
		if done {
			m.dialog = nil
		}
		return cmd
	case m.help:
		m.help = false
		return nil
	}
	switch name {
	case "q":
		return tea.Quit
	case "?":
		m.help = true
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.turn(-1)
	case "pgdown":
		m.turn(1)
	case "home", "g":
		m.move(-len(m.all))
	case "end", "G", "shift+g":
		m.move(len(m.all))
	case "enter", "right", "l":
		m.open, m.down = m.at() >= 0, 0
	case "esc", "left", "h", "backspace":
		m.open, m.head = false, nil
	case "v":
		return m.askHead()
	case "p":
		return m.begin(m.pauses())
	case "r":
		return m.begin(Retry)
	}
	return nil
}

// pauses returns what the key p does: a paused process is resumed.
func (m *model) pauses() Verb {
	if s, ok := m.process(); ok && s.State == cursor.Paused {
		return Resume
	}
	return Pause
}

// turn shows other lines of the open process, or moves in the list, by pages.
func (m *model) turn(pages int) {
	if m.open {
		m.down = max(0, m.down+pages*max(1, m.high-4)) // the frame bounds it
		return
	}
	m.move(pages * m.room())
}

// move goes to another process, which is open if this one is.
func (m *model) move(by int) {
	if len(m.all) == 0 {
		return
	}
	to := min(max(m.at()+by, 0), len(m.all)-1)
	if m.all[to].Process != m.chosen {
		m.chosen, m.head, m.down = m.all[to].Process, nil, 0
	}
}

// begin rehearses a decision about the chosen process.
func (m *model) begin(v Verb) tea.Cmd {
	s, ok := m.process()
	if !ok {
		return nil
	}
	d, cmd := newDialog(m.ctx, m.backend, v, s.Process)
	m.dialog = d
	return cmd
}
