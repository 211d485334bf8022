package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// lateWindow is how far before the cursor rows of a promoted server are looked for. A clock that
// is further behind has not passed the cursor when the server is met for the first time, and so
// is seen by itself. Then all that stands before the cursor is looked at.
const lateWindow = 10 * time.Minute

// clockMargin is for what happens between a sample and our taking note of it.
const clockMargin = time.Second

// clockSeen is when the clock of a server run was last seen past the position, by our own clock.
type clockSeen struct {
	server string
	seen   time.Time
}

func (c *clockSeen) note(now sample) { c.server, c.seen = now.server, time.Now() }

// from is a position before all that the server may have stamped since its clock went back: no
// more time has passed since then than since its clock was seen to be right. "" if it never was.
func (c clockSeen) from(k kind, now sample) (cursor.Position, error) {
	if c.server != now.server {
		return "", nil
	}
	return k.before(now.mark - (time.Since(c.seen) + clockMargin).Microseconds())
}

// before is a position before every row that is stamped at a time or later.
func (k kind) before(at int64) (cursor.Position, error) {
	return k.position(key{at: max(at-1, minAt), id: k.lowestID()})
}

// errUnsettled: a transaction that was open when the server was promoted may still commit a row
// before the cursor.
var errUnsettled = errors.New("transactions that may have stamped rows before the cursor are still open")

// lateSQL finds the first row, of those in a window before the position, whose transaction
// is not below the horizon. A row that was delivered and then updated has such a transaction,
// too: where the ids come one by one from one sequence, a new row has a larger one than all that were there.
// The position itself may have an id that is no row's.
// xmin has 32 bits, and is read as the newest transaction of that number. The window bounds what is
// read, by the index of the order.
const lateSQL = `/* source.late */
WITH recent AS (
	SELECT
		t.%[1]s AS id,
		%[2]s AS at,
		(%[3]s) < ($1::%[4]s, $2::%[5]s) AS passed,
		%[6]s AS taken,
		now.xid - mod(now.xid - t.xmin::text::bigint, 4294967296) AS xid
	FROM %[7]s AS t, (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS xid) now
	WHERE t.%[8]s <= $1::%[4]s%[9]s
)
SELECT id::text, at, extract(epoch FROM pg_postmaster_start_time())::text
FROM recent
WHERE passed AND taken AND xid >= $3::text::bigint%[10]s
ORDER BY at, recent.id
LIMIT 1`

const newIDs = `
	AND recent.id > (
		SELECT coalesce(greatest(
			max(known.id) FILTER (WHERE known.xid < $3::text::bigint),
			max(known.id) FILTER (WHERE known.id = $2::bigint)
		), -9223372036854775808)
		FROM recent known
	)`

func (l *layout) lateSQL(c Config, everywhere bool) string {
	taken, more := "true", ""
	window := fmt.Sprintf(" AND t.%s > $1::%s - interval '%d seconds'", quote(l.at), l.atType, int(lateWindow.Seconds()))
	if everywhere {
		window = fmt.Sprintf(" AND t.%s > '-infinity'", quote(l.at))
	}
	if c.Where != "" {
		taken = "coalesce((\n" + c.Where + "\n), false)"
	}
	if l.counted {
		more = newIDs
	}
	order := l.orderBy(c)
	return fmt.Sprintf(lateSQL, quote(c.Columns.ID), l.micros("t."+quote(l.at)), order[0]+", "+order[1], l.atType, l.idType, taken,
		l.sql(), quote(l.at), window, more)
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
		late.Reason = fmt.Sprintf("the server's clock was behind the cursor, and which rows of %s it stamped meanwhile before what was delivered cannot be said: it is the server that had delivered", l.name())
		return late, nil
	}
	row, server, err := s.firstLate(ctx, l, k, l.lateSQL(s.config, everywhere), horizon)
	if err != nil || row == nil {
		return late, err
	}
	if server != late.Server {
		s.pool.Reset()
		return late, cursor.ErrElsewhere
	}
	late.Reason = fmt.Sprintf("the server's clock was behind the cursor: row %s of %s, and maybe others, was inserted since and is stamped %s, before what was delivered (%s)",
		visible.Cut(row.id), l.name(), time.UnixMicro(row.at).UTC().Format(atLayout), time.UnixMicro(k.at).UTC().Format(atLayout))
	late.From, err = l.kind.before(row.at)
	return late, err
}

// firstLate returns the first late row, nil if there is none, and the run of the server.
func (s *Source) firstLate(ctx context.Context, l *layout, k key, sql, horizon string) (row *key, server string, err error) {
	err = s.readOnly(ctx, func(ctx context.Context, tx pgx.Tx) error {
		arguments := l.arguments(k)
		var found key
		err := tx.QueryRow(ctx, sql, pgx.QueryExecModeExec, string(arguments[0]), string(arguments[1]), horizon).Scan(&found.id, &found.at, &server)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		row = &found
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("look in %s for rows that were stamped before the cursor: %w", l.name(), lasting(err))
	}
	return row, server, nil
}
