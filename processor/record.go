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
	// Position is where the cursor stands once the record is delivered.
	Position cursor.Position
	// Table is the source table, schema-qualified, as the catalog spells it.
	Table string
	// ID is the row's id as the server prints it: exact for any integer, UUID
	// or text.
	ID string
	// Key is the ordering or partition key of the record; "" if the source has none.
	Key string
	// Type is the event type; "" if the source has none.
	Type string
	// CreatedAt is the row's creation time, to the microsecond, in UTC. Zero
	// when the source has no such column.
	CreatedAt time.Time
	// Headers come from the source's headers column; nil if it has none.
	Headers map[string]string
	// Payload holds the bytes the server printed. It is never decoded and
	// encoded again on its way to the sink, which must not change it.
	Payload json.RawMessage
	// Fault is why the source could not read the record; nil if it could. The record
	// then has a position, a table and an id, and whatever else was read. It is
	// handed to no sink: it fails for good, as one of class cursor.ClassUnreadable.
	Fault error
}

// Delivery is a record handed to a sink.
type Delivery struct {
	Record
	// Process is the name of the process that delivers.
	Process string
	// Sequence counts the records of the process, from 1. It has holes only where an operator
	// skipped or sought, and where the server changed: after a standby was promoted or a database
	// was restored, it goes on past all numbers that may have been used. A record keeps its sequence over all
	// attempts.
	Sequence int64
	// Epoch grows at every change of worker, and at an operator's resume, retry, skip or
	// seek, and never starts again. A receiver
	// that has seen a larger one may refuse the delivery: its worker has been
	// superseded.
	Epoch cursor.Epoch
	// Worker names the worker that delivers, as cursor.Config.Worker. Within one database an epoch is that of one worker.
	Worker string
	// Origin is which cursor delivers: a random text that it was made with. Two databases
	// may have a process of one name, and each has its own origin, unless one was copied
	// from the other. It stays over all epochs, and when the process is renamed. Numbers
	// and epochs of different origins have nothing to do with each other.
	Origin string
	// History is the mark of the history that the record belongs to, "" in the first one. Another
	// one begins where ids may come again: behind the cursor's position when a standby is promoted
	// or a database is restored, and where an operator seeks after ids have started again. See
	// cursor.Histories.
	History string
	// Attempt counts from 1.
	Attempt int
	// Unknown says that the receiver may have the record already: an earlier call
	// with it, by this or another worker, ended by time-out, or its worker ended or
	// lost its lease before it could say how. It stays until the record is
	// delivered, over all attempts, and it is no promise that there was such a call:
	// after a change of worker it stands at the first Config.Checkpoint records
	// (of a Batch, Config.Batch), whatever became of them. Never under InTx.
	Unknown bool
	// After is where the cursor stands before the record: the position of the record
	// before it, whether that was delivered, skipped or put aside, or where a seek or
	// the start put the cursor. A receiver whose last record stands there has missed
	// none. If it stands elsewhere, records may be missing: but a worker that takes
	// over after the cursor passed rows that the source leaves out (see Page.Passed),
	// or records that are gone from it, knows only that place. It equals Position in the
	// replay of a dead letter, which is out of turn and moves no cursor.
	After cursor.Position
}

// DedupKey is the identity of the record for receivers: the same at every
// attempt, by every worker, and after a replay. It names the table, the id and
// the time of creation, since ids may come again after a failover that lost
// commits. Where the source has no time of creation, it names the history instead,
// except the first.
func (d Delivery) DedupKey() string {
	switch {
	case d.CreatedAt.IsZero() && d.History != "":
		return d.Table + "/" + d.ID + "/" + d.History
	case d.CreatedAt.IsZero():
		return d.Table + "/" + d.ID
	}
	return d.Table + "/" + d.ID + "/" + strconv.FormatInt(d.CreatedAt.UnixMicro(), 10)
}

