package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgshape"
)

// The days of which MakePartitions makes partitions ahead.
const (
	DefaultDaysAhead = 7
	MaxDaysAhead     = 366
)

// ErrNotPartitioned means that the table has no partitions by a range of created_at.
var ErrNotPartitioned = errors.New("it is not partitioned by a range of created_at")

var errNoTable = errors.New("there is no such table: correct the name")

// MakePartitions makes the missing partitions of today, by the database's clock in UTC, and of as many days after that,
// between 1 and MaxDaysAhead. It returns the names of those that it made, also beside an error. Several programs may do
// so at once. A day that partitions cover already is left alone, such as one of a partition of a whole month.
//
// Each partition is one short transaction. It holds no lock that an INSERT waits for, unless the table has a DEFAULT
// partition: PostgreSQL locks that and reads all of it, and refuses the new partition if rows of that day are there. It
// also refuses one for a day of which another partition covers a part. Each such day is an error, and the other days
// get their partitions. The role must own the table. The partitions get the same owner only if it is the role itself.
func (o *Outbox) MakePartitions(ctx context.Context, db DB, daysAhead int) (made []string, err error) {
	if err := o.qualified(); err != nil {
		return nil, err
	}
	if daysAhead < 1 || daysAhead > MaxDaysAhead {
		return nil, fmt.Errorf("outbox: the days ahead must be between 1 and %d, got %d", MaxDaysAhead, daysAhead)
	}
	if longest := maxNameBytes - len(dayLayout); len(o.config.Table[1]) > longest {
		return nil, fmt.Errorf("outbox: the name %q has more than %d bytes, which leaves no room for a day in the names of its partitions", o.config.Table[1], longest)
	}
	days, err := o.missingDays(ctx, db, daysAhead)
	for _, day := range days {
		name, dayErr := o.makePartition(ctx, db, day)
		if name != "" {
			made = append(made, name)
		}
		err = errors.Join(err, dayErr)
		if dayErr != nil && !isOfTheDay(ctx, dayErr) {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("make partitions of %s: %w", o.config.Table.Sanitize(), err)
	}
	return made, err
}

// isOfTheDay reports that the server refused one partition. Its rows may be in the DEFAULT partition, another partition
// may have a part of the day, or a table may have the name. The days after it are made: else they run out, and INSERTs
// fail.
func isOfTheDay(ctx context.Context, err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && ctx.Err() == nil
}

const (
	maxNameBytes = 63 // PostgreSQL keeps so much of a name
	dayLayout    = "_2006_01_02"
	boundLayout  = "2006-01-02 15:04:05+00"
)

const existsSQL = `/* outbox.exists */
SELECT to_regclass($1) IS NOT NULL`

// partitionedSQL returns the table's oid if it can have partitions by day.
const partitionedSQL = `/* outbox.partitioned */
SELECT p.partrelid
FROM pg_partitioned_table p
JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
WHERE p.partrelid = to_regclass($1) AND p.partstrat = 'r' AND p.partnatts = 1 AND a.attname = 'created_at'`

// coveredSQL has common table expressions: the ranges of the partitions of a table, and the times that they cover, alone
// or together. A DEFAULT partition covers none.
const coveredSQL = `bound AS (
	SELECT
		CASE m[1] WHEN 'MINVALUE' THEN '-infinity' ELSE btrim(m[1], '''') END::timestamptz AS low,
		CASE m[2] WHEN 'MAXVALUE' THEN 'infinity' ELSE btrim(m[2], '''') END::timestamptz AS high
	FROM pg_inherits i
	JOIN pg_class c ON c.oid = i.inhrelid
	CROSS JOIN LATERAL regexp_match(pg_get_expr(c.relpartbound, c.oid), '^FOR VALUES FROM \((.+)\) TO \((.+)\)$') m
	WHERE i.inhparent = $1 AND m IS NOT NULL
), covered AS (
	SELECT coalesce(range_agg(tstzrange(low, high)), '{}') AS times
	FROM bound
)`

// missingSQL finds the days, from one on, that partitions do not cover.
const missingSQL = `/* outbox.missing_days */
WITH ` + coveredSQL + `, day AS (
	SELECT coalesce($2::date, clock_timestamp()::date) + n AS at
	FROM generate_series(0, $3::int) n
)
SELECT day.at
FROM day
CROSS JOIN covered
WHERE NOT covered.times @> tstzrange(day.at::timestamptz, (day.at + 1)::timestamptz)
ORDER BY day.at
LIMIT 1000`

// lacksSQL returns the day in $2 days if partitions do not cover it, and the last partition is one of a day, or there is
// none. With $3 it returns no day if the table has a DEFAULT partition.
const lacksSQL = `/* outbox.lacks */
WITH ` + coveredSQL + `, day AS (
	SELECT clock_timestamp()::date + $2::int AS at
)
SELECT day.at
FROM day
CROSS JOIN covered
WHERE NOT covered.times @> tstzrange(day.at::timestamptz, (day.at + 1)::timestamptz)
	AND NOT ($3::boolean AND EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = $1 AND partdefid <> 0))
	AND coalesce(
		(SELECT high = low + interval '1 day' FROM bound ORDER BY high DESC, low DESC LIMIT 1),
		NOT EXISTS (SELECT FROM pg_inherits WHERE inhparent = $1)
	)`

// LacksTomorrow returns tomorrow, by the database's clock in UTC, if the table has partitions by day and none for
// tomorrow, or no partition yet. Otherwise, and for any other table, it returns the zero time.
func (o *Outbox) LacksTomorrow(ctx context.Context, db DB) (tomorrow time.Time, err error) {
	return o.lacks(ctx, db, 1, false)
}

// LacksToday is LacksTomorrow for today. It returns the zero time also if a DEFAULT partition takes today's rows.
func (o *Outbox) LacksToday(ctx context.Context, db DB) (today time.Time, err error) {
	return o.lacks(ctx, db, 0, true)
}

func (o *Outbox) lacks(ctx context.Context, db DB, ahead int, orDefault bool) (day time.Time, err error) {
	if err := o.qualified(); err != nil {
		return day, err
	}
	err = within(ctx, db, stepTimeout, func(ctx context.Context, tx pgx.Tx) error {
		var oid uint32
		if err := tx.QueryRow(ctx, partitionedSQL, pgx.QueryExecModeExec, o.config.Table.Sanitize()).Scan(&oid); err != nil {
			return err
		}
		return tx.QueryRow(ctx, lacksSQL, pgx.QueryExecModeExec, oid, ahead, orDefault).Scan(&day)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	return day, err
}

// missing returns the days that no partition covers: a day and those after it, or today if it is nil.
func (o *Outbox) missing(ctx context.Context, tx pgx.Tx, from *time.Time, daysAhead int) ([]time.Time, error) {
	var oid uint32
	err := tx.QueryRow(ctx, partitionedSQL, pgx.QueryExecModeExec, o.config.Table.Sanitize()).Scan(&oid)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, o.whyNotPartitioned(ctx, tx)
	}
	if err == nil {
		err = pgshape.Trusted(ctx, tx, o.config.Table)
	}
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, missingSQL, pgx.QueryExecModeExec, oid, from, daysAhead)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[time.Time])
}

