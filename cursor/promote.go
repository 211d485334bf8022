package cursor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// PromotedError is the reason why Acquire gives no lease: a standby was promoted since the last take-over, the
// database was restored, or a process is tried again that halted over its clock. Nothing was changed. If the
// server's clock is behind, it may have stamped rows before the cursor, and the source has to find out whether
// it did. Then call Promote or HaltClock.
type PromotedError struct {
	Process  string
	Position Position
	// Horizon is a transaction id (xid8). The transactions that wrote what was delivered are below it; those of
	// the new primary, or since the restore, are not. "" if it is not known.
	Horizon string
	// From and To are the timelines. Unless a standby was promoted, From is not the timeline of any server.
	From, To string
}

// RestoredTimeline is the timeline of a row whose database was restored, as an operator has reported, while no
// worker has looked yet. No server has it.
const RestoredTimeline = math.MaxInt32

var restoredTimeline = strconv.Itoa(RestoredTimeline)

// Restored reports that an operator has reported the database as restored.
func (e *PromotedError) Restored() bool { return e.From == restoredTimeline }

// Retried reports that the server's clock is known to have been behind, by an unknown time.
func (e *PromotedError) Retried() bool { return e.From == "0" || strings.HasPrefix(e.From, "-") }

// promotedAt returns the error of a row. On the server that delivered, there is no horizon: a transaction older
// than it may have stamped a row before the position after the source read that position. There is none either
// if the tables were copied before the source had looked.
func promotedAt(e PromotedError) *PromotedError {
	if e.From == "0" {
		e.Horizon = ""
	}
	return &e
}

func (e *PromotedError) Error() string {
	if e.Retried() {
		return "the process halted over the server's clock and was retried: a worker looks at its next round for rows that were stamped before the cursor; then try again"
	}
	if e.Restored() {
		return "the database was restored: a worker looks at its next round for rows that were stamped before the cursor; then try again"
	}
	return fmt.Sprintf("a standby was promoted: the server's timeline was %s and is %s, and the cursor is not taken over yet: a worker does that at its next look; then try again", e.From, e.To)
}

// event is the audit's text about it, once it is settled.
func (e *PromotedError) event() string {
	if e.Retried() {
		return "after a halt over the server's clock no row was found that it had stamped before the cursor"
	}
	if e.Restored() {
		return "no row was found that was stamped before the cursor since the database was restored"
	}
	return fmt.Sprintf("a standby was promoted: the server's timeline was %s and is %s", e.From, e.To)
}

func (r lockedRow) promotion() *PromotedError {
	return promotedAt(PromotedError{Process: r.Process, Position: r.Position, Horizon: r.horizon, From: r.stored.timeline, To: r.server.timeline})
}

// ErrElsewhere reports that two connections of one pool reach two servers, or two runs of one server. Nothing
// was changed. The pool's connections are dropped, and the next ones find out anew where the server is.
var ErrElsewhere = errors.New("the connections of one pool reach different servers, which happens after an address has moved: the worker drops them all, and delivers nothing until they agree")

// Elsewhere drops the connections of the pool and returns ErrElsewhere, unless both runs of a server are the
// same. "" matches any run.
func (s *Store) Elsewhere(one, other string) error {
	if one == "" || other == "" || one == other {
		return nil
	}
	s.db.Pool.Reset()
	return ErrElsewhere
}

const promotedSQL = `/* cursor.promoted */
SELECT c.position, c.horizon, c.timeline, server.timeline
FROM {schema}.cursor c,
	(SELECT ` + tables.TimelineSQL + ` AS timeline) server
WHERE c.process_name = $1 AND c.timeline <> server.timeline`

// Promoted returns a *PromotedError if a standby was promoted since the last take-over. It takes no lock.
func (s *Store) Promoted(ctx context.Context, process string) error {
	results, err := s.db.Once(ctx, s.db.Timeout, tables.BeginRead, s.db.Statement(promotedSQL, process))
	if err != nil {
		return s.db.Explain("read", process, tables.Standby(err))
	}
	if len(results[0].Rows) == 0 {
		return nil
	}
	row := results[0].Rows[0]
	return promotedAt(PromotedError{Process: process, Position: Position(row[0]), Horizon: string(row[1]), From: string(row[2]), To: string(row[3])})
}

var promoteSQL = `/* cursor.promote */
WITH changed AS (
	UPDATE {schema}.cursor
	SET epoch = $3, sequence = $4, histories = $5::jsonb, timeline = $6
	WHERE process_name = $1 AND epoch = $2
	RETURNING ` + tables.Took(`epoch = $3 AND sequence = $4 AND timeline = $6 AND histories = $5::jsonb`, `''`) + `
)` + tables.OneRow

// promotedEventSQL has the numbers between which there is no record: see Operator.Since of package operator.
const promotedEventSQL = `/* cursor.promoted_event */
INSERT INTO {schema}.cursor_event (process_name, actor, action, reason, from_position, to_position, detail)
VALUES ($1, $2, $3, $4, $5, $5, jsonb_build_object('from_sequence', $6::bigint, 'to_sequence', $7::bigint))`

