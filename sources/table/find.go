package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Errors of Before and At.
var (
	// ErrNoRecord: no record has that id, or Config.Where leaves it out.
	ErrNoRecord = errors.New("no such record")
	// ErrAmbiguous: several records have that id.
	ErrAmbiguous = errors.New("several records have that id")
	// ErrNoTime: the source reads no created_at.
	ErrNoTime = errors.New("the source reads no created_at")
)

// Span describes the records between two positions.
type Span struct {
	// Records are the first ones, in order, without key, type, headers and payload.
	Records []processor.Record
	// Total is how many there are, counted up to MaxLagRecords.
	Total int64
}

// Between returns the records after one position, up to and including another, by index range. It lists at most limit
// of them. It lists committed records, whether or not they may be read yet.
func (s *Source) Between(ctx context.Context, after, upTo cursor.Position, limit int) (span Span, err error) {
	if upTo <= after {
		return Span{}, nil
	}
	err = s.ask(ctx, "list the records of", func(l *layout, ask asker) error {
		span, err = l.span(s.config, ask, after, upTo, limit)
		return err
	})
	return span, err
}

// Back returns the position that is a number of rows before another one, whether or not Config.Where takes those
// rows; "" if there are fewer.
func (s *Source) Back(ctx context.Context, from cursor.Position, rows int) (position cursor.Position, err error) {
	err = s.ask(ctx, "step back in", func(l *layout, ask asker) error {
		position, err = l.back(s.config, ask, from, rows)
		return err
	})
	return position, err
}

// Recent returns where the last records up to a position begin: rows of them that Config.Where takes, all of them after
// floor. first is the position of the first one, and after is the position of the record before it, or floor. first is
// "" if there are fewer; then after is floor.
func (s *Source) Recent(ctx context.Context, upTo cursor.Position, rows int64, floor cursor.Position) (after, first cursor.Position, err error) {
	if upTo <= floor {
		return floor, "", nil
	}
	err = s.ask(ctx, "look back in", func(l *layout, ask asker) error {
		after, first, err = l.recent(s.config, ask, upTo, rows, floor)
		return err
	})
	return after, first, err
}

// Before returns the position right before the record with an id: a read after that position begins with that record.
// It returns ErrNoRecord if no record has the id, and ErrAmbiguous if several have it. Without an index that begins
// with the id column, the server searches the whole table, for at most 30 s.
func (s *Source) Before(ctx context.Context, id string) (position cursor.Position, err error) {
	err = s.ask(ctx, "find a record of", func(l *layout, ask asker) error {
		position, err = l.before(s.config, ask, id)
		return err
	})
	return position, err
}

// At returns the position right before the first record that was created at a time or later. Where records are
// ordered by id, that is the record with the lowest id. In that case At needs a created_at column (else ErrNoTime),
// and an index on it to be fast.
func (s *Source) At(ctx context.Context, t time.Time) (position cursor.Position, err error) {
	at := t.UnixMicro()
	if t.Nanosecond()%1000 != 0 {
		at++
	}
	err = s.ask(ctx, "find a time in", func(l *layout, ask asker) error {
		position, err = l.atTime(s.config, ask, at)
		return err
	})
	return position, err
}

// asker runs a query and returns its rows, as text; NULL reads as nil.
type asker func(sql string, args ...[]byte) ([][][]byte, error)

// ask runs f in a transaction with the settings of a read.
func (s *Source) ask(ctx context.Context, verb string, f func(*layout, asker) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.current(ctx)
	if err != nil {
		return err
	}
	err = s.readOnly(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return f(l, func(sql string, args ...[]byte) ([][][]byte, error) {
			result := tx.Conn().PgConn().ExecParams(ctx, sql, args, nil, nil, nil).Read()
			return result.Rows, result.Err
		})
	})
	if err != nil {
		s.distrust(err)
		return fmt.Errorf("%s %s: %w", verb, l.name(), lasting(err))
	}
	return nil
}

