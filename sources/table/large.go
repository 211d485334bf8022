package table

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// detail is how much a read fetches of each row. A row that turns out to be too large ends a read before its first
// byte. The next read asks for that row alone. After any error the next read fetches whole rows again.
type detail int

const (
	whole   detail = iota // everything: a row that is too large is noticed by the length of its message
	weighed               // the size, and everything if that is not too large
	bare                  // id and time: the server itself could not make the rest
)

// Names of ours that Config.Where sees. No column of a table has such a name.
const (
	sizeTable  = "ordered_dispatcher_record"
	sizeColumn = "ordered_dispatcher_size"
)

const (
	// frameBytes is the part of a message besides the fields of MaxRecordBytes: the time and the lengths.
	frameBytes = 64 << 10
	// maxMessage is what pgx accepts by default.
	maxMessage = 1<<30 - 1
)

// bound makes a connection refuse larger messages, by their first bytes, until the returned function is called.
func bound(conn *pgx.Conn, bytes int) (restore func()) {
	frontend, before := conn.PgConn().Frontend(), conn.Config().MaxProtocolMessageBodyLen
	if before <= 0 {
		before = maxMessage
	}
	frontend.SetMaxBodyLen(min(before, bytes))
	return func() { frontend.SetMaxBodyLen(before) }
}

// tooLarge reports whether a read failed because of the size of a row. Either this side refused the row, or the
// server could not put it together (54000, or XX000 of its memory, which it allocates in pieces of up to a gigabyte).
func tooLarge(err error) bool {
	var refused *pgproto3.ExceededMaxBodyLenErr
	if errors.As(err, &refused) {
		return true
	}
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return false
	}
	allocators := []string{"palloc", "palloc0", "palloc_extended", "repalloc", "repalloc_huge", "MemoryContextAlloc",
		"MemoryContextAllocZero", "MemoryContextAllocExtended", "MemoryContextSizeFailure", "enlargeStringInfo"}
	return pgErr.Code == "54000" || pgErr.Code == "XX000" && slices.Contains(allocators, pgErr.Routine)
}

// unexplained reports whether a connection was closed at a first row without an error of the server. pgx does not
// give its reason, which may have been the size of that row. If it was not, the row is weighed in vain, and comes
// whole. So a connection that ends for any other reason (an ended session, a crash, the network) never makes a row
// too large: only an error of the server leads to a bare row.
func unexplained(err error) bool {
	var pgErr *pgconn.PgError
	return !errors.As(err, &pgErr)
}

// next returns the detail of the next read.
func (r *reading) next(after cursor.Position) (detail, error) {
	switch was := r.layout.detail; {
	case !r.large:
		return whole, nil
	case was == bare:
		return whole, fmt.Errorf("the row after position %q is too large even without its payload", after)
	case was == weighed && r.seen > 0: // the row after it is too large, and a bare read would withhold both
		return whole, processor.Permanent(fmt.Errorf("the server cannot put the second row after position %q together, and no unique index "+
			"proves that the first one is alone at its position: make the second one smaller, or create a unique index of the order", after))
	default:
		return was + 1, nil
	}
}

// weighed returns the fields that such a read selects, and their source. The size is computed once for each record.
func (l *layout) weighed(c Config) (fields []string, source string) {
	for _, expression := range l.fields(c) {
		if expression != "" {
			fields = append(fields, expression)
		}
	}
	where := "true"
	if l.sifts(c) {
		where = "(\n" + c.Where + "\n)"
	}
	size := "0::bigint"
	if l.detail == weighed {
		size = l.size(c)
	}
	return fields, fmt.Sprintf("%s AS t\nLEFT JOIN LATERAL (SELECT %s AS %s WHERE %s OFFSET 0) AS %s ON true",
		l.sql(), size, sizeColumn, where, sizeTable)
}

// withhold changes the fields so that they are not fetched if they are too large, or not at all.
func (l *layout) withhold(c Config, all *[fieldCount]string) {
	const size = sizeTable + "." + sizeColumn
	for f, expression := range all {
		switch {
		case expression == "" || field(f) == fieldID || field(f) == fieldAt:
		case field(f) == fieldTaken:
			all[f] = fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN true END", size)
		case l.detail == bare:
			all[f] = "NULL::text"
		default:
			all[f] = fmt.Sprintf("CASE WHEN %s <= %d THEN %s END", size, c.MaxRecordBytes, expression)
		}
	}
	all[fieldSize] = size
}

// size returns the size of a record as it would be sent. The server knows the size of a text without unpacking it,
// and the size of a value that it just computed without copying it.
func (l *layout) size(c Config) string {
	terms := []string{"0::bigint"}
	for f, expression := range l.of(whole).fields(c) {
		switch {
		case expression == "" || field(f) == fieldAt || field(f) == fieldTaken:
		case field(f) == fieldPayload && c.Columns.Payload == "":
			terms = append(terms, fmt.Sprintf("pg_column_size(%s) - 4", expression))
		case field(f) == fieldPayload && l.bytea:
			terms = append(terms, fmt.Sprintf("coalesce(octet_length(%s), 0)", expression))
		default:
			terms = append(terms, fmt.Sprintf("coalesce(octet_length((%s)::text), 0)", expression))
		}
	}
	return strings.Join(terms, " + ")
}

// weigh returns the fault of a record that was not fetched, or should not have been.
func (r *reading) weigh(row *row) error {
	switch {
	case r.layout.detail == bare:
		return errors.New("the server cannot put it together: it is too large. Make the row smaller")
	case row.weight > int64(r.maxRecord):
		return fmt.Errorf("it has %d bytes, and max_record_bytes is %d: raise that, or make the row smaller", row.weight, r.maxRecord)
	default:
		return nil
	}
}
