package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Process is everything about one process.
type Process struct {
	Line
	// At is when the board looked last, and Since is when its memory begins.
	At    time.Time `json:"at"`
	Since time.Time `json:"since"`
	// Problem is why the last look failed; "" if it did not. All else is of the look before then.
	Problem string `json:"problem"`
	// Head is the first record that waits; nil if none does, or it is not known: see HeadProblem.
	Head *Record `json:"head"`
	// HeadProblem is why Head, the last deliveries or History is not known; "" if all are. What could be read is beside it.
	HeadProblem string `json:"head_problem"`
	// Failure is what went wrong with the record at the head; nil if nothing did.
	Failure *Failure `json:"failure"`
	// HeldBy are the transactions that hold records back now, the oldest first.
	HeldBy []Holder `json:"held_by"`
	// Held is what held the process up in the last 24 hours, the newest first, as far as the board looked: see Since.
	Held []Span `json:"held"`
	// History are the last events, the newest first.
	History []Event `json:"history"`
	// Series are the last 15 minutes, the oldest first.
	Series []Point `json:"series"`
	// Backfill is how far a process has come that is long behind; nil if it is not.
	Backfill *Backfill `json:"backfill"`
	// Limit is the limit in the file, such as "50/s"; "" if there is none.
	Limit string `json:"limit"`
	// Verbs are the decisions that make sense now. Others may be tried, too.
	Verbs []Verb `json:"verbs"`
}

// Holder is a transaction that holds the fence.
type Holder struct {
	PID         int        `json:"pid"`
	GID         string     `json:"gid"`
	Application string     `json:"application"`
	User        string     `json:"user"`
	Since       *time.Time `json:"since"`
	State       string     `json:"state"`
	Command     string     `json:"command"`
	// Text is a sentence with all of it, Next what to do, and SQL what goes with that; "" if there is none.
	Text string `json:"text"`
	Next string `json:"next"`
	SQL  string `json:"sql"`
}

// Span is a time in which something held a process up.
type Span struct {
	Cause Cause  `json:"cause"`
	Kind  string `json:"kind"`
	// From and To are the looks that saw it first and last.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Open reports that it still does.
	Open bool `json:"open"`
	// Text is what the last of these looks said.
	Text string `json:"text"`
	// Who is the session that held the fence; "" for another cause.
	Who string `json:"who"`
}

// Point is one moment of a series. What was not known then is nil.
type Point struct {
	At time.Time `json:"at"`
	// Rate is records a second.
	Rate *float64 `json:"rate"`
	// Waiting is how many records wait, and Age the seconds since the oldest was created.
	Waiting *int64   `json:"waiting"`
	Age     *float64 `json:"age"`
	// Latency is how many seconds passed between the creation and the delivery of the last record.
	Latency *float64 `json:"latency"`
	Cause   Cause    `json:"cause"`
}

// Backfill is how far a process has come.
type Backfill struct {
	// From is when the board saw it begin.
	From time.Time `json:"from"`
	// Done and Left are numbers of records. Left is an estimate if Estimated is set.
	Done      int64 `json:"done,string"`
	Left      int64 `json:"left,string"`
	Estimated bool  `json:"estimated"`
	// Part is between 0 and 1.
	Part float64 `json:"part"`
	// TimeLeft is in seconds; nil if it is not known, as while nothing moves.
	TimeLeft *float64 `json:"time_left_seconds"`
}

// Event is one row of the audit.
type Event struct {
	ID       int64     `json:"id,string"`
	At       time.Time `json:"at"`
	Process  string    `json:"process"`
	Actor    string    `json:"actor"`
	User     string    `json:"db_user"`
	Action   string    `json:"action"`
	Reason   string    `json:"reason"`
	From     string    `json:"from_position"`
	To       string    `json:"to_position"`
	RecordID string    `json:"record_id"`
	// Detail is a JSON object.
	Detail json.RawMessage `json:"detail"`
}

// Process returns everything about one process. If nobody watches it, it makes a look first; where that fails, At is
// the time of the one before. For a name that is not known it returns an Error of KindUnknown.
func (d *Desk) Process(ctx context.Context, process string, sight Sight) (Process, error) {
	if !d.board.mayKnow(process) {
		d.board.await(ctx, "")
	}
	if d.board.mayKnow(process) {
		d.board.await(ctx, process)
	}
	return d.board.process(process, sight, time.Now())
}