func (l *layout) span(c Config, ask asker, after, upTo cursor.Position, limit int) (span Span, err error) {
	where, args, err := l.between(c, after, upTo)
	if err != nil {
		return Span{}, err
	}
	counted, err := ask(fmt.Sprintf("/* source.count */ SELECT count(*) FROM (SELECT FROM %s AS t WHERE %s LIMIT %d) counted",
		l.sql(), where, MaxLagRecords), args...)
	if err != nil {
		return Span{}, err
	}
	if span.Total, err = strconv.ParseInt(string(counted[0][0]), 10, 64); err != nil {
		return Span{}, err
	}
	span.Records, err = l.found(ask(fmt.Sprintf("/* source.between */ SELECT %s FROM %s AS t WHERE %s ORDER BY %s LIMIT %d",
		l.keys(c), l.sql(), where, strings.Join(l.orderBy(c), ", "), limit), args...))
	return span, err
}

// between is the condition for rows after one position, up to and including another, with its arguments.
func (l *layout) between(c Config, after, upTo cursor.Position) (string, [][]byte, error) {
	last, err := l.kind.parse(upTo)
	if err != nil {
		return "", nil, err
	}
	args, err := l.startAfter(after)
	if err != nil {
		return "", nil, err
	}
	bound := l.tuple(len(args) + 1)
	condition := fmt.Sprintf("%s\n\tAND (%s) <= (%s)", l.behind(c, after == ""), strings.Join(l.orderBy(c), ", "), bound)
	return condition, slices.Concat(args, l.arguments(last)), nil
}

// tuple writes a key as parameters from $n on, in the columns' own types.
func (l *layout) tuple(n int) string {
	if l.ordersByTime() {
		return fmt.Sprintf("$%d::%s, $%d::%s", n, l.atType, n+1, l.idType)
	}
	return fmt.Sprintf("$%d::%s", n, l.idType)
}

// keys lists the columns that found takes: the id, and the time if there is one.
func (l *layout) keys(c Config) string {
	at := "NULL"
	if l.at != "" {
		at = l.finiteMicros()
	}
	return fmt.Sprintf("t.%s, %s", quote(c.Columns.ID), at)
}

// found makes records from rows of keys.
func (l *layout) found(rows [][][]byte, err error) ([]processor.Record, error) {
	if err != nil {
		return nil, err
	}
	var records []processor.Record
	for _, values := range rows {
		k := key{id: string(values[0])}
		r := processor.Record{Table: l.name(), ID: k.id}
		if values[1] != nil {
			if k.at, err = strconv.ParseInt(string(values[1]), 10, 64); err != nil {
				return nil, fmt.Errorf("parse created_at: %w", err)
			}
			r.CreatedAt = time.UnixMicro(k.at).UTC()
		} else if l.ordersByTime() {
			return nil, fmt.Errorf("record %s has a created_at of infinity, and so no position", visible.Cut(k.id))
		}
		if r.Position, err = l.kind.position(k); err != nil {
			return nil, fmt.Errorf("record %s: %w", visible.Cut(k.id), err)
		}
		records = append(records, r)
	}
	return records, nil
}

// before finds the record with an id, and then the row before it, delivered or not, left out by Where or not. So the
// index leads to it at once.
func (l *layout) before(c Config, ask asker, id string) (cursor.Position, error) {
	where := "true"
	if c.Where != "" {
		where = "(\n" + c.Where + "\n)"
	}
	rows, err := ask(fmt.Sprintf("/* source.find */ SELECT %s FROM %s AS t WHERE t.%s = $1::%s AND %s LIMIT 2",
		l.keys(c), l.sql(), quote(c.Columns.ID), l.idType, where), []byte(id))
	if malformed(err) {
		return "", fmt.Errorf("%w: %q is not a %s, which is the type of the ids", ErrNoRecord, id, l.idType)
	}
	if slow(err) {
		return "", fmt.Errorf("%w: an index on %s would lead to the record at once; seek to a time or a position instead", err, quote(c.Columns.ID))
	}
	records, err := l.found(rows, err)
	switch {
	case err != nil:
		return "", err
	case len(records) == 0 && c.Where != "":
		return "", fmt.Errorf("%w with id %q for which source.where is true", ErrNoRecord, id)
	case len(records) == 0:
		return "", fmt.Errorf("%w with id %q", ErrNoRecord, id)
	case len(records) > 1:
		return "", fmt.Errorf("%w, %q: one at %s, one at %s; seek to a position", ErrAmbiguous, id, records[0].Position, records[1].Position)
	}
	return l.preceding(c, ask, records[0].Position)
}

