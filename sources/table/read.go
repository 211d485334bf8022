package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Read returns at most limit records behind a position and below the fence;
// fewer if their payloads reach Config.MaxBytes. An error that will not pass by
// itself (a table that is gone, a column, a grant, a position of another kind) is
// processor.Permanent; the next Read looks again all the same.
func (s *Source) Read(ctx context.Context, after cursor.Position, limit int) (processor.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.current(ctx)
	if err != nil {
		return processor.Page{}, err
	}
	if s.rows > 0 {
		limit = min(limit, s.rows)
	}
	r, err := s.flush(ctx, l, after, limit)
	if err != nil {
		s.distrust(err)
		return processor.Page{}, fmt.Errorf("read %s: %w", l.name(), lasting(err))
	}
	s.fit(r, limit)
	return s.page(l, r)
}

// distrust forgets the table's layout when the server says that it changed.
func (s *Source) distrust(err error) {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) || errors.Is(err, errReplaced) {
		s.layout = nil
	}
}

var errReplaced = errors.New("the table was replaced by another of its name")

// lasting marks the server's errors that will not pass by themselves: wrong
// names and types, missing grants, impossible values.
func lasting(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && !transient(pgErr) {
		return processor.Permanent(err)
	}
	return err
}

// fit learns how many rows reach MaxBytes, so that the next read asks for no
// more than it will take.
func (s *Source) fit(r *reading, limit int) {
	switch {
	case r.cut, len(r.rows) == limit && r.bytes >= s.config.MaxBytes:
		s.rows = max(1, len(r.rows))
	case s.rows > 0 && r.bytes < s.config.MaxBytes/2 && len(r.rows) == s.rows:
		s.rows *= 2
	}
}

// page applies the fence to what was read.
func (s *Source) page(l *layout, r *reading) (processor.Page, error) {
	bound := s.fence.next(r.sample)
	slack := l.slack(s.config).Microseconds()
	page := processor.Page{Records: make([]processor.Record, 0, len(r.rows))}
	for i := range r.rows {
		row := &r.rows[i]
		if !l.below(row, bound, slack) {
			page.Waiting = true
			if bound == r.sample.mark && l.ordersByTime() {
				page.Due = time.Duration(min(row.at+slack+1-r.sample.mark, maxDue.Microseconds())) * time.Microsecond
			}
			break
		}
		record, err := l.record(row)
		if err != nil {
			if len(page.Records) > 0 {
				break // those before it go first
			}
			return processor.Page{}, processor.Permanent(fmt.Errorf("read %s: record %s cannot be delivered: %w", l.name(), row.id, err))
		}
		page.Records = append(page.Records, record)
	}
	return page, nil
}

// maxDue bounds the hint for a row of the far future.
const maxDue = 24 * time.Hour

// below reports whether nothing can come to stand before the row any more.
func (l *layout) below(row *row, bound, slack int64) bool {
	if bound == unbounded {
		return false
	}
	if !l.ordersByTime() {
		return row.number <= bound
	}
	return row.at < bound-slack
}

func (l *layout) record(row *row) (processor.Record, error) {
	if l.at != "" && !row.finite && l.ordersByTime() {
		return processor.Record{}, errors.New("its created_at is -infinity; give it a time")
	}
	position, err := l.kind.position(key{at: row.at, id: row.id})
	if err != nil {
		return processor.Record{}, err
	}
	record := processor.Record{Position: position, Table: l.name(), ID: row.id, Key: row.key, Type: row.typ, Payload: row.payload}
	if row.finite {
		record.CreatedAt = time.UnixMicro(row.at).UTC()
	}
	if row.headers != nil {
		if record.Headers, err = parseHeaders(row.headers); err != nil {
			return processor.Record{}, err
		}
	}
	return record, nil
}

// parseHeaders reads a JSON object; values that are no strings keep their JSON
// text.
func parseHeaders(text []byte) (map[string]string, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, fmt.Errorf("its headers are not a JSON object: %w", err)
	}
	headers := make(map[string]string, len(values))
	for name, value := range values {
		headers[name] = string(value)
		var s string
		if value[0] == '"' && json.Unmarshal(value, &s) == nil {
			headers[name] = s
		}
	}
	return headers, nil
}

// row is a row as the server printed it.
type row struct {
	at       int64 // microseconds since 1970, if finite
	finite   bool
	id       string
	number   int64 // the id, in order ID
	key, typ string
	headers  []byte
	payload  []byte
}

// reading is what one flush returned.
type reading struct {
	sample sample
	rows   []row
	bytes  int  // of the payloads
	cut    bool // there were more rows than MaxBytes allowed
}

// flush sends the statements of the fence and of the read in one network flush,
// and reads their results as they come.
func (s *Source) flush(ctx context.Context, l *layout, after cursor.Position, limit int) (*reading, error) {
	query, args, err := l.query(s.config, after, limit)
	if err != nil {
		return nil, processor.Permanent(err)
	}
	r := &reading{}
	err = s.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		results := conn.Conn().PgConn().ExecBatch(ctx, batch(l.statements(query, args)))
		err := r.take(l, results, s.config.MaxBytes)
		if r.cut {
			cancel() // what is left may be large: closes the connection
		}
		if closed := results.Close(); err == nil && !r.cut {
			err = closed
		}
		return err
	})
	if err == nil {
		err = l.check(r.sample, after)
	}
	return r, err
}

