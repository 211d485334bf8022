package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Where ids do not grow, the source looks for late rows of a promoted server within a day before the cursor. A
// process that did not run meets the server after its clock was corrected. So nothing else bounds how far the clock
// was behind. If the rows of a day cannot be read in time, the source looks at ten minutes, and logs that.
// Otherwise each failover would stop the processes of such a table.
const (
	lateWindow  = 24 * time.Hour
	shortWindow = 10 * time.Minute
)

// clockMargin allows for the time between the moment of a sample and our noting it.
const clockMargin = time.Second

// clockSeen records when the clock of a server run was last seen to be right, by our own clock.
type clockSeen struct {
	server string
	mark   int64 // of that clock
	seen   time.Time
	upTo   cursor.Position // the position that it was past
}

// anyPosition is after all positions: every record that a worker delivers after a read was stamped before the read's
// mark.
const anyPosition cursor.Position = "~"

// read notes that a read has found the clock past its position.
func (c *clockSeen) read(now sample) {
	*c = clockSeen{server: now.server, mark: now.mark, seen: time.Now(), upTo: anyPosition}
}

// held notes that the clock is past a position, unless the clock has stepped back since it was seen. A process that
// halted because of its clock compares that clock with a position before the rows that the step affects.
func (c *clockSeen) held(now sample, at cursor.Position) {
	if c.server == now.server {
		if now.mark < c.mark {
			return
		}
		at = max(at, c.upTo)
	}
	*c = clockSeen{server: now.server, mark: now.mark, seen: time.Now(), upTo: at}
}

// from returns a position before everything that the server may have stamped since its clock went back behind a
// position. The clock went back after it was last seen to be right, so at most the time since then has passed. "" if
// it never was.
func (c clockSeen) from(k kind, now sample, after cursor.Position) (cursor.Position, error) {
	if c.server != now.server || c.upTo < after {
		return "", nil
	}
	return k.before(now.mark - (time.Since(c.seen) + clockMargin).Microseconds())
}

// before returns a position before every row that is stamped at a time or later.
func (k kind) before(at int64) (cursor.Position, error) {
	return k.position(key{at: max(at-1, minAt), id: k.lowestID()})
}

// errUnsettled: a transaction that was open when the server was promoted may still commit a row before the cursor.
var errUnsettled = errors.New("transactions that may have stamped rows before the cursor are still open")

// newestXID is the next transaction id, and writtenBy is the transaction that wrote a row. xmin has 32 bits, so it is
// read as the newest transaction with that number.
const (
	newestXID = `(SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS xid) now`
	writtenBy = `now.xid - mod(now.xid - t.xmin::text::bigint, 4294967296)`
)

// lateSQL finds the first row whose transaction is not below the horizon. It looks at rows at or before the position
// that a condition takes. A row that was delivered and then updated also has such a transaction. Where the ids come
// one by one from one sequence, that is no ambiguity: a new row has a larger id than all rows that were there. The
// position itself may have an id that belongs to no row. The condition bounds, by an index, how much is read. If a
// table was rewritten, such as by ALTER TABLE, one transaction wrote all of its rows and its definition.
const lateSQL = `, recent AS (
	SELECT
		t.%[1]s AS id,
		%[2]s AS at,
		(%[3]s) < ($1::%[4]s, $2::%[5]s) AS passed,
		(%[3]s) = ($1::%[4]s, $2::%[5]s) AS stands,
		%[6]s AS taken,
		t.%[8]s > $1::%[4]s - interval '%[11]d seconds' AS near,
		t.xmin AS writer,
		` + writtenBy + ` AS xid
	FROM %[7]s AS t, ` + newestXID + `
	WHERE %[9]s
)
SELECT
	id::text,
	at,
	` + prepared.RunSQL + `,
	(SELECT bool_or((SELECT c.xmin FROM pg_class c WHERE c.oid = tree.oid) = writer
		OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = tree.oid AND a.xmin = writer)) FROM tree)
FROM recent
WHERE passed AND taken AND xid >= $3::text::bigint%[10]s
ORDER BY at, recent.id
LIMIT 1`

// newIDs leaves out rows that were delivered. Only those near the position can have a larger id than the position's.
// An exception is an application that gave them ids of its own, which prove nothing.
const newIDs = `
	AND recent.id > (
		SELECT coalesce(greatest(
			max(known.id) FILTER (WHERE known.near AND known.xid < $3::text::bigint),
			max(known.id) FILTER (WHERE known.stands)
		), -9223372036854775808)
		FROM recent known
	)`

