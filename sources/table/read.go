package table

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Read returns at most limit records after a position and below the fence. It returns fewer if they reach
// Config.MaxBytes. If Config.Where leaves out very many rows, Read returns no records, and a position up to which
// there is none. An error that will not pass by itself is processor.Permanent: a table that is gone, a column, a
// grant, a position of another kind, two rows with one position. The next Read looks again all the same.
func (s *Source) Read(ctx context.Context, after cursor.Position, limit int) (processor.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.current(ctx)
	if err != nil {
		return processor.Page{}, err
	}
	if s.config.KeysOnly {
		limit = 0
	}
	s.stretch.begin(after)
	inspected := false // again, in this Read
	for {
		was := s.stretch
		r, err := s.readOnce(ctx, l, was.to, s.atMost(limit))
		switch {
		case !inspected && errors.As(err, new(*processor.SequenceError)):
			// The sequence is before the position. The table may have another sequence by now: inspect it, and read again.
			inspected, s.layout = true, nil
			if l, err = s.current(ctx); err != nil {
				return processor.Page{}, err
			}
			continue
		case was.to != after && (processor.IsPermanent(err) || err == nil && r.sample.server != was.server):
			// What earlier rounds found may no longer hold: begin at the position again.
			s.stretch = stretch{from: after, to: after}
			continue
		case err != nil:
			return processor.Page{}, fmt.Errorf("read %s: %w", l.name(), lasting(err))
		}
		if err := s.stretch.extend(r); err != nil {
			return processor.Page{}, err
		}
		none := len(r.page.Records) == 0
		switch {
		case none && r.fault == nil && r.large:
			// The first row is too large beside others: the next round asks for that row alone.
			continue
		case none && r.fault == nil && r.full() && !r.held && s.stretch.rows < passRows:
			// Config.Where left out all rows of this round: the next one looks further.
			if s.stretch.to == was.to && s.sparse >= maxScan {
				return processor.Page{}, l.crowded(after)
			}
			continue
		case none && s.stretch.rows >= passRows:
			// It left out so many that the cursor passes them without a record.
			r.page.Passed = s.stretch.to
		}
		if err := s.keep(ctx, l, r); err != nil {
			return processor.Page{}, err
		}
		r.page.Server = r.sample.server
		return r.page, r.fault
	}
}

// keep makes sure that a crash of the server takes back no row that a page makes the cursor pass.
func (s *Source) keep(ctx context.Context, l *layout, r *reading) error {
	switch {
	case r.durable:
	case s.config.KeysOnly || len(r.page.Records) == 0 && r.page.Passed == "":
		return nil
	default:
		var err error
		if r.log, err = s.harden(ctx, r.sample.server); err != nil {
			return fmt.Errorf("wait until the server's disk has the rows of %s: %w", l.name(), lasting(err))
		}
	}
	r.page.Log = r.log
	return nil
}

// atMost returns limit, or fewer if only fewer records are known to fit into MaxBytes.
func (s *Source) atMost(limit int) int {
	if s.rows > 0 {
		return min(limit, s.rows)
	}
	return limit
}

// crowded is the error for rows that no read gets past.
func (l *layout) crowded(after cursor.Position) error {
	return processor.Permanent(fmt.Errorf("read %s: more than %d rows after position %q have one position, or none: "+
		"give them other ids, or times from the year 1 to 9999", l.name(), maxScan, after))
}

// readOnce does one read below the fence.
func (s *Source) readOnce(ctx context.Context, l *layout, after cursor.Position, limit int) (*reading, error) {
	if s.detail != whole {
		l, limit = l.of(s.detail), min(limit, 1)
	}
	r, err := s.flush(ctx, l, after, limit)
	if errors.Is(err, prepared.ErrStale) {
		r, err = s.flush(ctx, l, after, limit) // the table was altered: prepare once more
	}
	if err != nil {
		s.detail = whole
		s.distrust(err)
		return nil, err
	}
	s.fit(r, limit)
	s.sparse.learn(r)
	s.detail, err = r.next(after)
	return r, err
}

