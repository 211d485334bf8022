package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/fold"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// head is the next record of a process, with its payload.
type head struct {
	process string
	ready   bool
	record  *processor.Record
	err     error
}

type headMsg struct{ head }

// askHead reads the next record of the open process, or hides it again.
func (m *model) askHead() tea.Cmd {
	s, ok := m.process()
	if !ok || !m.open {
		return nil
	}
	if m.head != nil {
		m.head = nil
		return nil
	}
	m.head = &head{process: s.Process}
	ctx, backend := m.ctx, m.backend
	return guarded(func() tea.Msg {
		record, err := backend.Next(ctx, s.Process, s.Position)
		return headMsg{head{process: s.Process, ready: true, record: record, err: err}}
	})
}

// detail returns the page of one process.
func (m *model) detail(s daemon.Status) []string {
	state := s.Word()
	trace := m.traces[s.Process]
	lines := []string{
		m.page.Paint(screen.Bold, visible.Line(s.Process)) + "  " + m.page.Paint(screen.StateColour(state), state),
		"",
	}
	field := func(name, text string) {
		const wide = 14
		indent := strings.Repeat(" ", wide)
		for i, line := range strings.Split(fold.Text(text, max(m.page.Width-wide, 20), ""), "\n") {
			if i == 0 {
				lines = append(lines, fmt.Sprintf("%-*s", wide, name)+line)
				continue
			}
			lines = append(lines, indent+line)
		}
	}
	field("waiting", fmt.Sprintf("%s, the oldest for %s", screen.Waiting(s), screen.Oldest(s)))
	field("rate", strings.TrimRight(trace.rateText()+"  "+trace.curve(curveWidth(m.page.Width)), " "))
	field("time left", trace.leftText())
	field("worker", screen.Dash(s.Worker()))
	field("last record", fmt.Sprintf("%s, number %d, epoch %d", screen.LastRecord(s), s.Sequence, s.Epoch))
	field("position", screen.Dash(visible.Cut(string(s.Position))))
	if f := s.Failure; f != nil {
		lines = append(lines, "")
		m.failure(s, *f, field)
	}
	if m.head != nil {
		return append(lines, m.payload()...)
	}
	lines = append(lines, "")
	for _, note := range s.Notes() {
		lines = append(lines, folded(visible.Inline(note), m.page.Width)...)
	}
	return lines
}

// failure describes the failing record.
func (m *model) failure(s daemon.Status, f cursor.Failure, field func(name, text string)) {
	field("failing", "record "+screen.Dash(visible.Cut(f.RecordID)))
	cause := visible.Line(string(f.Class))
	if said := visible.Line(f.Error); m.head != nil || !slices.ContainsFunc(s.Notes(), func(note string) bool { return strings.Contains(note, said) }) {
		cause += ": " + said // the notes below have it elsewhere
	}
	field("cause", cause)
	field("attempts", fmt.Sprintf("%d, the first %s, the last %s", f.Attempts, clock(f.First), clock(f.Last)))
	switch wait := f.Wait - max(0, m.now.Sub(m.seen)); {
	case m.halted():
		field("next attempt", "none until an operator decides")
	case wait > 0:
		field("next attempt", "in "+screen.Age(wait.Round(time.Second)))
	default:
		field("next attempt", "due")
	}
}

func (m *model) halted() bool {
	s, ok := m.process()
	return ok && s.State != cursor.Running
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// payload shows the next record, if it was asked for.
func (m *model) payload() []string {
	switch {
	case m.head == nil:
		return nil
	case !m.head.ready:
		return []string{"", "reading the next record …"}
	case m.head.err != nil:
		return append([]string{""}, folded("the record cannot be read: "+plain(m.head.err), m.page.Width)...)
	case m.head.record == nil:
		return []string{"", "no record waits after the cursor"}
	}
	r := m.head.record
	title := fmt.Sprintf("record %s, payload of %d bytes as the table has it:", visible.Short(r.ID), len(r.Payload))
	lines := append([]string{""}, folded(title, m.page.Width)...)
	for line := range strings.Lines(visible.Text(string(r.Payload))) {
		lines = append(lines, hard(strings.TrimRight(line, "\n"), m.page.Width)...)
		if len(lines) > m.high {
			break
		}
	}
	return lines
}
