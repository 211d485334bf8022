package table

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// reading takes the results of one flush as they come.
type reading struct {
	layout    *layout
	columns   [fieldCount]int
	table     string
	slack     int64
	maxBytes  int
	maxRecord int
	limit     int // of records
	scan      int // of rows, including the one that is read only for its position

	sample sample
	bound  int64
	seen   int  // rows
	taken  int  // of them, those that Config.Where takes
	bytes  int  // of these
	cut    bool // there were more rows than maxBytes allowed
	large  bool // the next row is too large to be fetched

	unanswered bool  // not even the first row came
	held       bool  // a row was at the fence, and so are those after it
	durable    bool  // the disk has the rows that were read
	log        int64 // where the log ends that has these rows

	page  processor.Page
	fault error // of the first row
	ended bool  // nothing more goes into the page

	watched bool // rows and records are not the same: see passed
	passed  passed
	tie     tie

	*scratch
	chunk []byte // room for payloads
	last  second // the second of the position before, which most positions share
}

// scratch is memory that one read leaves to the next. The garbage collector has to look at everything that a read
// allocates anew: that was a third of the cost of a record.
type scratch struct {
	text  []byte             // positions and ids, one after the other
	ends  []int              // of each of them in text
	spare []processor.Record // a page that was delivered: see Recycle
}

func (l *layout) newReading(c Config, room *scratch, limit, scan int) *reading {
	r := &reading{
		scratch:   room,
		layout:    l,
		columns:   l.columns(c),
		table:     l.name(),
		slack:     l.slack(c).Microseconds(),
		maxBytes:  c.MaxBytes,
		maxRecord: c.MaxRecordBytes,
		limit:     limit,
		scan:      scan,
		watched:   l.sifts(c) || l.shared,
		page:      processor.Page{Records: room.spare},
	}
	r.text, r.ends, r.spare = r.text[:0], r.ends[:0], nil
	return r
}

// take reads the results in the order of statements. A sample counts even if the rows after it fail.
func (r *reading) take(results *prepared.Results, bound func(sample) int64) error {
	for range 3 { // begin, settings, hold
		if _, err := nextRows(results); err != nil {
			return err
		}
	}
	mark, err := nextRows(results)
	if err != nil {
		return err
	}
	if err := r.takeMark(mark[0]); err != nil {
		return err
	}
	if err := r.takeWriters(results); err != nil {
		return err
	}
	r.bound = bound(r.sample)
	if !results.NextResult() {
		r.unanswered = true
		return results.Close()
	}
	if err := r.takeRows(results.ResultReader()); err != nil || r.cut {
		return err
	}
	durable, err := nextRows(results)
	if err != nil {
		return err
	}
	onDisk, end := durable[0][0], durable[0][1]
	r.durable = string(onDisk) == "t"
	r.log, err = strconv.ParseInt(string(end), 10, 64)
	return err
}

// nextRows returns the rows of the next result, as text; NULL reads as nil.
func nextRows(results *prepared.Results) ([][][]byte, error) {
	if !results.NextResult() {
		return nil, results.Close()
	}
	result := results.ResultReader().Read()
	return result.Rows, result.Err
}

// takeMark takes the row of markSQL.
func (r *reading) takeMark(values [][]byte) error {
	mark, server, standby, sameTable := values[0], values[1], values[2], values[3]
	if string(standby) == "t" {
		return &pgconn.PgError{Code: "25006", Message: "the server is a standby: connect to the primary"}
	}
	if string(sameTable) != "t" {
		return errReplaced
	}
	r.sample.server = string(server)
	var err error
	r.sample.mark, err = strconv.ParseInt(string(mark), 10, 64)
	return err
}

func (r *reading) takeWriters(results *prepared.Results) error {
	found := make([][][][]byte, len(r.layout.writerQueries()))
	for i := range found {
		var err error
		if found[i], err = nextRows(results); err != nil {
			return err
		}
	}
	var err error
	r.sample.writers, err = r.layout.writers(found)
	return err
}

func (r *reading) takeRows(rows *pgconn.ResultReader) error {
	defer r.finish()
	var row row
	for rows.NextRow() {
		if err := r.layout.row(&row, rows.Values(), &r.columns); err != nil {
			return err
		}
		if r.bytes >= r.maxBytes && r.taken > 0 && !r.tie.goesOn(&row) {
			r.cut = true
			return nil
		}
		r.add(&row)
		r.seen++
		if row.taken {
			r.taken++
			r.bytes += row.size()
		}
	}
	_, err := rows.Close()
	if tooLarge(err) {
		r.large, r.cut = true, true
		if r.tie.on {
			r.undo() // it may have the position of the last one
		}
		return nil
	}
	return err
}

