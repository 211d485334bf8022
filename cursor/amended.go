package cursor

import (
	"context"
	"errors"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// Amendment is the payload that an operator gave to one record of a process. Workers deliver it instead of the
// payload of the row, which stays as it is.
type Amendment struct {
	Process string
	// Position and DedupKey are those of the record. Another record may come to the same position, if ids start
	// again; it has another key.
	Position Position
	DedupKey string
	// Table and RecordID are those of the record: the table with its schema, and the row's id.
	Table, RecordID string
	// Payload is what is delivered. It is whole: neither compressed nor a claim check.
	Payload []byte
	// Original is the SHA-256 of the row's payload, in lower-case hexadecimal.
	Original string
	// Actor and User are who amended it: the claimed name, and the role that was logged in.
	Actor, User string
	Reason      string
	At          time.Time
}

// ErrAmendmentsHidden reports that records of the process were amended, and that the role of the worker may not
// read how. It must not send the payloads of the rows instead.
var ErrAmendmentsHidden = errors.New("an operator has amended records of this process, and this role may not read the table cursor_amended: " +
	"run, as the owner, what `ordered-dispatcher grants` prints for the role")

// amendableSQL finds out whether there can be an amendment: whether the table exists, whether the role may read it,
// and, if it may not, whether anything was amended. An error of the server would end the transaction of the lease. The
// names have their schemas, since the search_path is that of the sink.
const amendableSQL = `/* cursor.amendable */
SELECT
	t.oid IS NOT NULL,
	coalesce(pg_catalog.has_table_privilege(t.oid, 'SELECT'), false),
	EXISTS (
		SELECT FROM {schema}.cursor_event e
		WHERE e.process_name OPERATOR(pg_catalog.=) $1
			AND e.action OPERATOR(pg_catalog.=) 'amend'
			AND NOT coalesce(pg_catalog.has_table_privilege(t.oid, 'SELECT'), true)
	)
FROM (SELECT pg_catalog.to_regclass('{schema}.cursor_amended')::pg_catalog.oid AS oid) t`

// nextAmendedSQL reads one entry of the primary key.
const nextAmendedSQL = `/* cursor.next_amended */
SELECT a.position
FROM {schema}.cursor_amended a
WHERE a.process_name OPERATOR(pg_catalog.=) $1
	AND a.position OPERATOR(pg_catalog.>=) $2
ORDER BY a.position
LIMIT 1`

// NextAmended returns the position of the first amended record of the process at a position or after it; "" if there
// is none. Operators amend under the lock of the row and begin an epoch. So the answer holds until the lease ends. A
// database in which nothing can be amended yet has none. An error ends the lease.
func (l *Lease) NextAmended(ctx context.Context, from Position) (next Position, err error) {
	err = l.read(ctx, "look for amended records of", func(ctx context.Context) error {
		able, err := l.amendable(ctx)
		if err != nil || !able {
			return err
		}
		results, err := l.flush(ctx, l.store.db.Statement(nextAmendedSQL, l.row.Process, string(from)))
		if err == nil && len(results[0].Rows) > 0 {
			next = Position(results[0].Rows[0][0])
		}
		return err
	})
	return next, err
}

func (l *Lease) amendable(ctx context.Context) (bool, error) {
	results, err := l.flush(ctx, l.store.db.Statement(amendableSQL, l.row.Process))
	if err != nil {
		return false, err
	}
	p := tables.Parser{Values: results[0].Rows[0]}
	if p.True(2) {
		return false, ErrAmendmentsHidden
	}
	return p.True(0) && p.True(1), nil
}

// amendedSQL reads the payload of one record by the primary key.
const amendedSQL = `/* cursor.amended */
SELECT pg_catalog.encode(a.payload, 'hex')
FROM {schema}.cursor_amended a
WHERE a.process_name OPERATOR(pg_catalog.=) $1
	AND a.position OPERATOR(pg_catalog.=) $2
	AND a.dedup_key OPERATOR(pg_catalog.=) $3`

// Amended returns the payload that an operator gave to the record at a position with a dedup key, and whether there is
// one. An error ends the lease.
func (l *Lease) Amended(ctx context.Context, at Position, dedupKey string) (payload []byte, found bool, err error) {
	err = l.read(ctx, "read an amended record of", func(ctx context.Context) error {
		results, err := l.flush(ctx, l.store.db.Statement(amendedSQL, l.row.Process, string(at), dedupKey))
		if err != nil || len(results[0].Rows) == 0 {
			return err
		}
		found = true
		payload, err = tables.Bytes(results[0].Rows[0][0])
		return err
	})
	return payload, found, err
}

// read runs f, which only reads, in the transaction of the lease.
func (l *Lease) read(ctx context.Context, doing string, f func(context.Context) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.over()
	if err == nil {
		within, cancel := context.WithTimeout(ctx, l.store.db.Timeout)
		defer cancel()
		if err = f(within); err != nil {
			err = l.lose(err)
		}
	}
	if err != nil {
		return l.store.db.Explain(doing, l.row.Process, err)
	}
	return nil
}
