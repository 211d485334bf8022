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
	// maxRows is how many rows a stream makes and sends after one look. Those that have waited longest come first, so a
	// fleet of which all rows change keeps neither the daemon nor the browser busy.
	maxRows = 120
	// writePatience is how long a viewer may take for one message.
	writePatience = 10 * time.Second
	// beat is how often a quiet stream shows that it lives.
	beat = 15 * time.Second
)

// part is a piece of a page. A stream sends it when it has changed.
type part struct {
	event string // parts, rows, or an event with a text of its own
	id    string
	// basis is a digest of the data that the part shows. While it is the same, the part is not made again.
	basis uint64
	make  func() string
	shown bool // the page that asks shows it already
}

// text is a part that is made already.
func text(event, id, content string) part {
	return part{event: event, id: id, basis: digest(content), make: func() string { return content }}
}

// part makes the part that a template of a page is for.
func (c *Console) part(page, name string, view any) part {
	return text("parts", name, c.render(page, name, view))
}

// rowPart makes a row of the fleet. Rows come in messages of their own, which console.js takes.
func (c *Console) rowPart(l desk.Line) part {
	return part{event: "rows", id: rowID(l), basis: basisOf(l), make: func() string { return c.render("fleet", "row", newRow(l)) }}
}

func digest(text string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, text) // never fails: see hash.Hash
	return h.Sum64()
}

// basisOf is the basis of the row of a process: a digest of the data that the row shows. In a large fleet it would take
// long to make all rows after each look.
func basisOf(l desk.Line) uint64 {
	h := fnv.New64a()
	write := func(values ...any) {
		for _, v := range values {
			_, _ = fmt.Fprintf(h, "%v\x00", v) // never fails: see hash.Hash
		}
	}
	write(l.State, l.Worker, l.Need != nil, known(l.Rate))
	for _, v := range l.Spark {
		write(known(v))
	}
	if l.Waiting != nil {
		write(l.Waiting.Records, l.Waiting.Capped, known(l.Waiting.Seconds), l.Waiting.Split)
	}
	if l.Hold != nil {
		write(l.Hold.Cause)
	}
	return h.Sum64()
}

// known is a number, or -1 where it is not known.
func known(v *float64) float64 {
	if v == nil {
		return -1
	}
	return *v
}

// setOf returns an id of a set of processes. When some come or go, the id is another one, and the page gets a new table.
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
	sent  map[string]sent
	round int
}

// sent is the last version of a part that the page has. text is 0 if the page had it before the stream began.
type sent struct {
	basis, text uint64
	round       int
}

func newMemory() *memory { return &memory{sent: map[string]sent{}} }

// news returns the parts that have changed since they were sent, and notes that they are sent.
func (m *memory) news(parts []part) []message {
	m.round++
	var fresh []message
	var rows []part
	for _, p := range parts {
		last, seen := m.sent[p.id]
		switch {
		case p.shown && !seen:
			m.sent[p.id] = sent{basis: p.basis}
		case seen && last.basis == p.basis:
		case p.event == "rows":
			rows = append(rows, p)
		default:
			fresh = m.add(fresh, p)
		}
	}
	slices.SortStableFunc(rows, func(a, b part) int { return m.sent[a.id].round - m.sent[b.id].round })
	for _, p := range rows[:min(len(rows), maxRows)] {
		fresh = m.add(fresh, p)
	}
	return fresh
}

// add makes a part, and adds it unless it reads as it did before.
func (m *memory) add(fresh []message, p part) []message {
	content := p.make()
	now := sent{p.basis, digest(content), m.round}
	same := m.sent[p.id].text == now.text
	m.sent[p.id] = now
	if same {
		return fresh
	}
	return append(fresh, message{p.event, p.id, content})
}

// message is a part that is sent.
type message struct{ event, id, text string }

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
	m := newMemory()
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
func messages(parts []message) string {
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
