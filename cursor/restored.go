package cursor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// stop halts a process over its server, and not over a record. A paused process stays paused. from is where the
// records begin that an operator has to decide about.
func (s *Store) stop(ctx context.Context, conn *pgxpool.Conn, row lockedRow, class Class, from Position, reason string) error {
	state := Halted
	if row.State == Paused {
		state = Paused
	}
	results, err := flush(ctx, conn.Conn(), pin,
		statement{sql: s.sql(failSQL), args: []string{
			row.Process, row.Epoch.text(), string(from), "", "0", "0", "0", clean(reason), string(class), string(state)}},
		statement{sql: s.sql(eventSQL), args: []string{row.Process, s.config.Worker, "halt", clean(reason), string(row.Position), string(row.Position), null, null, string(class)}},
		commit)
	if err == nil && !committed(results, 3) {
		err = errNotAsLocked
	}
	if err != nil {
		return err
	}
	row.State = state
	return workable(row.Row)
}

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
	CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.concat(` + systemSQL + `, '/', ` + timelineSQL + `) END,
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

// lookColumns is how many columns Observe reads.
const lookColumns = 22

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
		n.least = n.Epoch - n.Epoch%lostEpochs + lostEpochs
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
	row.Epoch = max(row.Epoch, n.Epoch+lostEpochs)
	if n.Sequence >= row.Sequence {
		row.Sequence += ((n.Sequence-row.Sequence)/HistoryGap + 1) * HistoryGap
	}
	return row
}

// behindAtMost is how far behind a standby may have been and still count as promoted in a failover, measured by
// the last commit that it has received. An older one is a backup, on any timeline.
const behindAtMost = time.Minute

const recoveredSQL = `/* cursor.recovered */
SELECT count(*), (extract(epoch FROM pg_last_xact_replay_timestamp()) * 1000000)::bigint FROM pg_settings WHERE name IN ('recovery_target', 'recovery_target_lsn', 'recovery_target_name', 'recovery_target_time', 'recovery_target_xid') AND setting <> ''`

// HaltRestored halts a process whose row is older than what a worker has seen of it: the snapshot of a disk was
// put back, or a backup was restored up to some point in time. It returns ErrHalted once that is durable. nil
// means that the row, read under its lock, is not older. Or it means that a standby was promoted that had not
// received everything, which Promote handles.
func (s *Store) HaltRestored(ctx context.Context, process string, seen Seen) error {
	for {
		err := s.haltRestored(ctx, process, seen)
		if !errors.Is(err, ErrHeld) {
			return err
		}
		if err := s.Await(ctx, process); err != nil { // another worker delivers, and must not: it stands aside
			return err
		}
	}
}

func (s *Store) haltRestored(ctx context.Context, process string, seen Seen) error {
	return s.settle(ctx, "halt", process, "", func(conn *pgxpool.Conn, row lockedRow) error {
		if !seen.Before(row.Row) {
			return nil
		}
		if row.promoted() && !seen.undone(row) {
			results, err := flush(ctx, conn.Conn(), pin, statement{sql: recoveredSQL})
			if err != nil {
				return err
			}
			p := parser{values: results[1].Rows[0]}
			has := row.UpdatedAt // the server has at least all commits up to then
			if replayed := p.time(1); replayed.After(has) {
				has = replayed
			}
			if p.int(0) == 0 && p.err == nil && seen.At.Sub(has) < behindAtMost {
				return nil
			}
		}
		class := ClassRestored
		if seen.ranPast(row.server) {
			class = ClassOldPrimary
		}
		return s.stop(ctx, conn, row, class, row.Position, seen.lost(row))
	})
}

// ranPast reports whether the cursor was seen on a later timeline of a server's cluster.
func (n Seen) ranPast(server identity) bool {
	system, timeline, _ := strings.Cut(n.place, "/")
	was, err := strconv.Atoi(timeline)
	now, nowErr := strconv.Atoi(server.timeline)
	return err == nil && nowErr == nil && system == server.system && was > now
}

