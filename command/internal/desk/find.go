package desk

import (
	"context"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// By is what a Search compares.
type By string

// What a Search may compare.
const (
	ByID    By = "id"
	ByKey   By = "key"
	ByDedup By = "dedup_key"
)

// Search chooses records.
type Search struct {
	By   By     `json:"by"`
	Text string `json:"text"`
	// Process is the only one to ask; "" asks all of the file.
	Process string `json:"process"`
}

// maxFound bounds the records of one answer. Of one process, it has at most daemon.MaxFound.
const maxFound = 200

// Found is the answer to a Search.
type Found struct {
	// Records are those of each process, the last ones first.
	Records []FoundRecord `json:"found"`
	// More are the processes that have more records than these.
	More []string `json:"more"`
	// Problems are why a process could not be asked, by process.
	Problems []Problem `json:"problems"`
}

// Problem is why a process could not be asked.
type Problem struct {
	Process string `json:"process"`
	Text    string `json:"text"`
}

// FoundRecord is a record in one process.
type FoundRecord struct {
	Process  string          `json:"process"`
	Record   Record          `json:"record"`
	Standing daemon.Standing `json:"standing"`
	// Gone reports that only a dead letter has it.
	Gone bool `json:"gone"`
	// Between is how many records are between the cursor and the record: before the cursor, or after it.
	Between int64 `json:"between,string"`
	// Capped reports that there are Between or more.
	Capped bool `json:"capped"`
	// Cursor is the position of the cursor; nil if the process has not run yet, or if the record is Gone.
	Cursor *string `json:"cursor"`
	// Failure are its attempts; nil if none failed, as far as is known. A success leaves no trace of its attempts.
	Failure *Failure `json:"failure"`
	// Letter is its last dead letter; nil if it has none.
	Letter *Letter `json:"letter"`
	// Text is a sentence about all of it.
	Text string `json:"text"`
}

// Find finds records by what is known of them.
func (d *Desk) Find(ctx context.Context, s Search, sight Sight) (found Found, err error) {
	if err := d.check(s); err != nil {
		return Found{}, err
	}
	found = Found{Records: []FoundRecord{}, More: []string{}, Problems: []Problem{}}
	err = d.question(ctx, func(ctx context.Context) error {
		finder, err := daemon.NewFinder(d.asking, s.Process)
		if err != nil {
			return err
		}
		all, err := finder.Find(ctx, s.sought())
		if len(all) == 0 {
			return err
		}
		for _, search := range all { // if none could be asked, each has a problem
			d.add(&found, search, sight)
		}
		return nil
	})
	return found, err
}

func (s Search) sought() daemon.Sought {
	sought := daemon.Sought{Payload: MaxPayload, Limit: maxFound}
	switch s.By {
	case ByID:
		sought.ID = s.Text
	case ByKey:
		sought.Key = s.Text
	case ByDedup:
		sought.DedupKey = s.Text
	}
	return sought
}

// add adds what was found in one process.
func (d *Desk) add(found *Found, search daemon.Search, sight Sight) {
	if search.Problem != "" {
		found.Problems = append(found.Problems, Problem{search.Process, d.board.cleanText(search.Problem)})
	}
	if search.More {
		found.More = append(found.More, search.Process)
	}
	for _, r := range search.Found {
		found.Records = append(found.Records, d.foundRecord(r, sight))
	}
}

func (d *Desk) foundRecord(r daemon.Found, sight Sight) FoundRecord {
	f := FoundRecord{
		Process: r.Process, Record: sight.seen(recordOf(r.Record, r.Row)), Standing: r.Standing, Gone: r.Gone,
		Between: r.Between, Capped: r.Between >= table.MaxLagRecords, Text: d.board.cleanText(r.Sentence()),
	}
	if len(r.Letters) > 0 {
		letter := d.letterOf(r.Letters[0], Masked)
		f.Letter, f.Failure = &letter, &letter.Failure
	}
	if r.Failure != nil {
		failure := failureOf(*r.Failure)
		f.Failure = &failure
	}
	if r.Row.Process != "" && r.Row.Position != cursor.Unplaced {
		at := string(r.Row.Position)
		f.Cursor = &at
	}
	return f
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