// mayKnow reports whether the last look has seen a process.
func (b *board) mayKnow(process string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.memories[process] != nil
}

func (b *board) process(name string, sight Sight, now time.Time) (Process, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.memories[name]
	switch {
	case b.at.IsZero():
		return Process{}, b.away()
	case m == nil:
		return Process{}, &Error{Kind: KindUnknown, Text: "there is no process " + visible.Quoted(name) + ", neither in the file nor in the database"}
	}
	p := Process{
		Line: m.line(b.seen, now), At: b.at.UTC(), Since: b.since.UTC(), Problem: b.problem, HeadProblem: m.headProblem, Failure: m.failure(now),
		HeldBy: []Holder{}, Held: []Span{}, History: sight.events(m.history), Series: m.series(), Backfill: m.progress(now), Limit: limitText(m.file.Limit), Verbs: m.verbs(),
	}
	if m.head != nil {
		if moved := m.headMoved(); moved != "" {
			p.HeadProblem = moved
		} else {
			head := sight.seen(*m.head)
			p.Head = &head
		}
	}
	if p.History == nil {
		p.History = []Event{}
	}
	for _, w := range m.status.Holding {
		h := m.status.HeldBy(w)
		p.HeldBy = append(p.HeldBy, Holder{w.PID, w.GID, w.Application, w.User, moment(w.Since), w.State, w.Command, visible.Inline(h.Text), visible.Inline(h.Next), visible.Inline(h.SQL)})
	}
	for _, s := range slices.Backward(m.spans) {
		s.From, s.To = s.From.UTC(), s.To.UTC()
		p.Held = append(p.Held, s)
	}
	return p, nil
}

// headMoved is why the head is not the record that a decision is about; "" if it is. A look reads the rows first, and
// the records a moment later.
func (m *memory) headMoved() string {
	at, f := cursor.Position(m.head.Position), m.row.Failure
	switch {
	case at <= m.row.Position:
		return "the cursor has moved past it since it was read: ask again in a moment"
	case f != nil && !f.OfServer() && f.Position != at:
		return "the record that failed is not the next one: its row is gone, or the next one is read in a moment"
	default:
		return ""
	}
}

// failure is what went wrong with the record at the head; nil if nothing did.
func (m *memory) failure(now time.Time) *Failure {
	if m.row.Failure == nil {
		return nil
	}
	f := failureOf(*m.row.Failure)
	f.NextIn = max(0, f.NextIn-now.Sub(m.rowAt).Seconds())
	return &f
}

// series are the points of the last minutes: one for each SparkStep, and then one for each look at the process.
func (m *memory) series() []Point {
	all := []Point{}
	for _, b := range m.buckets {
		if len(m.points) == 0 || b.point.At.Before(m.points[0].At) && !b.point.At.IsZero() {
			all = append(all, b.point)
		}
	}
	all = append(all, m.points...)
	for i := range all {
		all[i].At = all[i].At.UTC()
	}
	return all
}

// limitText writes a limit as the file has it; "" for none.
func limitText(l processor.Limit) string {
	unit := map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h"}[l.Per]
	switch {
	case l.Records == 0:
		return ""
	case unit == "":
		return fmt.Sprintf("%d in %v", l.Records, l.Per)
	default:
		return fmt.Sprintf("%d/%s", l.Records, unit)
	}
}

// verbs are the decisions that make sense in the state of the process.
func (m *memory) verbs() []Verb {
	f := m.row.Failure
	verbs := []Verb{}
	if f != nil {
		verbs = append(verbs, Retry)
		if !f.OfServer() && !f.OfUs() {
			verbs = append(verbs, Skip)
		}
	}
	switch m.row.State {
	case cursor.Paused:
		verbs = append(verbs, Resume)
	case cursor.Running:
		verbs = append(verbs, Pause)
	}
	if m.row.UpdatedAt.IsZero() && m.configured {
		verbs = append(verbs, Pause)
	}
	if m.configured {
		verbs = append(verbs, Seek)
	}
	return verbs
}