// Promote takes note of a promotion, so that Acquire gives a lease again. What was committed on the earlier
// primary may be lost. So the epoch and the sequence move on past all that may have been used (by a multiple of
// HistoryGap), and a new history begins at the position. It leaves an audit row.
//
// server is the run of the server on which the source has looked; if the row is on another one, the error is
// ErrElsewhere. seen is what the worker has seen: those numbers are lost, and are not used again either. If
// there is no promotion left to note, nothing is done.
//
// note is a further text for the audit row, or "".
func (s *Store) Promote(ctx context.Context, process, server string, seen Seen, note string) error {
	return s.settle(ctx, "note the promotion for", process, server, func(conn *pgxpool.Conn, row lockedRow) error {
		if err := row.Workable(); err != nil || !row.promoted() {
			return err
		}
		next, err := row.Begun(time.Now())
		if err != nil {
			return err
		}
		next = seen.passed(next)
		action, reason := "promoted", fmt.Sprintf("%s. The sequence was %d and goes on from %d, the epoch was %d and goes on from %d", row.promotion().event(), row.Sequence, next.Sequence, row.Epoch, next.Epoch)
		if p := row.promotion(); p.Retried() || p.Restored() {
			action = "settled"
		}
		if note != "" {
			reason += ". " + note
		}
		results, err := tables.Flush(ctx, conn.Conn(), tables.Pin,
			s.db.Statement(promoteSQL,
				process, row.Epoch.text(), next.Epoch.text(), strconv.FormatInt(next.Sequence, 10), string(next.Histories), row.server.timeline),
			s.db.Statement(promotedEventSQL, process, s.config.Worker, action, reason, string(row.Position), strconv.FormatInt(row.Sequence, 10), strconv.FormatInt(next.Sequence, 10)),
			tables.Commit)
		if err == nil && !tables.Committed(results, 3) {
			err = tables.ErrNotAsLocked
		}
		return err
	})
}

// ClockHalt is the reason why a process halts over its server's clock.
type ClockHalt struct {
	// Server is the run of the server that was examined; "" is any.
	Server string
	// At is the position of the row.
	At Position
	// From is a position before all rows that the server may have stamped before At; "" if none is known.
	From Position
	// Reason is for people.
	Reason string
}

// HaltClock halts a process whose server has stamped rows before the position, or would, because its clock is
// behind. It does so only if the row is at h.At, and on that run of the server (else ErrElsewhere). It returns
// ErrHalted once that is durable. A paused process stays paused, and Resume refuses it then; HaltClock returns
// ErrPaused. A process that is halted over a record is halted over the clock instead: it meets that record
// again. A process that needs an operator's decision already, over From or a position before it, is left as it
// is.
func (s *Store) HaltClock(ctx context.Context, process string, h ClockHalt) error {
	return s.settle(ctx, "halt", process, h.Server, func(conn *pgxpool.Conn, row lockedRow) error {
		f := row.Failure
		switch {
		case row.Position != h.At:
			return nil // the row moved since: look again
		case row.Displaced() && (f.Class != ClassClock || f.Position <= h.From):
			return row.Workable()
		case !row.Displaced():
			h.Reason = row.before(h.Reason)
		}
		return s.stop(ctx, conn, row, ClassClock, h.From, h.Reason)
	})
}

// ResetHalt is the reason why a process halts over its source's ids.
type ResetHalt struct {
	// Server is the run of the server that was examined; "" is any.
	Server string
	// At is a position of the cursor; the ids were seen to be before it.
	At Position
	// Reason is for people.
	Reason string
}

// HaltReset halts a process whose source gives out ids before a position. New rows would never be read, and
// once the ids have passed the position nothing would show that. So it also halts a process whose row has moved
// on since. It does nothing and returns nil if the row is before the position: an operator has moved the cursor
// back, or the row is on another server. The errors are those of HaltClock.
func (s *Store) HaltReset(ctx context.Context, process string, h ResetHalt) error {
	return s.settle(ctx, "halt", process, h.Server, func(conn *pgxpool.Conn, row lockedRow) error {
		switch {
		case row.Position < h.At:
			return nil
		case row.Displaced():
			return row.Workable()
		}
		return s.stop(ctx, conn, row, ClassReset, row.Position, row.before(h.Reason))
	})
}

// settle calls f with the row of a process locked, and then releases the lock.
func (s *Store) settle(ctx context.Context, verb, process, server string, f func(*pgxpool.Conn, lockedRow) error) error {
	err := s.db.OnConnection(ctx, func(conn *pgxpool.Conn) error {
		row, err := s.lockNow(ctx, conn, process, terms{application: ApplicationLease})
		if err != nil {
			return err
		}
		if row.elsewhere() {
			if err := row.Workable(); err != nil {
				return err
			}
			return s.stop(ctx, conn, row, ClassRestored, row.Position, row.restoredElsewhere())
		}
		if err := s.Elsewhere(server, row.server.run); err != nil {
			return err
		}
		return f(conn, row)
	})
	if err != nil {
		return s.db.Explain(verb, process, err)
	}
	return nil
}
