package cursor

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// DeadLetter is a record that its process put aside before it went on.
type DeadLetter struct {
	ID      int64
	Process string
	// At is when the process put it aside, in the database's time.
	At time.Time
	// Position and Sequence are those under which it was attempted; no other record of the process has them.
	Position Position
	Sequence int64

	Table, RecordID, Key, Type string
	CreatedAt                  time.Time // of the record; zero if it is not known
	Headers                    map[string]string
	Payload                    []byte // as it was sent
	// Withheld reports that the role may not read headers and payload, which are empty here.
	Withheld bool

	// Failure is the reason. Its Position, RecordID and Wait are not set.
	Failure Failure

	// Resolution is how the dead letter was resolved; "" while it is open.
	Resolution Resolution
	ResolvedAt time.Time
	ResolvedBy string
	Reason     string
}

// HeaderAmended is a header that a dead letter has, and its record has not: the payload is the one that an operator had
// given to the record. See Amendment.
const HeaderAmended = "ordered-amended"

// Amended reports that the payload is the one that an operator had given to the record. It needs the headers.
func (l DeadLetter) Amended() bool { return l.Headers[HeaderAmended] == "true" }

// Resolution is what an operator did with a dead letter.
type Resolution string

// The resolutions.
const (
	Replayed  Resolution = "replayed"  // delivered after all, out of its turn
	Discarded Resolution = "discarded" // never to be delivered
)

// ErrNoDeadLetter reports that there is no dead letter of that number, or that it is resolved already.
var ErrNoDeadLetter = errors.New("no such open dead letter")

// deadLetterSQL keeps the record's time to the microsecond, because that time is part of the dedup key.
// to_timestamp, and a product with an interval, compute with a double. A double holds whole hours exactly as
// far as the server's times go, and the whole microseconds of one hour. So the statement adds the two.
//
// A foreign trigger may make the INSERT keep no row; then the cursor stays, too.
const deadLetterSQL = `/* cursor.dead_letter */
WITH changed AS (
INSERT INTO {schema}.dead_letter (
	process_name, position, sequence, table_name, record_id, key, type, record_created_at,
	headers, attempts, first_failed_at, error, class, payload
)
SELECT
	$1, $2, $3, $4, $5, $6, $7, timestamptz 'epoch' + ($8::bigint / 3600000000) * interval '1 hour' + ($8 % 3600000000) * interval '1 microsecond',
	$9::json, $10, clock_timestamp() - $11::bigint * interval '1 microsecond', $12, $13, $14::bytea
	RETURNING 1
)` + tables.UnlessOne + `'the dead letter is not kept, as a trigger of the table dead_letter may decide: rows: '` + tables.Raise

// PutAside durably moves the cursor past the record that failed and keeps that record as a dead letter, in one
// transaction with its audit row. Then it goes on holding the lease. The dead letter takes the next sequence,
// under which a receiver may have seen the record. The caller must have undone already what was done since the
// last Advance (see Rollback). Its outcomes are those of Advance.
func (l *Lease) PutAside(ctx context.Context, d DeadLetter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return l.store.db.Explain("keep a dead letter of", l.row.Process, err)
	}
	insert, err := l.deadLetter(d)
	if err != nil {
		return l.store.db.Explain("keep a dead letter of", l.row.Process, err)
	}
	event := l.event("dead_letter", d.Position, d.RecordID, d.Failure)
	next := l.row
	next.Position, next.Sequence, next.Failure = d.Position, l.row.Sequence+1, nil
	ok, err := l.checkpoint(ctx, next, tables.Pin, insert, event, l.advanced(d.Position, 1))
	if !ok {
		return l.notAdvanced(d.Position, err)
	}
	return err
}

func (l *Lease) deadLetter(d DeadLetter) (tables.Statement, error) {
	headers, err := json.Marshal(d.Headers)
	if d.Headers == nil {
		headers = []byte("{}")
	}
	created := tables.Null
	if !d.CreatedAt.IsZero() {
		created = strconv.FormatInt(d.CreatedAt.UnixMicro(), 10)
	}
	f := d.Failure
	s := l.store.db.Statement(deadLetterSQL,
		l.row.Process, string(d.Position), strconv.FormatInt(l.row.Sequence+1, 10), d.Table, d.RecordID, d.Key, d.Type, created,
		string(headers),
		strconv.Itoa(f.Attempts), strconv.FormatInt(f.Last.Sub(f.First).Microseconds(), 10), clean(f.Error), string(f.class()))
	if s.Last = d.Payload; d.Payload == nil {
		s.Args = append(s.Args, tables.Null)
	}
	return s, err
}
