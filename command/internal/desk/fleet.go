package desk

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Fleet is what the board shows of all processes.
type Fleet struct {
	// At is when the board looked last; zero if it never could.
	At time.Time `json:"at"`
	// Since is when the memory of the board begins.
	Since time.Time `json:"since"`
	// Problem is why the last look failed; "" if it did not. The lines are those of the look before then.
	Problem string `json:"problem"`
	// Processes are sorted: what needs somebody most comes first, then by name.
	Processes []Line `json:"processes"`
}

// Line is one process of the fleet.
type Line struct {
	Process string `json:"process"`
	// State is one of States.
	State string `json:"state"`
	// Configured reports that the file of this daemon has the process. Of others only the row is known.
	Configured bool `json:"configured"`
	// Table and Sink are those of the file; "" if it does not have the process.
	Table string `json:"table"`
	Sink  string `json:"sink"`

	// Waiting are the records that wait; nil if that is not known.
	Waiting *Waiting `json:"waiting"`
	// Rate is how many records a second are delivered; nil if it is not known yet.
	Rate *float64 `json:"rate"`
	// Spark are the rates of the last minutes, the oldest first, one for each SparkStep. nil is a time in which nobody
	// looked.
	Spark []*float64 `json:"spark"`

	Position string `json:"position"`
	Sequence int64  `json:"sequence,string"`
	Epoch    int64  `json:"epoch,string"`
	// Worker is the last one to deliver; "" before the first.
	Worker string `json:"worker"`
	// MovedAt is the time of the row's last change; nil if there is no row yet.
	MovedAt *time.Time `json:"moved_at"`
	// DeadLetters is the number of open ones; nil if the role may not read them.
	DeadLetters *int64 `json:"dead_letters"`

	// Hold is what holds delivery up; nil if nothing is known that does.
	Hold *Hold `json:"hold"`
	// Need is why the process needs somebody; nil if it does not.
	Need *Need `json:"need"`
	// Notes are what else there is to know, in sentences.
	Notes []string `json:"notes"`
	// LookedAt is when Waiting and Hold were looked at last; nil if they never were. In a large fleet, processes take turns.
	LookedAt *time.Time `json:"looked_at"`
}

// SparkStep is the time of one value of Line.Spark, and SparkLength is how many there are.
const (
	SparkStep   = 10 * time.Second
	SparkLength = 60
)

// States are the values of Line.State, as `status` prints them.
func States() []string {
	return []string{"running", "paused", "halted", "failing", "cannot read", "no worker", "new"}
}

// Waiting are records that are committed and not delivered yet.
type Waiting struct {
	Records int64 `json:"records,string"`
	// Capped reports that there are Records or more.
	Capped bool `json:"capped"`
	// Seconds is the age of the oldest; nil if the source has no created_at.
	Seconds *float64 `json:"seconds"`
	// Split are the Seconds by what kept that record waiting, the longest first. The sum is Seconds.
	Split []Share `json:"split"`
}

// Hold is a reason that holds delivery up.
type Hold struct {
	// Kind is one of daemon.HoldKind.
	Kind  string `json:"kind"`
	Cause Cause  `json:"cause"`
	// Text is the reason, and Next what to do about it; "" if Text has it.
	Text string `json:"text"`
	Next string `json:"next"`
	// SQL goes with Next; "" if there is none.
	SQL string `json:"sql"`
}

// Fleet returns what the board shows of all processes. If nobody watches, it makes a look first.
func (d *Desk) Fleet(ctx context.Context) (Fleet, error) {
	d.board.await(ctx, "")
	return d.board.fleet(time.Now())
}

func (b *board) fleet(now time.Time) (Fleet, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.IsZero() {
		return Fleet{}, b.away()
	}
	f := Fleet{At: b.at.UTC(), Since: b.since.UTC(), Problem: b.problem, Processes: make([]Line, 0, len(b.memories))}
	for _, m := range b.memories {
		f.Processes = append(f.Processes, m.line(b.seen, now))
	}
	slices.SortFunc(f.Processes, func(x, y Line) int { return cmp.Or(cmp.Compare(x.rank(), y.rank()), cmp.Compare(x.Process, y.Process)) })
	return f, nil
}

// away is why there is no answer yet.
func (b *board) away() error {
	return &Error{Kind: KindAway, Text: cmp.Or(b.problem, "the database was not asked yet, or has not answered: try again in a moment")}
}

func (l Line) rank() int {
	if l.Need == nil {
		return maxRank
	}
	return l.Need.Rank
}

// line is the process as the board shows it now.
func (m *memory) line(seen covered, now time.Time) Line {
	l := Line{
		Process: m.process, State: m.word(), Configured: m.configured, Table: m.file.Source.Table, Sink: m.file.Sink.Kind,
		Rate: m.rate(), Spark: m.spark(now), Position: string(m.row.Position), Sequence: m.row.Sequence, Epoch: int64(m.row.Epoch),
		Worker: m.row.Holder, MovedAt: moment(m.row.UpdatedAt), DeadLetters: m.status.DeadLetters, LookedAt: moment(m.statusAt), Notes: []string{},
	}
	if records, age := m.waiting(now); records != nil {
		l.Waiting = &Waiting{Records: *records, Capped: *records >= table.MaxLagRecords, Split: []Share{}}
		if age != nil && *records > 0 {
			l.Waiting.Seconds, l.Waiting.Split = age, m.split(*age, seen, now)
		} else if age != nil {
			l.Waiting.Seconds = age
		}
	}
	if h := m.status.Hold; h != nil && ofHold[h.Kind] == m.cause {
		l.Hold = &Hold{Kind: string(h.Kind), Cause: m.cause, Text: visible.Inline(h.Text), Next: visible.Inline(h.Next), SQL: visible.Inline(h.SQL)}
	}
	for i, note := range m.status.Notes() {
		if i > 0 || m.status.Hold == nil { // the first one is the hold
			l.Notes = append(l.Notes, visible.Inline(note))
		}
	}
	l.Need = m.need(l)
	return l
}

// word is the state in a word: by the row, which every look reads, and by the last status.
func (m *memory) word() string {
	switch {
	case m.row.UpdatedAt.IsZero():
		return "new"
	case m.row.State != cursor.Running:
		return string(m.row.State)
	case !m.statusAt.IsZero() && m.status.State == cursor.Running && (m.status.Failure == nil) == (m.row.Failure == nil):
		return m.status.Word()
	case m.row.Failure != nil:
		return "failing"
	default:
		return string(m.row.State)
	}
}

// moment returns nil for a time that is not known.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	utc := t.UTC()
	return &utc
}