func (l *layout) lateSQL(c Config, condition string) string {
	taken, more := "true", ""
	if c.Where != "" {
		taken = "coalesce((\n" + c.Where + "\n), false)"
	}
	if l.counter != 0 {
		more = newIDs
	}
	order := l.orderBy(c)
	return "/* source.late */" + fmt.Sprintf(treeSQL, l.oid) + fmt.Sprintf(lateSQL, quote(c.Columns.ID), l.micros("t."+quote(l.at)), order[0]+", "+order[1], l.atType, l.idType, taken,
		l.sql(), quote(l.at), condition, more, int(shortWindow.Seconds()))
}

// floorSQL finds an id such that no row of a promoted server is at or below it, for counted ids only. It is the id of
// the position, if a row has it. Otherwise it is the largest id that a transaction below the horizon wrote. The first
// is preferred, since an application may have given a row a large id of its own.
const floorSQL = `/* source.late_floor */
SELECT coalesce(
	(SELECT t.%[1]s::bigint FROM %[2]s AS t WHERE t.%[3]s = $1::%[4]s AND t.%[1]s = $2::bigint LIMIT 1),
	(SELECT t.%[1]s::bigint FROM %[2]s AS t, ` + newestXID + ` WHERE ` + writtenBy + ` < $3::text::bigint ORDER BY t.%[1]s DESC LIMIT 1),
	-9223372036854775808)`

func (l *layout) floorSQL(c Config) string {
	return fmt.Sprintf(floorSQL, quote(c.Columns.ID), l.sql(), quote(l.at), l.atType)
}

// above leaves the planner no index except the one of the ids.
func (l *layout) above(c Config, floor int64) string {
	return fmt.Sprintf("t.%s > '%d'::bigint AND (t.%s <= $1::%s) IS TRUE", quote(c.Columns.ID), floor, quote(l.at), l.atType)
}

// Late implements processor.Auditor.
func (s *Source) Late(ctx context.Context, at cursor.Position, horizon string, everywhere bool) (processor.Late, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := processor.Late{Server: s.fence.last.server}
	l, err := s.current(ctx)
	if err != nil || !l.ordersByTime() || at == "" || horizon == "" && !everywhere {
		return late, err
	}
	k, err := l.kind.parse(at)
	if err != nil {
		return late, processor.Permanent(err)
	}
	if min(s.fence.last.mark, s.fence.lowestBound()) <= k.at {
		return late, errUnsettled
	}
	if horizon == "" {
		late.Reason = fmt.Sprintf("it is not known which rows of %s a clock that was behind stamped before the cursor: this is the server that the worker delivered from, or a copy of its tables", l.name())
		return late, nil
	}
	row, server, err := s.look(ctx, l, k, horizon, everywhere, &late)
	if everywhere && errors.Is(err, errSlow) { // the next look would be slow, too
		late.Reason = fmt.Sprintf("the search for rows of %s that a clock that was behind stamped before the cursor did not end within %v", l.name(), s.waits.look)
		return late, nil
	}
	if err != nil || row == nil {
		return late, err
	}
	if server != late.Server {
		s.pool.Reset()
		return late, cursor.ErrElsewhere
	}
	if row.rewritten {
		late.Reason = fmt.Sprintf("it is not known which rows of %s a clock that was behind stamped before the cursor: the table was made since, or rewritten, as ALTER TABLE does", l.name())
		return late, nil
	}
	since := "inserted or changed"
	if row.counted {
		since = "inserted"
	}
	late.Reason = fmt.Sprintf("the server's clock was behind the cursor: row %s of %s, and maybe others, was %s since and is stamped %s, before what was delivered (%s)",
		visible.Cut(row.id), l.name(), since, time.UnixMicro(row.at).UTC().Format(atLayout), time.UnixMicro(k.at).UTC().Format(atLayout))
	late.From, err = l.kind.before(row.at)
	return late, err
}

// lateRow is a row before a position that may not have been delivered.
type lateRow struct {
	key
	counted   bool // its id shows that it was not delivered
	rewritten bool // with its table: it may have been delivered, and others of it may not
}