// lost is the reason of a halt because the row went back.
func (n Seen) lost(row lockedRow) string {
	back := fmt.Sprintf("the cursor went back: its sequence was %s and is %s, its epoch was %s and is %s (timeline %s, now %s)",
		strconv.FormatInt(n.Sequence, 10), strconv.FormatInt(row.Sequence, 10), n.Epoch.text(), row.Epoch.text(), row.stored.timeline, row.server.timeline)
	if n.Lost(row.Row) {
		back = fmt.Sprintf("the database went back: when the server started, its write-ahead log lacked what its disk had had (timeline %s)", row.server.timeline)
	}
	if n.ranPast(row.server) {
		return back + ". The process has run on a later timeline of this cluster. " + oldPrimaryFix
	}
	return back + ". The database was restored from a backup or a snapshot, a second standby of a lost primary was promoted, or an operator decided on an old primary: " + restoredFix
}

// restoredFix is what an operator can do about a row that went back.
const restoredFix = "what was delivered since is not known here, and rows that were inserted since are gone. Compare what receivers have with the table, " +
	"then seek to where delivery shall go on, or retry to go on from here; `ordered-dispatcher restored --all` has all processes go on from where they stand"

// oldPrimaryFix is what an operator can do if the server may be an old primary.
const oldPrimaryFix = "If another server is the primary now, this is an old one that nobody has fenced: fence it, and decide nothing here; the workers go back by themselves. " +
	"If there is no other, the database was restored, and each decision on it needs --fenced: " + restoredFix

const besideSQL = `/* cursor.beside */
SELECT e.process_name, e.detail->>'class'
FROM {schema}.cursor c
JOIN {schema}.cursor_event e ON e.action = 'halt' AND e.detail->>'class' IN (` + restoredClasses + `) AND e.at > c.updated_at
WHERE c.process_name = $1 AND e.process_name <> c.process_name
ORDER BY e.at DESC
LIMIT 1`

// RestoredBeside returns the name of another process that has halted as restored since the cursor of this
// process was last written. It returns "" if there is none, or if there is no cursor. A worker that started
// later cannot know from its own row what the database has lost.
func (s *Store) RestoredBeside(ctx context.Context, process string) (string, error) {
	results, err := s.ask(ctx, statement{sql: s.sql(besideSQL), args: []string{process}})
	if err != nil {
		return "", s.explain("look beside", process, err)
	}
	return first(results[0].Rows), nil
}

// HaltBeside halts a process if another one beside it has halted as restored: see RestoredBeside. nil means
// that the row, read under its lock, has been written since.
func (s *Store) HaltBeside(ctx context.Context, process string) error {
	return s.settle(ctx, "halt", process, "", func(conn *pgxpool.Conn, row lockedRow) error {
		if displaced(row.Row) {
			return workable(row.Row)
		}
		results, err := flush(ctx, conn.Conn(), statement{sql: s.sql(besideSQL), args: []string{process}})
		if err != nil {
			return err
		}
		if len(results[0].Rows) == 0 {
			return nil
		}
		other, class, fix := string(results[0].Rows[0][0]), Class(results[0].Rows[0][1]), restoredFix
		if class == ClassOldPrimary {
			fix = oldPrimaryFix
		}
		reason := fmt.Sprintf("process %s has halted as %s since this cursor was written last, and the worker that comes now has seen nothing of the time before: %s", visible.Cut(other), class, fix)
		return s.stop(ctx, conn, row, class, row.Position, row.before(reason))
	})
}

// before adds to the reason of a halt the record over which the process had halted, or was about to.
func (r Row) before(reason string) string {
	if r.Failure == nil {
		return reason
	}
	return fmt.Sprintf("%s. Before that, record %s failed: %s", reason, visible.Cut(r.Failure.RecordID), r.Failure.Error)
}

// first is the only text of an answer, or "".
func first(rows [][][]byte) string {
	if len(rows) == 0 {
		return ""
	}
	return string(rows[0][0])
}