func (o *Outbox) whyNotPartitioned(ctx context.Context, tx pgx.Tx) error {
	var exists bool
	if err := tx.QueryRow(ctx, existsSQL, pgx.QueryExecModeExec, o.config.Table.Sanitize()).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		return errNoTable
	}
	return ErrNotPartitioned
}

func (o *Outbox) missingDays(ctx context.Context, db DB, daysAhead int) (days []time.Time, err error) {
	err = within(ctx, db, stepTimeout, func(ctx context.Context, tx pgx.Tx) error {
		days, err = o.missing(ctx, tx, nil, daysAhead)
		return err
	})
	return days, err
}

// makePartition makes the partition of a day, and returns its name; "" if the day has one meanwhile. The new table is
// attached once it is there: PARTITION OF would keep INSERTs out of the whole outbox. ATTACH takes the lock that is
// taken here first, which INSERTs do not wait for, and which one session at a time may have.
func (o *Outbox) makePartition(ctx context.Context, db DB, day time.Time) (made string, err error) {
	parent := o.config.Table.Sanitize()
	name := pgx.Identifier{o.config.Table[0], o.config.Table[1] + day.Format(dayLayout)}.Sanitize()
	err = within(ctx, db, stepTimeout, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "/* outbox.partition_lock */ LOCK TABLE ONLY "+parent+" IN SHARE UPDATE EXCLUSIVE MODE", pgx.QueryExecModeExec); err != nil {
			return err
		}
		if missing, err := o.missing(ctx, tx, &day, 0); err != nil || len(missing) == 0 {
			return err
		}
		for _, statement := range []string{
			fmt.Sprintf("/* outbox.partition */ CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING IDENTITY)", name, parent),
			fmt.Sprintf("/* outbox.attach */ ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM ('%s') TO ('%s')",
				parent, name, day.Format(boundLayout), day.AddDate(0, 0, 1).Format(boundLayout)),
		} {
			if _, err := tx.Exec(ctx, statement, pgx.QueryExecModeExec); err != nil {
				return err
			}
		}
		made = name
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("partition %s: %w", name, err)
	}
	return made, nil
}