// look returns the first late row, nil if there is none, and the run of the server. Where ids grow, it looks at the
// ids made since then, and otherwise at a time before the position. If the server does not finish that in time, look
// tries a shorter time, and sets that in late. After a clock that is known to have been behind there is no shorter
// look: the error is errSlow.
func (s *Source) look(ctx context.Context, l *layout, k key, horizon string, everywhere bool, late *processor.Late) (row *lateRow, server string, err error) {
	if l.counter != 0 {
		row, server, err = s.firstLate(ctx, l, k, horizon, s.aboveFloor)
		switch {
		case errors.Is(err, errRecounted):
			l = l.uncounted()
		case !errors.Is(err, errSlow):
			return row, server, err
		}
	}
	windows := []time.Duration{lateWindow, shortWindow}
	if everywhere {
		windows = []time.Duration{0}
	}
	for _, window := range windows {
		row, server, err = s.firstLate(ctx, l, k, horizon, stampedWithin(window))
		if errors.Is(err, errSlow) {
			continue
		}
		if err == nil && row == nil && !everywhere && (l.counter != 0 || window < lateWindow) {
			late.Short = fmt.Sprintf("the search for rows of %s that the server has stamped before the cursor covered only the last %.0f minutes: more takes too long. "+
				"If its clock was further behind, compare the table with the receiver", l.name(), window.Minutes())
			s.config.Logger.Warn(late.Short)
		}
		break
	}
	return row, server, err
}

// lateCondition returns the condition for the rows to look at.
type lateCondition func(ctx context.Context, tx pgx.Tx, l *layout, k key, horizon string) (string, error)

// aboveFloor takes rows whose ids are above the floor, unless the ids may have started again. That is not known if
// the role may not read the sequence, or while the sequence has made no id since it was set.
func (s *Source) aboveFloor(ctx context.Context, tx pgx.Tx, l *layout, k key, horizon string) (string, error) {
	last, err := l.recount(ctx, tx, s.config, l.counter, horizon)
	if err != nil {
		return "", err
	}
	if last == nil {
		return "", errRecounted
	}
	var floor int64
	arguments := l.arguments(k)
	err = endedBy(ctx, tx, s.waits.floor, func() error {
		return tx.QueryRow(ctx, l.floorSQL(s.config), pgx.QueryExecModeExec, string(arguments[0]), string(arguments[1]), horizon).Scan(&floor)
	})
	if err == nil && *last < floor {
		return "", errRecounted
	}
	return l.above(s.config, floor), err
}

// stampedWithin takes rows that are stamped at most a window before the position; 0 means any time.
func stampedWithin(window time.Duration) lateCondition {
	return func(_ context.Context, _ pgx.Tx, l *layout, _ key, _ string) (string, error) {
		from := "'-infinity'"
		if window > 0 {
			from = fmt.Sprintf("$1::%s - interval '%d seconds'", l.atType, int(window.Seconds()))
		}
		return fmt.Sprintf("t.%[1]s <= $1::%[2]s AND t.%[1]s > %[3]s", quote(l.at), l.atType, from), nil
	}
}

// errSlow: the server ended a statement because of its time-out.
var errSlow = errors.New("it takes too long")

// endedBy bounds a statement by a time-out of the server. The server's error is the same for a statement that took
// longer and for one that somebody cancelled.
func endedBy(ctx context.Context, tx pgx.Tx, timeout time.Duration, run func() error) error {
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d", timeout.Milliseconds())); err != nil {
		return err
	}
	began := time.Now()
	err := run()
	if slow(err) && time.Since(began) >= timeout {
		return fmt.Errorf("%w: %w", errSlow, err)
	}
	return err
}

// firstLate returns the first late row that a condition takes, nil if there is none, and the run of the server.
func (s *Source) firstLate(ctx context.Context, l *layout, k key, horizon string, condition lateCondition) (row *lateRow, server string, err error) {
	err = s.readOnly(ctx, func(ctx context.Context, tx pgx.Tx) error {
		looked, err := condition(ctx, tx, l, k, horizon)
		if err != nil {
			return err
		}
		arguments := l.arguments(k)
		var found lateRow
		err = endedBy(ctx, tx, s.waits.look, func() error {
			return tx.QueryRow(ctx, l.lateSQL(s.config, looked), pgx.QueryExecModeExec, string(arguments[0]), string(arguments[1]), horizon).Scan(&found.id, &found.at, &server, &found.rewritten)
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		found.counted = l.counter != 0
		row = &found
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("look in %s for rows that were stamped before the cursor: %w", l.name(), lasting(err))
	}
	return row, server, nil
}
