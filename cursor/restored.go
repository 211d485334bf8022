package cursor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// lookColumns is how many columns Observe reads.
const lookColumns = rowWidth + 4

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
			results, err := tables.Flush(ctx, conn.Conn(), tables.Pin, tables.Statement{SQL: recoveredSQL})
			if err != nil {
				return err
			}
			p := tables.Parser{Values: results[1].Rows[0]}
			has := row.UpdatedAt // the server has at least all commits up to then
			if replayed := p.Time(1); replayed.After(has) {
				has = replayed
			}
			if p.Int(0) == 0 && p.Err == nil && seen.At.Sub(has) < behindAtMost {
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
	"then seek to where delivery shall go on, or retry to go on from here; `ordered-dispatcher restored --all` lets every process go on from its position"

// oldPrimaryFix is what an operator can do if the server may be an old primary.
const oldPrimaryFix = "If another server is the primary now, this is an old one that is not fenced: fence it, and make no decision here; the workers go back by themselves. " +
	"If there is no other, the database was restored, and each decision on it needs --fenced: " + restoredFix

const besideSQL = `/* cursor.beside */
SELECT e.process_name, e.detail->>'class'
FROM {schema}.cursor c
JOIN {schema}.cursor_event e ON e.action = 'halt' AND e.detail->>'class' IN (` + tables.RestoredClasses + `) AND e.at > c.updated_at
WHERE c.process_name = $1 AND e.process_name <> c.process_name
ORDER BY e.at DESC
LIMIT 1`

// RestoredBeside returns the name of another process that has halted as restored since the cursor of this
// process was last written. It returns "" if there is none, or if there is no cursor. A worker that started
// later cannot know from its own row what the database has lost.
func (s *Store) RestoredBeside(ctx context.Context, process string) (string, error) {
	results, err := s.ask(ctx, s.db.Statement(besideSQL, process))
	if err != nil {
		return "", s.db.Explain("look beside", process, err)
	}
	return first(results[0].Rows), nil
}

// HaltBeside halts a process if another one beside it has halted as restored: see RestoredBeside. nil means
// that the row, read under its lock, has been written since.
func (s *Store) HaltBeside(ctx context.Context, process string) error {
	return s.settle(ctx, "halt", process, "", func(conn *pgxpool.Conn, row lockedRow) error {
		if row.Displaced() {
			return row.Workable()
		}
		results, err := tables.Flush(ctx, conn.Conn(), s.db.Statement(besideSQL, process))
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