// distrust forgets the table's layout when the server reports that the table changed. It drops every connection when
// the server is not a primary (SQLSTATE 25006): the next connections find out anew which server is.
func (s *Source) distrust(err error) {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "25006" {
		s.pool.Reset()
	}
	if errors.As(err, &pgErr) || errors.Is(err, errReplaced) || errors.Is(err, errNoTable) || errors.Is(err, errUnseen) {
		s.layout = nil
	}
}

var errReplaced = errors.New("the table was replaced by another of its name")

// lasting marks the server's errors that will not pass by themselves: wrong names and types, missing grants,
// impossible values.
func lasting(err error) error {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return err
	}
	if strings.HasPrefix(pgErr.Code, "22") {
		err = &valueError{pgErr}
	}
	if transient(pgErr) {
		return err
	}
	return processor.Permanent(err)
}

// valueError is an error about a value (class 22), such as a value that a condition cannot convert. The server quotes
// the value, which only concerns the record, so Error leaves it out.
type valueError struct{ *pgconn.PgError }

func (e *valueError) Error() string { return valueless(e.PgError) + " (SQLSTATE " + e.Code + ")" }

func (e *valueError) Unwrap() error { return e.PgError }

var quotes = regexp.MustCompile(`(?s)".*"`)

// valueless returns the server's message without the values that it quotes.
func valueless(err *pgconn.PgError) string {
	if !strings.HasPrefix(err.Code, "22") {
		return err.Message
	}
	return quotes.ReplaceAllString(err.Message, `"…"`)
}

// fit learns how many rows reach MaxBytes, so that the next read asks for no more than it will take.
func (s *Source) fit(r *reading, limit int) {
	switch {
	case r.cut, r.taken >= limit && r.bytes >= s.config.MaxBytes:
		s.rows = max(1, min(r.taken, limit))
	case s.rows > 0 && r.bytes < s.config.MaxBytes/2 && r.taken >= s.rows:
		s.rows *= 2
	}
}

// flush sends the statements of the fence and of the read in one network flush,
// and reads their results as they come.
func (s *Source) flush(ctx context.Context, l *layout, after cursor.Position, limit int) (*reading, error) {
	scan := s.scan(l, limit)
	query, args, err := l.query(s.config, after, scan)
	if err != nil {
		return nil, processor.Permanent(err)
	}
	statements := l.statements(s.config, query, args)
	r := l.newReading(s.config, &s.scratch, limit, scan)
	err = answer.OnConn(ctx, s.pool, s.waits.read, func(ctx context.Context, conn *pgxpool.Conn) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer bound(conn.Conn(), s.config.MaxRecordBytes+frameBytes)()
		if err := prepared.Ready(ctx, conn.Conn(), []string{beginSQL, readSettingsSQL}, preparable(statements)...); err != nil {
			return err
		}
		results := prepared.Exec(ctx, conn.Conn(), statements...)
		err := r.take(results, s.bound)
		if r.unanswered && (tooLarge(err) || l.detail == whole && conn.Conn().IsClosed() && ctx.Err() == nil && unexplained(err)) {
			r.large, r.cut, err = true, true, nil
		}
		if r.cut {
			cancel() // the rest may be large: this closes the connection
		}
		if closed := results.Close(); err == nil && !r.cut {
			err = closed
		}
		return err
	})
	if err == nil {
		s.noteHeld(l, r)
		err = s.check(l, r.sample, after)
		if err == nil {
			s.clock.read(r.sample)
		}
	}
	return r, err
}

// bound returns the bound of a read. What was delivered was below the fence once, and stays there.
func (s *Source) bound(now sample) int64 {
	if s.config.Delivered {
		return math.MaxInt64
	}
	return s.fence.next(now)
}

