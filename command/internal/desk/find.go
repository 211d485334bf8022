package desk

import (
	"context"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// By is what a Search compares.
type By string

// What a Search may compare.
const (
	ByID    By = "id"
	ByKey   By = "key"
	ByDedup By = "dedup_key"
)

// Search finds records.
type Search struct {
	By   By     `json:"by"`
	Text string `json:"text"`
	// Process is the only one to ask; "" asks all of the file.
	Process string `json:"process"`
}

// MaxSightings bounds the sightings of one process.
const MaxSightings = 50

// Found is the answer to a Search.
type Found struct {
	Sightings []Sighting `json:"sightings"`
	// More are the processes for which there are more than MaxSightings records.
	More []string `json:"more"`
	// Problems are why a process could not be asked, by process.
	Problems []Problem `json:"problems"`
}

// Problem is why a process could not be asked.
type Problem struct {
	Process string `json:"process"`
	Text    string `json:"text"`
}

// Place is where a record is for a process.
type Place string

// The places.
const (
	// Delivered: it was delivered in its turn.
	Delivered Place = "delivered"
	// Skipped: an operator passed over it.
	Skipped Place = "skipped"
	// Sought: a seek passed over it.
	Sought Place = "passed over"
	// Before: it comes before the place at which the process began.
	Before Place = "before the start"
	// PutAside: it was put aside, and its dead letter is not there any more.
	PutAside Place = "put aside"
	// Passed: the cursor has passed it, and the audit does not show how.
	Passed Place = "passed"
	// DeadLettered: it was put aside, and is open.
	DeadLettered Place = "dead letter"
	// Replayed and Discarded: it was put aside, and then delivered late, or never.
	Replayed  Place = "replayed"
	Discarded Place = "discarded"
	// Failing: it is at the head, and fails.
	Failing Place = "failing"
	// Next: it is at the head.
	Next Place = "next"
	// Ahead: it waits after others.
	Ahead Place = "waiting"
	// Unborn: the process has no cursor yet.
	Unborn Place = "not begun"
	// Gone: only a dead letter or the audit has it.
	Gone Place = "gone"
)

// Sighting is where a record is for one process.
type Sighting struct {
	Process string `json:"process"`
	Record  Record `json:"record"`
	Place   Place  `json:"place"`
	// Between is how many records are between the cursor and the record: before the cursor, or after it.
	Between int64 `json:"between,string"`
	// Capped reports that there are Between or more.
	Capped bool `json:"capped"`
	// Cursor is the position of the cursor.
	Cursor string `json:"cursor"`
	// Failure are its attempts; nil if none failed, as far as is known. A success leaves no trace of its attempts.
	Failure *Failure `json:"failure"`
	// Letter is its last dead letter; nil if it has none.
	Letter *Letter `json:"letter"`
	// Text is a sentence about all of it.
	Text string `json:"text"`
}

// maxSightings bounds those of all processes.
const maxSightings = 200

// Find finds records by what is known of them: for each process those that are newest, in the order of their positions.
func (d *Desk) Find(ctx context.Context, s Search, sight Sight) (found Found, err error) {
	if err := d.check(s); err != nil {
		return Found{}, err
	}
	err = d.question(ctx, questionTimeout, func(ctx context.Context) error {
		rows, err := d.asking.Rows(ctx)
		if err != nil {
			return err
		}
		f := finding{Search: s, desk: d, op: d.asking.Operator(), rows: map[string]cursor.Row{}, asked: map[string]answered{}}
		for _, row := range rows {
			f.rows[row.Process] = row
		}
		found, err = f.all(ctx)
		return err
	})
	for i := range found.Sightings {
		found.Sightings[i].Record = sight.seen(found.Sightings[i].Record)
	}
	return found, err
}

// check returns what is wrong with a search.
func (d *Desk) check(s Search) error {
	switch {
	case s.By != ByID && s.By != ByKey && s.By != ByDedup:
		return wrong("a search is by id, key or dedup_key")
	case s.Text == "":
		return wrong("write what to look for")
	case len(s.Text) > maxSearch:
		return wrong("what to look for is too long: write at most 4096 bytes")
	case s.Process != "" && !d.knows(s.Process):
		return &Error{Kind: KindUnknown, Text: "the file has no process " + visible.Quoted(s.Process)}
	default:
		return nil
	}
}

const maxSearch = 4096
