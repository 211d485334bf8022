package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/torture/history"
)

// promoteBehind promotes a standby that has everything, and whose clock is behind by one to four seconds: what it stamps at
// first sorts before what was delivered.
func promoteBehind(ctx context.Context, c *cell, change *history.Change) error {
	if !pglocal.HasCompiler() {
		change.Detail = "without a C compiler the clock went right"
	}
	behind := time.Second + time.Duration(c.random.IntN(3000))*time.Millisecond
	standby, err := c.newStandby(ctx, behind)
	if err != nil {
		return err
	}
	c.away() // so that nothing is written any more that the standby would not get
	if err := c.awaitStandby(ctx); err != nil {
		return errors.Join(err, standby.Stop(context.WithoutCancel(ctx)))
	}
	old, number, err := c.promoteIt(ctx, standby)
	if err != nil {
		return err
	}
	c.lead(c.database.addr())
	return c.retire(ctx, old, number)
}

func (c *cell) newStandby(ctx context.Context, behind time.Duration) (*pglocal.Server, error) {
	if !pglocal.HasCompiler() {
		return c.database.primary().Standby(ctx)
	}
	return c.database.primary().StandbyBehind(ctx, behind)
}

// firstBehindSQL is the stamp of the first row that was inserted behind the one at the cursor, and sorts before it; no row while
// the clock has not passed the cursor.
const firstBehindSQL = `/* torture.first_behind */
SELECT coalesce(to_char(min(s.created_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '')
FROM (
	SELECT split_part(position, '/', 1) AS stamp, split_part(position, '/', 2)::bigint AS id, position
	FROM dispatch.cursor
	WHERE process_name = $1 AND position LIKE 'at.int:%'
) c
LEFT JOIN app.stamped s ON s.id > c.id AND s.created_at <= substr(c.stamp, 8)::timestamptz
WHERE clock_timestamp() > substr(c.stamp, 8)::timestamptz + interval '100 ms'
GROUP BY c.position`

// firstBehind is what a process asks an operator to look for whose clock is behind, since it does not know since when; "" if
// nothing was stamped so. An error means that the clock has not passed the cursor yet.
func (c *cell) firstBehind(ctx context.Context, process string) (stamp string, err error) {
	err = c.database.do(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, firstBehindSQL, process).Scan(&stamp)
	})
	return stamp, err
}