// query returns the read behind a position.
func (l *layout) query(c Config, after cursor.Position, limit int) (string, [][]byte, error) {
	if after == "" {
		return l.readSQL(c, true, limit), nil, nil
	}
	k, err := l.kind.parse(after)
	if err != nil {
		return "", nil, err
	}
	return l.readSQL(c, false, limit), l.arguments(k), nil
}

// statement is one of those that a read consists of.
type statement struct {
	sql     string
	args    [][]byte
	formats []int16 // of the columns; nil = text
}

// statements are the whole read: begin, settings, hold, mark, writers, rows,
// commit. Their order is the fence (TestFence_EveryInterleaving).
func (l *layout) statements(query string, args [][]byte) []statement {
	all := []statement{{sql: beginSQL}, {sql: settingsSQL}, {sql: l.holdSQL()}, {sql: l.markSQL()}}
	for _, sql := range l.writerQueries() {
		all = append(all, statement{sql: sql})
	}
	formats := []int16{0, 0, 0, 0, 0, 0}
	if l.bytea {
		formats[colPayload] = 1 // the bytes themselves
	}
	return append(all, statement{query, args, formats}, statement{sql: "COMMIT"})
}

func batch(statements []statement) *pgconn.Batch {
	b := &pgconn.Batch{}
	for _, s := range statements {
		b.ExecParams(s.sql, s.args, nil, nil, s.formats)
	}
	return b
}

// take reads the results in the order of batch.
func (r *reading) take(l *layout, results *pgconn.MultiResultReader, maxBytes int) error {
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
	if err := r.takeWriters(l, results); err != nil {
		return err
	}
	if !results.NextResult() {
		return results.Close()
	}
	return r.takeRows(l, results.ResultReader(), maxBytes)
}

// nextRows returns the rows of the next result, as text; NULL reads as nil.
func nextRows(results *pgconn.MultiResultReader) ([][][]byte, error) {
	if !results.NextResult() {
		return nil, results.Close()
	}
	result := results.ResultReader().Read()
	return result.Rows, result.Err
}

func (r *reading) takeMark(values [][]byte) error {
	if string(values[2]) == "t" {
		return &pgconn.PgError{Code: "25006", Message: "the server is a standby: connect to the primary"}
	}
	if string(values[3]) != "t" {
		return errReplaced
	}
	r.sample.server = string(values[1])
	if values[0] == nil {
		r.sample.mark = math.MinInt64 + 1 // the sequence has made no id yet
		return nil
	}
	var err error
	r.sample.mark, err = strconv.ParseInt(string(values[0]), 10, 64)
	return err
}

func (r *reading) takeWriters(l *layout, results *pgconn.MultiResultReader) error {
	found := make([][][][]byte, len(l.writerQueries()))
	for i := range found {
		var err error
		if found[i], err = nextRows(results); err != nil {
			return err
		}
	}
	var err error
	r.sample.writers, err = l.writers(found)
	return err
}

func (r *reading) takeRows(l *layout, rows *pgconn.ResultReader, maxBytes int) error {
	for rows.NextRow() {
		if r.bytes >= maxBytes && len(r.rows) > 0 {
			r.cut = true
			return nil
		}
		row, err := l.row(rows.Values())
		if err != nil {
			return err
		}
		r.rows = append(r.rows, row)
		r.bytes += len(row.payload) + len(row.headers)
	}
	_, err := rows.Close()
	return err
}

// row copies the values, which are valid until the next row only.
func (l *layout) row(values [][]byte) (row, error) {
	result := row{
		id:      string(values[colID]),
		key:     string(values[colKey]),
		typ:     string(values[colType]),
		headers: slices.Clone(values[colHeaders]),
		payload: slices.Clone(values[colPayload]),
	}
	var err error
	if values[colAt] != nil {
		result.finite = true
		if result.at, err = strconv.ParseInt(string(values[colAt]), 10, 64); err != nil {
			return row{}, fmt.Errorf("parse created_at: %w", err)
		}
	} else if l.ordersByTime() {
		result.at = math.MinInt64
	}
	if !l.ordersByTime() {
		if result.number, err = strconv.ParseInt(result.id, 10, 64); err != nil {
			return row{}, fmt.Errorf("parse id: %w", err)
		}
	}
	return result, nil
}

// check holds the mark against the position: what is stamped from now on must
// sort behind what was delivered.
func (l *layout) check(s sample, after cursor.Position) error {
	if after == "" {
		return nil
	}
	k, err := l.kind.parse(after)
	if err != nil {
		return processor.Permanent(err)
	}
	if l.ordersByTime() {
		if s.mark <= k.at {
			return processor.Permanent(fmt.Errorf("the database's clock (%s) is behind the cursor (%s): what is inserted now sorts before what was delivered "+
				"and would never be read; set the clock right, or wait until it has passed the cursor and deliver by hand what was inserted in between",
				time.UnixMicro(s.mark).UTC().Format(atLayout), time.UnixMicro(k.at).UTC().Format(atLayout)))
		}
		return nil
	}
	if id, _ := strconv.ParseInt(k.id, 10, 64); s.mark < id {
		return processor.Permanent(fmt.Errorf("the sequence of the ids stands at %d, before the cursor at %d: it was reset (TRUNCATE … RESTART IDENTITY, setval or a restore), "+
			"and what is inserted now would never be read; set the sequence behind the cursor, or move the cursor", max(s.mark, 0), id))
	}
	return nil
}

// literal quotes a text for a statement without parameters.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
