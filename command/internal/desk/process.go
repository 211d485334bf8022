package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Sight is how much of a record a viewer may see.
type Sight int

// The sights.
const (
	// Masked hides headers and payload.
	Masked Sight = iota
	// Full shows everything.
	Full
)

// Process is everything about one process.
type Process struct {
	Line
	// At is when the board looked last, and Since is when its memory begins.
	At    time.Time `json:"at"`
	Since time.Time `json:"since"`
	// Head is the first record that waits; nil if none does, or it is not known: see HeadProblem.
	Head *Record `json:"head"`
	// HeadProblem is why Head is not known; "" if it is.
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

// Record is a record of a source.
type Record struct {
	Position  string     `json:"position"`
	Table     string     `json:"table"`
	ID        string     `json:"id"`
	Key       string     `json:"key"`
	Type      string     `json:"type"`
	CreatedAt *time.Time `json:"created_at"`
	DedupKey  string     `json:"dedup_key"`
	// Headers and Payload are empty if they are Masked.
	Headers map[string]string `json:"headers"`
	// Payload is cut after MaxPayload bytes: Cut reports that.
	Payload string `json:"payload"`
	Cut     bool   `json:"cut"`
	// PayloadBytes is the size of the payload; 0 if it was not read.
	PayloadBytes int `json:"payload_bytes"`
	// Masked reports that headers and payload are left out, because the viewer may not see them or the answer never has
	// them. Withheld reports that the role of the database may not read them.
	Masked   bool `json:"masked"`
	Withheld bool `json:"withheld"`
	// Fault is why the source could not read the record; "" if it could.
	Fault string `json:"fault"`
}

// MaxPayload bounds the payload of one record.
const MaxPayload = 64 << 10

// Failure is what went wrong with a record.
type Failure struct {
	RecordID string    `json:"record_id"`
	Position string    `json:"position"`
	Attempts int       `json:"attempts"`
	First    time.Time `json:"first_failed_at"`
	Last     time.Time `json:"last_failed_at"`
	// NextIn is in how many seconds the next attempt comes; 0 if it is due.
	NextIn float64 `json:"next_attempt_in_seconds"`
	// Error is what the receiver said.
	Error string `json:"error"`
	// Class is the class of the error, as cursor.Class has it.
	Class string `json:"class"`
	// Permanent reports that no worker tries the record again by itself.
	Permanent bool `json:"permanent"`
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

// Process returns everything about one process. If nobody watches it, it makes a look first. For a name that is not
// known it returns an Error of KindUnknown.
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
		Line: m.line(b.seen, now), At: b.at.UTC(), Since: b.since.UTC(), HeadProblem: m.headProblem, Failure: m.failure(now),
		HeldBy: []Holder{}, Held: []Span{}, History: sight.events(m.history), Series: m.series(), Backfill: m.progress(now), Limit: limitText(m.file.Limit), Verbs: m.verbs(),
	}
	if m.head != nil {
		if p.HeadProblem = m.headMoved(); p.HeadProblem == "" {
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

func failureOf(f cursor.Failure) Failure {
	return Failure{
		RecordID: f.RecordID, Position: string(f.Position), Attempts: f.Attempts, First: f.First.UTC(), Last: f.Last.UTC(), NextIn: f.Wait.Seconds(),
		Error: visible.Inline(f.Error), Class: string(f.Class), Permanent: f.Class == cursor.ClassPermanent || f.Class == cursor.ClassUnreadable,
	}
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

// Tail are the records that a process delivered after a position, the oldest first.
type Tail struct {
	Records []Record `json:"records"`
	// Next is the position to ask from next.
	Next string `json:"next"`
	// More reports that there are more than were asked for: those in between were left out.
	More bool `json:"more"`
}

// MaxTail bounds the number of records of one Tail.
const MaxTail = 100

// Tail returns the last records, at most limit, that a process has delivered after a position; "" begins now, with the
// last ones. They come without headers and payload.
func (d *Desk) Tail(ctx context.Context, process, after string, limit int) (Tail, error) {
	if _, err := d.Process(ctx, process, Masked); err != nil {
		return Tail{}, err
	}
	return d.board.tail(process, after, min(max(limit, 1), MaxTail)), nil
}

func (b *board) tail(process, after string, limit int) Tail {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := Tail{Records: []Record{}, Next: after}
	m := b.memories[process]
	if m == nil {
		return t
	}
	for _, r := range m.detail.tail {
		if after == "" || r.Position > after || after > string(m.tailTo) { // after: from before a seek back
			t.Records = append(t.Records, r)
		}
	}
	if t.Next = cmp.Or(string(m.tailTo), after); len(t.Records) > limit {
		t.Records, t.More = t.Records[len(t.Records)-limit:], true
	}
	return t
}
