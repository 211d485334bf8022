package live

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// model is the state of the view.
type model struct {
	ctx     context.Context // of the program; bubbletea's model has no other place for it
	backend Backend
	page    screen.Page // its width and its colours
	high    int         // lines of the terminal

	all     []daemon.Status // of the last look that succeeded, what needs attention first
	traces  map[string]trace
	now     time.Time // of the last tick or look
	seen    time.Time // of that look; zero: there was none yet
	looking bool      // a look is on its way
	away    *away     // the database does not answer

	chosen string // the process under the cursor
	top    int    // the first line of the list that is shown
	down   int    // lines of the open process above those that are shown
	open   bool   // the chosen process fills the page
	head   *head  // its next record, if it was asked for
	dialog *dialog
	help   bool
	err    error // ends the view
}

// away is a database that does not answer.
type away struct {
	since time.Time
	text  string
}

// The messages.
type (
	tickMsg time.Time
	lookMsg struct {
		at  time.Time // when the rows were read, or the look failed
		all []daemon.Status
		err error
	}
)

func newModel(ctx context.Context, backend Backend, page screen.Page) *model {
	return &model{ctx: ctx, backend: backend, page: page, high: 24, traces: map[string]trace{}}
}

// Init begins the first look.
func (m *model) Init() tea.Cmd {
	m.looking = true
	return tea.Batch(guarded(m.look), tick())
}

func tick() tea.Cmd {
	return tea.Tick(screen.WatchInterval, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// look asks the database. It runs beside the view.
func (m *model) look() tea.Msg {
	all, err := m.backend.Look(m.ctx)
	if err != nil {
		return lookMsg{at: time.Now(), err: err}
	}
	return lookMsg{at: daemon.CountOf(all).At, all: all}
}

// Update takes a message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.page.Width, m.high = msg.Width, msg.Height
	case tickMsg:
		return m, m.ticked(time.Time(msg))
	case lookMsg:
		return m, m.looked(msg)
	case headMsg:
		if m.head != nil && m.head.process == msg.process {
			m.head = &msg.head
		}
	case outcomeMsg:
		if m.dialog != nil {
			m.dialog.answered(msg)
		}
	case tea.PasteMsg:
		if m.dialog != nil {
			m.dialog.write(msg.Content)
		}
	case tea.KeyPressMsg:
		return m, m.pressed(msg)
	case *fault:
		m.err = msg
		return m, tea.Quit
	}
	return m, nil
}

// ticked begins the next look, unless one is on its way.
func (m *model) ticked(now time.Time) tea.Cmd {
	m.now = now
	if m.looking {
		return tick()
	}
	m.looking = true
	return tea.Batch(guarded(m.look), tick())
}

// looked takes the answer of a look. Without one, the last look stays.
func (m *model) looked(msg lookMsg) tea.Cmd {
	m.looking = false
	if msg.at.After(m.now) {
		m.now = msg.at
	}
	var usage *daemon.UsageError
	switch {
	case errors.As(msg.err, &usage):
		m.err = msg.err
		return tea.Quit
	case msg.err != nil && m.away == nil:
		m.away = &away{since: msg.at, text: plain(msg.err)}
		return nil
	case msg.err != nil:
		m.away.text = plain(msg.err)
		return nil
	}
	m.away, m.seen = nil, msg.at
	m.all = slices.Clone(msg.all)
	slices.SortStableFunc(m.all, urgent)
	traces := map[string]trace{}
	for _, s := range m.all {
		traces[s.Process] = m.traces[s.Process].add(msg.at, s)
	}
	m.traces = traces
	if m.at() < 0 && len(m.all) > 0 {
		m.chosen, m.open, m.head, m.down = m.all[0].Process, false, nil, 0
	}
	return nil
}

// urgent orders processes: first what needs a person, then what may need one, then the rest, each by name.
func urgent(a, b daemon.Status) int {
	if d := urgency(a) - urgency(b); d != 0 {
		return d
	}
	return strings.Compare(a.Process, b.Process)
}

func urgency(s daemon.Status) int {
	switch state := s.Word(); {
	case state == "halted" || state == "cannot read":
		return 0
	case state == "failing" || state == "no worker":
		return 1
	case s.State == cursor.Running && s.Hold != nil:
		return 2
	case s.New:
		return 3
	case s.State == cursor.Paused:
		return 4
	default:
		return 5
	}
}

// at returns the place of the chosen process; -1 if it is gone.
func (m *model) at() int {
	return slices.IndexFunc(m.all, func(s daemon.Status) bool { return s.Process == m.chosen })
}

// process returns the chosen process; false if there is none.
func (m *model) process() (daemon.Status, bool) {
	at := m.at()
	if at < 0 {
		return daemon.Status{}, false
	}
	return m.all[at], true
}
