package table

import (
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

const (
	// maxScan bounds the rows of one read if Config.Where takes few of them.
	maxScan = 10_000
	// passRows is the number of rows without a record after which the cursor moves over them. Until then only the
	// source remembers them, so that an idle process writes nothing.
	passRows = 10_000
)

// passed is the last row that a read has finished with. It is below the fence, and so is every row before it.
type passed struct {
	key  key
	any  bool
	rows int // since the last record
}

// pass notes a row that the read has finished with. A row without a position is left to the next row.
func (r *reading) pass(row *row) {
	if !r.watched {
		return
	}
	r.passed.rows++
	if r.layout.ordersByTime() && (!row.finite || row.at < minAt || row.at > maxAt) {
		return
	}
	r.passed.key, r.passed.any = key{at: row.at, id: string(row.id)}, true
}

// through returns the position of the last row that the read has finished with, or else the position that it began
// after.
func (r *reading) through(start cursor.Position) (cursor.Position, error) {
	if !r.passed.any {
		return start, nil
	}
	return r.layout.kind.position(r.passed.key)
}

// full reports whether there may be more rows than the read asked for.
func (r *reading) full() bool { return r.seen >= r.scan && r.scan > 0 }

// stretch is a range in which a source found no record: after one position, up to another. Both were below the fence,
// so there never will be one. It holds for one server run only: the clock of another run, or of a standby, may
// differ.
type stretch struct {
	server   string
	from, to cursor.Position
	rows     int // in the range; 0 if that is not known
}

// begin prepares for a read after a position, and keeps everything that is known about the rows after it.
func (s *stretch) begin(after cursor.Position) {
	switch {
	case after < s.from || after > s.to:
		*s = stretch{server: s.server, from: after, to: after}
	case after > s.from:
		s.from, s.rows = after, 0
	}
}

// extend notes how far a read came.
func (s *stretch) extend(r *reading) error {
	s.server = r.sample.server
	if n := len(r.page.Records); n > 0 {
		s.from, s.rows = r.page.Records[n-1].Position, 0
		s.to = s.from
	}
	if !r.watched {
		return nil
	}
	to, err := r.through(s.to)
	if err != nil {
		return fmt.Errorf("find the position of a row that is passed over: %w", err)
	}
	s.to = max(s.to, to)
	s.rows += r.passed.rows
	return nil
}

// sparse is how many rows there are for each record, as far as is known: at least 1.
type sparse int

// scan returns how many rows to ask for to find a number of records.
func (s sparse) scan(limit int) int {
	return max(limit, min(maxScan, limit*max(1, int(s))))
}

// learn notes how many rows a read has seen.
func (s *sparse) learn(r *reading) {
	switch {
	case r.taken > 0:
		*s = sparse(max(1, r.seen/r.taken))
	case r.full():
		*s = min(maxScan, max(1, *s)*4)
	}
}

// tie keeps the rows of one position together where nothing proves that there is only one. Either the read passes all
// of them together, or it ends before them with an error that names the position.
type tie struct {
	on      bool
	at      int64
	id      string
	any     bool   // Config.Where takes one of them
	records int    // in the page before them
	passed  passed // before them
}

// goesOn reports whether a row has the position of the one before it.
func (t *tie) goesOn(row *row) bool {
	return t.on && t.at == row.at && t.id == string(row.id)
}

// tied reports whether the page must leave the row out. Such a row is the extra one past those that were asked for,
// or it shares its position with a record.
func (r *reading) tied(row *row) bool {
	t := &r.tie
	last := r.seen == r.scan-1
	if !t.goesOn(row) {
		if last {
			return true
		}
		*t = tie{on: true, at: row.at, id: string(row.id), any: row.taken, records: len(r.page.Records), passed: r.passed}
		return false
	}
	twins := t.any && row.taken
	t.any = t.any || row.taken
	if !twins && !last {
		return false
	}
	r.undo()
	if twins {
		r.end(fmt.Errorf("two rows with id %s have one position%s: of two records with one position the second would be passed over, "+
			"so neither is delivered. Give one of them another id, or else delete it", row.id, r.layout.when(row)))
	}
	r.ended = true
	return true
}

// undo takes the rows of the last position out of the page again.
func (r *reading) undo() {
	clear(r.page.Records[r.tie.records:])
	r.page.Records, r.passed = r.page.Records[:r.tie.records], r.tie.passed
	r.tie.on = false
}

// when returns the time of a row, for messages.
func (l *layout) when(row *row) string {
	if !l.ordersByTime() || !row.finite {
		return ""
	}
	return ", " + quote(l.at) + " " + time.UnixMicro(row.at).UTC().Format(atLayout)
}
