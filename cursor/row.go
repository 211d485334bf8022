package cursor

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// State is the state of a process.
type State string

const (
	Running State = "running" // records are delivered
	Paused  State = "paused"  // by an operator
	Halted  State = "halted"  // on a record that cannot be delivered
)

// Row is the content of a cursor's row when it was read.
type Row struct {
	Process  string
	Position Position
	// Sequence counts the records delivered so far.
	Sequence int64
	Epoch    Epoch
	// Holder is the worker of this epoch: the last one to deliver, even if it does not hold the lease now. ""
	// before the first.
	Holder string
	State  State
	// Failure is the record the process is stuck on; nil if there is none.
	Failure *Failure
	// Origin identifies the cursor. It is a random text that the cursor gets when it is made. It stays the same
	// over epochs and a rename. A copy of the database has it, too.
	Origin string
	// Histories are the places after which ids and numbers may have come again: see Histories.
	Histories Histories

	unsettled, restored, unnoted bool // see the methods of these names
	// start is how the server began. Only Observe fills it in.
	start start
	// UpdatedAt is the database's time of the last change.
	UpdatedAt time.Time
}

// Unsettled reports that the process was set running after a halt over its server's clock, and that its source
// still has to look for all rows that were stamped before the position: see PromotedError.Retried.
func (r Row) Unsettled() bool { return r.unsettled }

// UnsettledRestore reports that an operator reported the database as restored, and the source has not looked yet
// for rows that were stamped before the position.
func (r Row) UnsettledRestore() bool { return r.restored }

// Unnoted reports that the row belongs to another server than the one it was read from, as after a promotion or
// a restore, and no worker has noted that yet. It is only known of a row from LockForOperator.
func (r Row) Unnoted() bool { return r.unnoted }

// Displaced reports that the process halted over its server, and not over a record.
func (r Row) Displaced() bool { return r.Failure != nil && r.Failure.OfServer() }

// Failure is a record that could not be delivered.
type Failure struct {
	Position Position
	RecordID string
	// Attempts is the number of attempts so far, at least 1.
	Attempts int
	// First and Last are the times of the first and the last attempt that failed, in the database's time.
	First, Last time.Time
	// Wait is the time until the next attempt: counted from when the row was read or, in a Failure for
	// Lease.Fail, from now.
	Wait time.Duration
	// Error is the sink's last error.
	Error string
	// Class is the class of that error. "" counts as ClassTransient.
	Class Class
}

// Class is what an error means for the record that it stopped.
type Class string

const (
	// ClassTransient means that the record is tried again.
	ClassTransient Class = "transient"
	// ClassPermanent means that the record can never succeed, as the sink reported.
	ClassPermanent Class = "permanent"
	// ClassRefused means that the receiver refused us (credentials, address, settings). No record is at fault:
	// the one that is named was the next to be sent.
	ClassRefused Class = "refused"
	// ClassUnknown means that the call ended by time-out, and the receiver may have the record.
	ClassUnknown Class = "unknown"
	// ClassUnreached means that nothing was sent, or that the receiver could take no record at all. It shows
	// nothing about this record, which is tried again.
	ClassUnreached Class = "unreached"
	// ClassUnreadable means that the source could not read the record, or that it could not be prepared for the
	// sink. No sink was called.
	ClassUnreadable Class = "unreadable"
	// ClassUnprepared is ClassUnreadable of a dead letter that holds the whole row: the record was read, and could
	// not be prepared. A replay prepares it again. Only dead letters have this class.
	ClassUnprepared Class = "unprepared"
	// ClassRestored means that the database is not the one that the position belongs to, or was put back. No
	// record is at fault: RecordID is "", and Position is the cursor's.
	ClassRestored Class = "restored"
	// ClassOldPrimary means that the process has run on a later timeline of this cluster. The server is an old
	// primary that was not fenced, or it was restored to a time before a failover. All of ClassRestored
	// applies, too, and a decision must be Fenced.
	ClassOldPrimary Class = "old_primary"
	// ClassReset means that the sequence of the ids is before the position, so new rows would never be read. No
	// record is at fault: RecordID is "", and Position is the cursor's.
	ClassReset Class = "reset"
	// ClassClock means that the server's clock was behind the cursor, as after the promotion of a standby, so
	// rows were stamped that sort before what was delivered. No record is at fault: RecordID is "". Position is
	// before all these rows, or "" if no such position is known. A Seek to it is an answer. A paused process
	// may have such a failure, too.
	ClassClock Class = "clock"
	// ClassDatabase means that the cursor's own database failed. That is never the record's fault, so a Failure
	// never has this class.
	ClassDatabase Class = "database"
)

