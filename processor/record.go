package processor

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// Record is a row to deliver.
type Record struct {
	// Position is the cursor's position once the record is delivered.
	Position cursor.Position
	// Table is the source table, schema-qualified, as the catalog spells it.
	Table string
	// ID is the row's id as the server prints it: exact for any integer, UUID or text.
	ID string
	// Key is the ordering or partition key of the record; "" if the source has none.
	Key string
	// Type is the event type; "" if the source has none.
	Type string
	// CreatedAt is the row's creation time, to the microsecond, in UTC. It is zero if the source has no such
	// column.
	CreatedAt time.Time
	// Headers come from the source's headers column; nil if it has none.
	Headers map[string]string
	// Payload holds the bytes that the server printed. They are never decoded and encoded again on the way to
	// the sink, unless Config.Prepare does so, and the sink must not change them.
	Payload json.RawMessage
	// Amended reports that Payload is the one that an operator gave to the record (operator.Operator.Amend), and not
	// that of the row. Order and dedup key are those of the row.
	Amended bool
	// Fault is why the source could not read the record; nil if it could. The record then has a position, a
	// table and an id, and all else that could be read. It goes to no sink: it fails for good, with class
	// cursor.ClassUnreadable.
	Fault error

	// row is the record as the source read it, once the record is prepared: see Prepare.
	row *Record
}

// Delivery is a record handed to a sink.
type Delivery struct {
	Record
	// Process is the name of the process that delivers.
	Process string
	// Sequence is the number of the record in its process, from 1. It grows by one for each record, and a record
	// keeps it over all attempts. Four things leave a hole: an operator's skip or seek; a record that was deleted
	// after it was sent; a cursor that gets the name of an earlier one; a server that was promoted, restored or
	// set back. After the last two it goes on past all numbers that may have been used.
	Sequence int64
	// Epoch grows at every change of worker, and at an operator's resume, retry, skip or seek, and never starts
	// again. A receiver that has seen a larger one may refuse the delivery: another worker has superseded its
	// worker.
	Epoch cursor.Epoch
	// Worker names the worker that delivers, as in cursor.Config.Worker. Within one database an epoch belongs
	// to one worker.
	Worker string
	// Origin identifies the cursor that delivers. It is a random text that the cursor got when it was made. Two
	// databases may have a process of the same name, and each has its own origin, unless one database was
	// copied from the other. Origin stays the same over all epochs, and when the process is renamed. Numbers
	// and epochs of different origins are unrelated.
	Origin string
	// History is the mark of the history that the record belongs to, or "" in the first one. Another one begins
	// where ids may come again: after the cursor's position when a standby is promoted or a database is
	// restored, and where an operator seeks after ids have started again. See cursor.Histories.
	History string
	// Attempt is the number of this attempt, from 1.
	Attempt int
	// Unknown reports that the receiver may have the record already. An earlier call with it, by this or
	// another worker, ended by time-out, or its worker ended or lost its lease before it could report the
	// outcome. Unknown stays true over all attempts until the record is delivered. It does not prove that there
	// was such a call: after a change of worker it is true for the first Config.Checkpoint records (of a Batch,
	// Config.Batch), even if none was sent. Never with InTx.
	Unknown bool
	// After is the cursor's position before the record. It is the position of the record before it, which was
	// delivered, skipped or put aside, or the position at which a seek or the start put the cursor. If a
	// receiver's last record is at After, the receiver has missed none. If it is elsewhere, records may be
	// missing, with one exception: a worker may take over after the cursor passed rows that the source leaves
	// out (see Page.Passed), or records that are gone from it. That worker only knows the position after them.
	// In the replay of a dead letter, which is out of turn and moves no cursor, After equals Position.
	After cursor.Position
}

// DedupKey is the identity of the record for receivers. It is the same at every attempt, by every worker, and
// after a replay. It names the table, the id and the time of creation, since ids may come again after a
// failover that lost commits. If the source has no time of creation, it names the history instead, unless that
// is the first one.
func (d Delivery) DedupKey() string {
	switch {
	case d.CreatedAt.IsZero() && d.History != "":
		return d.Table + "/" + d.ID + "/" + d.History
	case d.CreatedAt.IsZero():
		return d.Table + "/" + d.ID
	}
	return d.Table + "/" + d.ID + "/" + strconv.FormatInt(d.CreatedAt.UnixMicro(), 10)
}