// scan returns how many rows to ask for, to get a number of records.
func (s *Source) scan(l *layout, limit int) int {
	scan := limit
	if l.sifts(s.config) && l.detail == whole {
		scan = s.sparse.scan(limit)
	}
	if l.shared && scan > 0 {
		scan++ // the last one shows whether the one before it is alone at its position
	}
	return scan
}

// query returns the read after a position, of at most a number of rows.
func (l *layout) query(c Config, after cursor.Position, rows int) (string, [][]byte, error) {
	atMost := []byte(strconv.Itoa(rows))
	if after == "" {
		return l.readSQL(c, true), [][]byte{atMost}, nil
	}
	k, err := l.kind.parse(after)
	if err != nil {
		return "", nil, err
	}
	return l.readSQL(c, false), append(l.arguments(k), atMost), nil
}

// statement is one of the statements of a read.
type statement = prepared.Statement

// statements lists the whole read: begin, settings, hold, mark, writers, rows, whether they are on the disk, commit.
// The fence depends on their order (TestFence_EveryInterleaving).
func (l *layout) statements(c Config, query string, args [][]byte) []statement {
	all := []statement{{SQL: beginSQL}, {SQL: readSettingsSQL}, {SQL: l.holdSQL()}, {SQL: l.markSQL()}}
	for _, sql := range l.writerQueries() {
		all = append(all, statement{SQL: sql})
	}
	return append(all, statement{SQL: query, Args: args, Formats: l.formats(c)}, statement{SQL: durableSQL}, statement{SQL: "COMMIT"})
}

// formats returns the formats of the columns of a read: text, except for a time, which is then a number, and for
// bytes.
func (l *layout) formats(c Config) []int16 {
	columns := l.columns(c)
	var formats []int16
	for field, column := range columns {
		if column < 0 {
			continue
		}
		format := textFormat
		if field == int(fieldAt) || l.bytea && field == int(fieldPayload) {
			format = binaryFormat
		}
		formats = append(formats, format)
	}
	return formats
}

// Formats of a column, as the protocol numbers them.
const (
	textFormat   int16 = 0
	binaryFormat int16 = 1
)

// preparable leaves out BEGIN and COMMIT, which cost nothing to parse.
func preparable(statements []statement) []string {
	var sql []string
	for _, s := range statements[1 : len(statements)-1] {
		sql = append(sql, s.SQL)
	}
	return sql
}

// check compares the mark with the position: rows that are stamped from now on must sort after those that were
// delivered.
func (s *Source) check(l *layout, now sample, after cursor.Position) error {
	f, err := l.overtaken(now, after)
	switch {
	case err != nil:
		return err
	case f == nil:
		return nil
	case !l.ordersByTime():
		return &processor.SequenceError{Server: now.server, Err: processor.Permanent(fmt.Errorf("%s", f))}
	}
	from, err := s.clock.from(l.kind, now, after)
	if err != nil {
		return err
	}
	return &processor.ClockError{Late: processor.Late{Server: now.server, From: from, Reason: f.Problem}, Err: processor.Permanent(fmt.Errorf("%s", f))}
}

// Clock compares the server's clock with a position (processor.Clocked). If the clock is behind the clock of the last
// read, and not behind the position, the next read waits for every transaction that is open then.
func (s *Source) Clock(ctx context.Context, at cursor.Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.layout
	if l == nil {
		var err error
		if l, err = s.current(ctx); err != nil {
			return err
		}
	}
	if !l.ordersByTime() {
		return nil // the next read finds out
	}
	var now sample
	var standby, same bool
	err := s.readOnly(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, l.markSQL(), pgx.QueryExecModeExec).Scan(&now.mark, &now.server, &standby, &same)
	})
	if err != nil || standby || !same {
		return err
	}
	if last := s.fence.last; now.server == last.server && now.mark < last.mark {
		s.fence = fence{}
	}
	if err := s.check(l, now, at); err != nil {
		return err
	}
	s.clock.held(now, at)
	return nil
}

// literal quotes a text for a statement without parameters.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