// Page is what one read of a source found.
type Page struct {
	// Records follow the position asked for, in order, without a gap. Each position
	// is greater than the one before it.
	Records []Record
	// Passed is a position after the one asked for, up to which there is no record
	// and never will be; "" if none is worth the write. The cursor advances to it. Only
	// without Records. A source that leaves rows out returns it once it has looked at
	// many of them, so that they are not looked at again.
	Passed cursor.Position
	// Waiting says that records were seen that may still be preceded, and so are
	// not among Records.
	Waiting bool
	// Due is a hint, with Waiting: how long until the first of them may be read
	// if nothing else holds it back. Zero when that is not known.
	Due time.Duration
	// Ahead, with Due: how far the first of them is stamped ahead of the clock.
	Ahead time.Duration
	// Server is the run of the server that was read: see cursor.Lease.Server. If the source and the
	// store share a pool (see Pooled), records are delivered only under a lease of the same run.
	// "" if it is not known.
	Server string
	// Log is where the write-ahead log of that run ended when the page was read, in bytes from its beginning; the disk has all
	// before it. 0 if it is not known. See cursor.Seen.Kept.
	Log int64
}

// Source yields records in order. Implementations are safe for use by one
// reader at a time.
type Source interface {
	// Read returns at most limit records after the position, fewer when they
	// are large. Every record that will ever sort before a returned one has been
	// returned by this or an earlier read. After "" it reads from the beginning.
	Read(ctx context.Context, after cursor.Position, limit int) (Page, error)
}

// Ender is an optional ability of a Source, needed for Config.Start = End.
type Ender interface {
	// End returns the position behind everything stamped so far.
	End(ctx context.Context) (cursor.Position, error)
}

// ClockError is the error of a Read on a server whose clock is not past the position that was
// asked for: what it stamps now sorts before what was delivered. The process halts.
type ClockError struct {
	Late
	Err error
}

func (e *ClockError) Error() string { return e.Err.Error() }

func (e *ClockError) Unwrap() error { return e.Err }

// SequenceError is the error of a Read on a server whose sequence of ids stands before the position that was asked for: what
// is inserted there now sorts before what was delivered. It is none of the process's if its cursor is on another server.
type SequenceError struct {
	Server string // the run of the server that was read
	Err    error
}

func (e *SequenceError) Error() string { return e.Err.Error() }

func (e *SequenceError) Unwrap() error { return e.Err }

// Clocked is an optional ability of a Pooled source whose order is given by the server's clock.
type Clocked interface {
	// Clock holds the server's clock against a position: the error is a *ClockError if it is not past it. It is
	// called while nothing is read, also before the first Read, and at the same time as Read at most.
	Clock(ctx context.Context, at cursor.Position) error
}

// Late says that rows sort before what was delivered, or may.
type Late struct {
	// Server is the run of the server on which they were looked for.
	Server string
	// From is a position before them all; "" if it is not known.
	From cursor.Position
	// Reason is what was found, for people; "" if there are none.
	Reason string
	// Short says, for people, of which rows it was not found out; "" of none.
	Short string
}

// Auditor is an optional ability of a Pooled source, for when a standby was promoted, or the database restored.
type Auditor interface {
	// Late looks for rows at or before a position that were written by transactions from the
	// horizon on: the server has stamped them with a clock that is behind. It is called on a
	// position that the source has read behind. It looks as far back as it can in
	// the time that a promotion may take; everywhere, if the clock was seen to be behind. Then "" as the horizon means that
	// transactions do not tell such rows from others: if nothing else does, there may be some. An
	// error means that it is not known yet, and Late is called again. A look that would never end in time
	// returns a Reason, and no From.
	Late(ctx context.Context, at cursor.Position, horizon string, everywhere bool) (Late, error)
}

// Repeater is an optional ability of a Pooled source, for when a cursor that was given up is made again.
type Repeater interface {
	// KeysMayRepeat reports whether records may have the dedup keys of other records that were read before, up to a position: ids
	// have started again since the horizon (see cursor.Store.Horizon), or it is not known.
	KeysMayRepeat(ctx context.Context, at cursor.Position, horizon string) (bool, error)
}

// Refresher is an optional ability of a Source, which may keep for a while what it knows of its table.
type Refresher interface {
	// Refresh has the next Read find out anew how the table is made. It is called in each new epoch: a process is
	// paused so that its table can be changed.
	Refresh()
}

// Counter is an optional ability of a Source: to say how much it holds, for the
// *NoStartError of a process without Config.Start.
type Counter interface {
	// Count returns how many records there are. With more, there are more, which
	// were not counted.
	Count(ctx context.Context) (records int64, more bool, err error)
}

// Recycler is an optional ability of a Source: to use the room of a page again.
type Recycler interface {
	// Recycle takes back Page.Records of an earlier Read. The caller keeps nothing
	// of the slice; what its records refer to may live on.
	Recycle(records []Record)
}
