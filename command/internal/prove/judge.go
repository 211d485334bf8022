package prove

import (
	"hash/maphash"
	"strconv"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// maxNamed is how many rows of a kind are named.
const maxNamed = 20

// Row names a row of the table.
type Row struct {
	ID       string          `json:"id"`
	Created  *time.Time      `json:"created_at,omitempty"`
	Position cursor.Position `json:"position"`
}

func rowOf(r processor.Record) Row {
	row := Row{ID: r.ID, Position: r.Position}
	if !r.CreatedAt.IsZero() {
		row.Created = &r.CreatedAt
	}
	return row
}

// Reader is the result of one way to read the table.
type Reader struct {
	// Reads describes the way, such as "id > the last id seen".
	Reads string `json:"reads"`
	// Unfit is why this table cannot be read in this way; "" if it can.
	Unfit string `json:"unfit,omitempty"`
	// Lost counts the rows that became visible behind the reader, which never asks for them again. Rows are the first
	// of them.
	Lost int   `json:"lost"`
	Rows []Row `json:"rows"`
}

func (r *Reader) lose(row processor.Record) {
	r.Lost++
	if len(r.Rows) < maxNamed {
		r.Rows = append(r.Rows, rowOf(row))
	}
}

// place is how far the three readers have come.
type place struct {
	id     int64           // the highest id that the id reader has seen
	hasID  bool            // it has seen one
	polled time.Time       // when the time reader polled last
	ours   cursor.Position // the last row that ours delivered
}

// The states of a row that was seen. Any other number is when the row became visible, and it waits for the fence.
const (
	done    int64 = 0  // delivered by ours, or lost by it
	already int64 = -1 // visible in the first look, and waiting for the fence
)

// judge follows three readers over one look after another.
type judge struct {
	seed  maphash.Seed
	known map[uint64]int64 // the state of each row, by its position
	began bool             // the first look is over
	place place

	byID, byTime, ours Reader

	rows      int // that became visible after the first look
	delivered int // of them, by ours
	pending   int // visible rows that wait for the fence
	waited    spread
	aged      spread
}

func newJudge(from cursor.Position) *judge {
	return &judge{
		seed:   maphash.MakeSeed(),
		known:  map[uint64]int64{},
		place:  place{ours: from},
		byID:   Reader{Reads: "id > the last id seen", Rows: []Row{}},
		byTime: Reader{Reads: "time > the last poll", Rows: []Row{}},
		ours:   Reader{Reads: "ours, below the fence", Rows: []Row{}},
	}
}

// take judges the rows of a look, which are in order. The fence was asked for before the look. take returns the
// positions that ours delivers now.
func (j *judge) take(b table.Bound, look table.Look) (delivered []cursor.Position) {
	now, next := look.Clock.UnixMicro(), j.place
	next.polled = look.Clock
	j.pending = 0
	for _, r := range look.Records {
		key := j.key(r)
		state, known := j.known[key]
		if !known {
			state = j.meet(r, now)
			next.see(r)
		}
		if state != done && r.Position < b.Before {
			delivered = append(delivered, r.Position)
			next.ours = max(next.ours, r.Position)
			if state != already {
				j.deliver(r, time.UnixMicro(state), look.Clock)
			}
			state = done
		}
		if state != done {
			j.pending++
		}
		j.known[key] = state
	}
	j.place, j.began = next, true
	return delivered
}

func (j *judge) key(r processor.Record) uint64 { return maphash.String(j.seed, string(r.Position)) }

// see moves the id reader to a row that it gets.
func (p *place) see(r processor.Record) {
	if id, err := strconv.ParseInt(r.ID, 10, 64); err == nil && (!p.hasID || id > p.id) {
		p.id, p.hasID = id, true
	}
}

// meet judges a row that no look showed before, by the places that the readers had reached before this look. It
// returns the row's state.
func (j *judge) meet(r processor.Record, now int64) int64 {
	id, err := strconv.ParseInt(r.ID, 10, 64)
	if err != nil {
		j.byID.Unfit = "the ids are no integers, so the last one is not the highest"
	}
	if r.CreatedAt.IsZero() {
		j.byTime.Unfit = "no column with the time of the insert is read: name one with --time"
	}
	if !j.began {
		return already
	}
	j.rows++
	if j.byID.Unfit == "" && j.place.hasID && id <= j.place.id {
		j.byID.lose(r)
	}
	if j.byTime.Unfit == "" && !r.CreatedAt.After(j.place.polled) {
		j.byTime.lose(r)
	}
	if r.Position <= j.place.ours {
		j.ours.lose(r)
		return done
	}
	return now
}

// deliver notes how long a row waited for the fence, and how old it was then.
func (j *judge) deliver(r processor.Record, visible, now time.Time) {
	j.delivered++
	j.waited.add(now.Sub(visible))
	if !r.CreatedAt.IsZero() {
		j.aged.add(now.Sub(r.CreatedAt))
	}
}

// sweep takes rows that ours has passed, and finds those that no look showed.
func (j *judge) sweep(records []processor.Record) {
	for _, r := range records {
		key := j.key(r)
		if _, known := j.known[key]; !known && r.Position <= j.place.ours {
			j.known[key] = done
			j.ours.lose(r)
		}
	}
}
