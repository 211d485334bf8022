package console

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
)

const (
	// maxRows is how many rows a stream sends after one look. Those that have waited longest come first, so a fleet of
	// which all rows change does not keep the browser busy.
	maxRows = 120
	// writePatience is how long a viewer may take for one message.
	writePatience = 10 * time.Second
	// beat is how often a quiet stream shows that it lives.
	beat = 15 * time.Second
)

// part is a piece of a page. A stream sends it when its text has changed.
type part struct {
	event string // parts, rows, or an event with a text of its own
	id    string
	text  string
	shown bool // the page that asks shows it already
}

// part makes the part that a template of a page is for.
func (c *Console) part(page, name string, view any) part {
	return part{event: "parts", id: name, text: c.render(page, name, view)}
}

// rowPart makes a row of the fleet. Rows come in messages of their own, which console.js takes.
func (c *Console) rowPart(r row) part {
	return part{event: "rows", id: r.ID, text: c.render("fleet", "row", r)}
}

// setOf tells apart sets of processes: when some come or go, the page gets its table anew.
func setOf(lines []desk.Line) string {
	names := make([]string, 0, len(lines))
	for _, l := range lines {
		names = append(names, l.Process)
	}
	slices.Sort(names)
	return htmlID(strings.Join(names, "\x00"))
}

func (c *Console) render(page, name string, view any) string {
	var b bytes.Buffer
	if err := c.pages[page].ExecuteTemplate(&b, name, view); err != nil {
		c.log.Error("a part of a page could not be made", "page", page, "part", name, "err", err)
	}
	return b.String()
}

// memory is what a stream has sent.
type memory struct {
	digests map[string]uint64
	sentAt  map[string]int
	round   int
}

// news returns the parts that have changed since they were sent, and notes that they are sent.
func (m *memory) news(parts []part) []part {
	m.round++
	var fresh, rows []part
	for _, p := range parts {
		h := fnv.New64a()
		_, _ = io.WriteString(h, p.text)
		digest := h.Sum64()
		known, seen := m.digests[p.id]
		if p.shown && !seen {
			m.digests[p.id] = digest
			continue
		}
		if seen && known == digest {
			continue
		}
		if p.event == "rows" {
			rows = append(rows, p)
			continue
		}
		m.digests[p.id] = digest
		fresh = append(fresh, p)
	}
	slices.SortStableFunc(rows, func(a, b part) int { return m.sentAt[a.id] - m.sentAt[b.id] })
	for _, p := range rows[:min(len(rows), maxRows)] {
		h := fnv.New64a()
		_, _ = io.WriteString(h, p.text)
		m.digests[p.id], m.sentAt[p.id] = h.Sum64(), m.round
		fresh = append(fresh, p)
	}
	return fresh
}

// stream sends, after each look of the board, the parts that have changed, until the request ends. Package admin ends it
// with the right of the visitor.
func (c *Console) stream(w http.ResponseWriter, r *http.Request, process string, look func() ([]part, error)) {
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy in between must not wait for more
	send := func(text string) error {
		if err := control.SetWriteDeadline(time.Now().Add(writePatience)); err != nil {
			return err
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
		return control.Flush()
	}
	if send("retry: 2000\n\n") != nil {
		return
	}
	m := memory{digests: map[string]uint64{}, sentAt: map[string]int{}}
	ticks := c.desk.Watch(r.Context(), process)
	heart := time.NewTicker(beat)
	defer heart.Stop()
	for {
		select {
		case _, more := <-ticks:
			if !more {
				return
			}
			parts, err := look()
			if err != nil {
				c.log.Debug("a stream of the console got no answer", "err", err)
				continue // the next look may have one
			}
			if text := messages(m.news(parts)); text != "" && send(text) != nil {
				return
			}
		case <-heart.C:
			if send(": here\n\n") != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// messages writes parts as server-sent events, one for each kind.
func messages(parts []part) string {
	var b strings.Builder
	var kinds []string
	for _, p := range parts {
		if !slices.Contains(kinds, p.event) {
			kinds = append(kinds, p.event)
		}
	}
	for _, kind := range kinds {
		fmt.Fprintf(&b, "event: %s\n", kind)
		for _, p := range parts {
			if p.event != kind {
				continue
			}
			for line := range strings.SplitSeq(p.text, "\n") {
				fmt.Fprintf(&b, "data: %s\n", strings.TrimSuffix(line, "\r"))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