// OfUs reports that no record is at fault: the receiver refused our credentials, our address or our settings.
func (f Failure) OfUs() bool { return f.Class == ClassRefused }

// Tried is how often the record was tried and since when: "3 attempts since 2026-11-20T12:00:01Z".
func (f Failure) Tried() string {
	if f.First.IsZero() {
		return f.Tries()
	}
	return f.Tries() + " since " + f.First.UTC().Format(time.RFC3339)
}

// Tries is how often the record was tried: "1 attempt", "3 attempts".
func (f Failure) Tries() string {
	if f.Attempts == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", f.Attempts)
}

// OfServer reports that no record is at fault: the database was restored, or its clock or its sequence of ids
// is behind.
func (f Failure) OfServer() bool {
	return f.Restored() || f.Class == ClassClock || f.Class == ClassReset
}

// Restored reports that the database is not the one that the position belongs to, was put back, or is an old
// primary's.
func (f Failure) Restored() bool { return f.Class == ClassRestored || f.Class == ClassOldPrimary }

func (f Failure) class() Class {
	if f.Class == "" {
		return ClassTransient
	}
	return f.Class
}

// rowColumns are the columns that parseRow takes, in its order. The server sends times as microseconds, so no
// session setting affects them. The expressions run under any search_path. The wait for the next attempt is
// never longer than it was when the failure was written, even if the database's clock is set back.
const rowColumns = `
	process_name,
	position,
	sequence,
	epoch,
	holder,
	state,
	(extract(epoch FROM updated_at) OPERATOR(pg_catalog.*) 1000000)::bigint,
	failed_position,
	failed_record_id,
	failed_attempts,
	(extract(epoch FROM first_failed_at) OPERATOR(pg_catalog.*) 1000000)::bigint,
	(extract(epoch FROM last_failed_at) OPERATOR(pg_catalog.*) 1000000)::bigint,
	(extract(epoch FROM least(
		next_attempt_at OPERATOR(pg_catalog.-) pg_catalog.clock_timestamp(),
		next_attempt_at OPERATOR(pg_catalog.-) last_failed_at
	)) OPERATOR(pg_catalog.*) 1000000)::bigint,
	failed_error,
	failed_class,
	origin,
	histories,
	coalesce(timeline, 1)`

// rowWidth is the number of rowColumns.
const rowWidth = 18

// parseRow reads the text values of rowColumns.
func parseRow(values [][]byte) (Row, error) {
	p := tables.Parser{Values: values}
	row := Row{
		Process:   p.Text(0),
		Position:  Position(p.Text(1)),
		Sequence:  p.Int(2),
		Epoch:     Epoch(p.Int(3)),
		Holder:    p.Text(4),
		State:     State(p.Text(5)),
		UpdatedAt: p.Time(6),
		Origin:    p.Text(15),
		Histories: Histories(p.Text(16)),
		unsettled: p.Int(17) <= 0,
		restored:  p.Int(17) == RestoredTimeline,
	}
	if len(values) == lookColumns {
		row.start = start{run: p.Text(rowWidth), place: p.Text(rowWidth + 1), log: p.Int(rowWidth + 2), kept: p.Int(rowWidth + 3)}
	}
	if values[7] != nil {
		row.Failure = &Failure{
			Position: Position(p.Text(7)),
			RecordID: p.Text(8),
			Attempts: int(p.Int(9)),
			First:    p.Time(10),
			Last:     p.Time(11),
			Wait:     max(0, p.Duration(12)),
			Error:    p.Text(13),
			Class:    Class(p.Text(14)),
		}
	}
	return row, p.Err
}

func parseRows(result *pgconn.Result) ([]Row, error) {
	var rows []Row
	for _, values := range result.Rows {
		row, err := parseRow(values)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}