// add applies the fence to a row as it comes, while the server continues with the next rows.
func (r *reading) add(row *row) {
	switch {
	case r.ended:
	case r.held || !r.layout.below(row, r.bound, r.slack):
		r.hold(row)
	case r.layout.shared && r.tied(row):
	case !row.taken:
		r.pass(row)
	case len(r.page.Records) == r.limit:
		r.ended = true
		if r.layout.shared { // rows of this position that are left out may stand before it
			r.passed = r.tie.passed
		}
	default:
		r.append(row)
	}
}

// hold leaves a row to a later read.
func (r *reading) hold(row *row) {
	r.held = true
	if !row.taken {
		return
	}
	r.ended, r.page.Waiting = true, true
	if r.bound == r.sample.mark && r.layout.ordersByTime() {
		r.page.Ahead = time.Duration(min(row.at-r.sample.mark, maxDue.Microseconds())) * time.Microsecond
		r.page.Due = time.Duration(min(row.at-r.sample.mark, maxDue.Microseconds()-r.slack-1)+r.slack+1) * time.Microsecond
	}
}

// append makes a record from a row.
func (r *reading) append(row *row) {
	n := len(r.page.Records)
	if n == cap(r.page.Records) {
		r.page.Records = slices.Grow(r.page.Records, max(n, 16))
	}
	r.page.Records = r.page.Records[:n+1]
	if err := r.record(&r.page.Records[n], row); err != nil {
		r.page.Records = r.page.Records[:n]
		r.end(fmt.Errorf("record %s cannot be delivered: %w", visible.Cut(string(row.id)), err))
		return
	}
	r.pass(row)
	r.passed.rows = 0
}

// end ends the page before something that cannot be delivered. The records before it are delivered first.
func (r *reading) end(err error) {
	r.ended = true
	if len(r.page.Records) == 0 {
		r.fault = processor.Permanent(fmt.Errorf("read %s: %w", r.table, err))
	}
}

// maxDue bounds the hint for a row far in the future.
const maxDue = 24 * time.Hour

// record copies the values of a row, except for position and id. Those stay in text: see finish.
func (r *reading) record(record *processor.Record, row *row) error {
	if !row.finite && r.layout.ordersByTime() {
		return errors.New("its created_at is -infinity; give it a time")
	}
	text, err := r.layout.kind.append(r.text, row.at, row.id, &r.last)
	if err != nil {
		return err
	}
	*record = processor.Record{Table: r.table, Key: row.key, Type: row.typ}
	if record.Fault = r.weigh(row); record.Fault == nil {
		record.Payload = r.keep(row.payload)
	}
	if row.finite {
		record.CreatedAt = time.UnixMicro(row.at).UTC()
	}
	if row.headers != nil && record.Fault == nil {
		record.Headers, record.Fault = parseHeaders(row.headers)
	}
	r.text = append(text, row.id...)
	r.ends = append(r.ends, len(text), len(r.text))
	return nil
}

// finish gives the records their positions and ids, which share one string. Otherwise these would be most of the
// allocations of a read.
func (r *reading) finish() {
	if r.held && r.full() { // a record may be among the rows that were not asked for
		r.page.Waiting = true
	}
	text, from := string(r.text), 0
	for i := range r.page.Records {
		position, id := r.ends[2*i], r.ends[2*i+1]
		r.page.Records[i].Position = cursor.Position(text[from:position])
		r.page.Records[i].ID = text[position:id]
		from = id
	}
	if len(r.page.Records) == 0 {
		r.spare, r.page.Records = r.page.Records, nil
	}
}

const (
	chunkBytes = 64 << 10
	smallBytes = 4 << 10 // a payload up to this shares a chunk with others
)

// keep copies a payload, which is valid only until the next row.
func (r *reading) keep(payload []byte) []byte {
	if len(payload) > smallBytes || payload == nil {
		return slices.Clone(payload)
	}
	if r.chunk == nil || cap(r.chunk)-len(r.chunk) < len(payload) { // an empty payload is not NULL
		r.chunk = make([]byte, 0, chunkBytes)
	}
	from := len(r.chunk)
	r.chunk = append(r.chunk, payload...)
	return r.chunk[from:len(r.chunk):len(r.chunk)]
}