// preceding returns the position of the row before a position; "" if there is none.
func (l *layout) preceding(c Config, ask asker, position cursor.Position) (cursor.Position, error) {
	return l.back(c, ask, position, 1)
}

func (l *layout) back(c Config, ask asker, from cursor.Position, rows int) (cursor.Position, error) {
	k, err := l.kind.parse(from)
	if err != nil {
		return "", err
	}
	order := l.orderBy(c)
	records, err := l.found(ask(fmt.Sprintf("/* source.back */ SELECT %s FROM %s AS t WHERE (%s) < (%s) ORDER BY %s DESC LIMIT 1 OFFSET %d",
		l.keys(c), l.sql(), strings.Join(order, ", "), l.tuple(1), strings.Join(order, " DESC, "), rows-1), l.arguments(k)...))
	if err != nil || len(records) == 0 {
		return "", err
	}
	return records[0].Position, nil
}

func (l *layout) recent(c Config, ask asker, upTo cursor.Position, rows int64, floor cursor.Position) (after, first cursor.Position, err error) {
	where, args, err := l.between(c, floor, upTo)
	if err != nil {
		return "", "", err
	}
	records, err := l.found(ask(fmt.Sprintf("/* source.recent */ SELECT %s FROM %s AS t WHERE %s ORDER BY %s DESC LIMIT 2 OFFSET %d",
		l.keys(c), l.sql(), where, strings.Join(l.orderBy(c), " DESC, "), rows-1), args...))
	switch {
	case err != nil || len(records) == 0:
		return floor, "", err
	case len(records) == 1:
		return floor, records[0].Position, nil
	default:
		return records[1].Position, records[0].Position, nil
	}
}

// atTime returns the position right before a time: after every id of the microsecond before it.
func (l *layout) atTime(c Config, ask asker, at int64) (cursor.Position, error) {
	switch {
	case l.kind == kindAtText:
		return l.beforeTexts(c, ask, key{at: at})
	case l.ordersByTime():
		return l.kind.position(key{at: at - 1, id: l.kind.highestID()})
	case l.at == "":
		return "", fmt.Errorf("%w: name the column in source.columns, or seek to an id", ErrNoTime)
	}
	return l.beforeFirst(c, ask, at)
}

// beforeTexts returns the position right before the first text id of a time. There is no last text of the microsecond
// before. So it is the position of the empty text, which is the first, unless a record has it.
func (l *layout) beforeTexts(c Config, ask asker, empty key) (cursor.Position, error) {
	position, err := l.kind.position(empty)
	if err != nil {
		return "", err
	}
	rows, err := ask(fmt.Sprintf("/* source.empty_id */ SELECT FROM %s AS t WHERE (%s) = (%s) LIMIT 1",
		l.sql(), strings.Join(l.orderBy(c), ", "), l.tuple(1)), l.arguments(empty)...)
	if err != nil || len(rows) == 0 {
		return position, err
	}
	return l.preceding(c, ask, position)
}

// beforeFirst returns the position right before the lowest id from a time on, or after the last id.
func (l *layout) beforeFirst(c Config, ask asker, at int64) (cursor.Position, error) {
	id := quote(c.Columns.ID)
	// OFFSET 0 keeps the planner from walking along the ids for the lowest one.
	rows, err := ask(fmt.Sprintf("/* source.first_at */ SELECT min(id) FROM (SELECT t.%s FROM %s AS t WHERE t.%s >= $1::%s OFFSET 0) later (id)",
		id, l.sql(), quote(l.at), l.atType), timestamp(at))
	if slow(err) {
		return "", fmt.Errorf("%w: an index on %s would lead there at once; seek to an id instead", err, quote(l.at))
	}
	if err == nil && rows[0][0] != nil {
		rows, err = ask(fmt.Sprintf("/* source.last_before */ SELECT max(t.%[1]s) FROM %[2]s AS t WHERE t.%[1]s < $1::bigint", id, l.sql()), rows[0][0])
	} else if err == nil {
		rows, err = ask(fmt.Sprintf("/* source.last */ SELECT max(t.%s) FROM %s AS t", id, l.sql()))
	}
	if err != nil || rows[0][0] == nil {
		return "", err
	}
	return l.kind.position(key{id: string(rows[0][0])})
}

func malformed(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "22P02" || pgErr.Code == "22003")
}

func slow(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "57014"
}