// Page is the result of one read of a source.
type Page struct {
	// Records follow the position asked for, in order, without a gap. Each position
	// is greater than the one before it.
	Records []Record
	// Passed is a position after the one asked for, up to which there is no record and never will be. It is ""
	// if no such position is worth the write. The cursor advances to it. Only without Records. A source that
	// leaves rows out returns it once it has looked at many of them, so that it does not look at them again.
	Passed cursor.Position
	// Waiting reports that the source saw records that may still be preceded, and so are not among Records.
	Waiting bool
	// Due is a hint, with Waiting: how long until the first of them may be read
	// if nothing else holds it back. Zero when that is not known.
	Due time.Duration
	// Ahead goes with Due: how far the first of them is stamped ahead of the clock.
	Ahead time.Duration
	// Server is the run of the server that was read: see cursor.Lease.Server. If the source and the store share
	// a pool (see Pooled), records are delivered only under a lease on the same run. "" if it is not known.
	Server string
	// Log is where the write-ahead log of that run ended when the page was read, in bytes from the log's
	// beginning. The disk has all of the log before it. 0 if it is not known. See cursor.Seen.Kept.
	Log int64
}

// Source returns records in order. An implementation must be safe for use by one reader at a time.
type Source interface {
	// Read returns at most limit records after the position, fewer when they
	// are large. Every record that will ever sort before a returned one has been
	// returned by this or an earlier read. After "" it reads from the beginning.
	Read(ctx context.Context, after cursor.Position, limit int) (Page, error)
}

// Ender is an optional ability of a Source, needed for Config.Start = End.
type Ender interface {
	// End returns the position after everything stamped so far.
	End(ctx context.Context) (cursor.Position, error)
}

// ClockError is the error of a Read on a server whose clock is not past the position that was asked for. New
// rows there sort before what was delivered. The process halts.
type ClockError struct {
	Late
	Err error
}

func (e *ClockError) Error() string { return e.Err.Error() }

func (e *ClockError) Unwrap() error { return e.Err }

// SequenceError is the error of a Read on a server whose sequence of ids is before the position that was asked
// for. New rows there now sort before what was delivered. It does not concern the process if its cursor is on
// another server.
type SequenceError struct {
	Server string // the run of the server that was read
	Err    error
}

func (e *SequenceError) Error() string { return e.Err.Error() }

func (e *SequenceError) Unwrap() error { return e.Err }

// Clocked is an optional ability of a Pooled source whose order is given by the server's clock.
type Clocked interface {
	// Clock compares the server's clock with a position: the error is a *ClockError if the clock is not past
	// it. It is called while nothing is read, also before the first Read, and at most at the same time as Read.
	Clock(ctx context.Context, at cursor.Position) error
}

// Late describes rows that sort before what was delivered, or may.
type Late struct {
	// Server is the run of the server on which the source looked for them.
	Server string
	// From is a position before all of them; "" if it is not known.
	From cursor.Position
	// Reason describes what was found, for people; "" if there are no such rows.
	Reason string
	// Short describes, for people, for which rows this could not be found out; "" if there are none.
	Short string
}

// Auditor is an optional ability of a Pooled source, for use after a standby was promoted, or the database
// restored.
type Auditor interface {
	// Late looks for rows at or before a position that were written by transactions from the horizon on: the
	// server has stamped them with a clock that is behind. at is a position after which the source has read.
	// Late looks as far back as it can in the time that a promotion may take, or at all rows with everywhere,
	// if the clock was seen to be behind. Then "" as the horizon means that transactions do not distinguish
	// such rows: unless something else does, there may be some. An error means that the result is not known
	// yet, and Late is called again. If the look would never end in time, Late returns a Reason, and no From.
	Late(ctx context.Context, at cursor.Position, horizon string, everywhere bool) (Late, error)
}

// Repeater is an optional ability of a Pooled source, for use when a cursor that was given up is made again.
type Repeater interface {
	// KeysMayRepeat reports whether records may have the dedup keys of other records that were read before, up
	// to a position: ids have started again since the horizon (see cursor.Store.Horizon), or it is not known
	// whether they have.
	KeysMayRepeat(ctx context.Context, at cursor.Position, horizon string) (bool, error)
}

// Refresher is an optional ability of a Source that may cache for a while what it knows of its table.
type Refresher interface {
	// Refresh makes the next Read find out anew how the table is made. It is called in each new epoch, because
	// an operator may have paused the process to change its table.
	Refresh()
}

// Counter is an optional ability of a Source: it reports how many records it holds, for the *NoStartError of a
// process without Config.Start.
type Counter interface {
	// Count returns how many records there are. If more is true, there are further records, which were not
	// counted.
	Count(ctx context.Context) (records int64, more bool, err error)
}

// Recycler is an optional ability of a Source: it uses the memory of a page again.
type Recycler interface {
	// Recycle takes back Page.Records of an earlier Read. The caller keeps nothing of the slice; what its
	// records refer to may live on.
	Recycle(records []Record)
}
