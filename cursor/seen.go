package cursor

import (
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// start is how a run of a server began.
type start struct {
	run   string // prepared.RunSQL
	place string // the system identifier and the timeline; "" while it recovers
	// log is the place of its last checkpoint in the write-ahead log, in bytes from the log's beginning; the
	// disk has all of the log before it. If a server starts on the same timeline as before, its log ends there:
	// at the checkpoint of its shutdown, or of its recovery. 0 if the control file does not have it.
	log int64
	// kept is the end of its log at the look, if the disk had all of it; else 0.
	kept int64
}

// startSQL reads the columns of start, under any search_path.
const startSQL = prepared.RunSQL + `,
	CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.concat(` + tables.SystemSQL + `, '/', ` + tables.TimelineSQL + `) END,
	(SELECT pg_catalog.pg_wal_lsn_diff(checkpoint_lsn, '0/0')::bigint FROM pg_catalog.pg_control_checkpoint()),
	CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN (
		SELECT CASE WHEN log OPERATOR(pg_catalog.<=) pg_catalog.pg_current_wal_flush_lsn() THEN pg_catalog.pg_wal_lsn_diff(log, '0/0')::bigint END
		FROM (SELECT pg_catalog.pg_current_wal_insert_lsn() AS log) now
	) END`

// began is when the postmaster started.
func (s start) began() string {
	began, _, _ := strings.Cut(s.run, "/")
	return began
}

// Seen is what a worker knows of a cursor since it began to run. The cursor's numbers never go back, unless the
// database did. Neither does the log of its server.
type Seen struct {
	Epoch    Epoch
	Sequence int64

	place  string // where the epoch was seen, in the form of start
	server start  // at the last look
	log    int64  // how much of the log its disk was known to have
	// least is the first epoch of the range that begins when an operator decides on a server whose log went
	// back. 0: it has not gone back.
	least Epoch

	// At is the database's time of the row's last change that the worker read, and Read is when it read it,
	// with a monotonic reading.
	At, Read time.Time
}

// Leased returns Seen with what is known after a lease was acquired.
func (n Seen) Leased(l *Lease) Seen { return n.at(l.place, l.Epoch(), l.Sequence()) }

// at adds the numbers that a row has at a place.
func (n Seen) at(place string, epoch Epoch, sequence int64) Seen {
	if epoch >= n.Epoch && place != "" {
		n.place = place
	}
	n.Epoch, n.Sequence = max(n.Epoch, epoch), max(n.Sequence, sequence)
	return n
}

// Advanced returns Seen with what is known after an advance under a lease is durable.
func (n Seen) Advanced(l *Lease) Seen {
	n = n.Leased(l)
	n.At, n.Read = n.At.Add(time.Since(n.Read)), time.Now()
	return n
}

// See returns Seen with what is known after a row was seen. A cursor that was made anew goes on from the
// numbers of the one before it.
func (n Seen) See(row Row) Seen {
	n = n.at(row.start.place, row.Epoch, row.Sequence)
	if row.UpdatedAt.After(n.At) {
		n.At, n.Read = row.UpdatedAt, time.Now()
	}
	return n
}

// Kept adds what a source reports that has read from a run of the server: the disk has the log up to that
// place.
func (n Seen) Kept(run string, log int64) Seen {
	if run == n.server.run {
		n.log = max(n.log, log)
	}
	return n
}

// Server is the run of the server that Observe saw last: see Lease.Server. It is "" before the first look.
func (n Seen) Server() string { return n.server.run }

// On adds what Observe reports about the server. If the server has started anew on the same timeline, and its
// log ends before what its disk had, it was restored, even if the numbers of the row have moved on since. A
// later checkpoint of the restored server hides that. So call On after each Observe, even while nothing is
// delivered.
func (n Seen) On(row Row) Seen {
	was, now := n.server, row.start
	if now.place == "" {
		return n
	}
	n.server = now
	switch {
	case now.began() == was.began():
	case now.place != was.place:
		n.log = 0
	case now.log > 0 && now.log < n.log:
		n.log = 0
		n.least = n.Epoch - n.Epoch%tables.LostEpochs + tables.LostEpochs
	}
	n.log = max(n.log, now.log, now.kept)
	return n
}

// Lost reports whether a row is on a server whose log went back, while no operator has decided yet.
func (n Seen) Lost(row Row) bool { return row.Epoch < n.least }

// Before reports whether a row, or its server, is older than what was seen. A cursor that was made anew with smaller numbers
// counts as older: the database has lost the former cursor, and with it the row of its name in cursor_past.
func (n Seen) Before(row Row) bool {
	return row.Epoch < n.Epoch || row.Sequence < n.Sequence || n.Lost(row)
}

// undone reports whether a row is older than what was seen on the same timeline of the same server. An
// operator's decision moves the epoch on, so a row that was decided about since is not older.
func (n Seen) undone(row lockedRow) bool {
	return n.Lost(row.Row) || row.Epoch < n.Epoch && n.place == row.server.place()
}

// passed moves the numbers of a row past what was seen.
func (n Seen) passed(row Row) Row {
	row.Epoch = max(row.Epoch, n.Epoch+tables.LostEpochs)
	if n.Sequence >= row.Sequence {
		row.Sequence += ((n.Sequence-row.Sequence)/HistoryGap + 1) * HistoryGap
	}
	return row
}
