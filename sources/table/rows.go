package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// InspectRows finds the promises that the rows themselves break, and the faults of a cursor at a position; "" means
// no cursor. It reads at most a thousand rows, by index range, so the table must be one that Inspect does not refuse.
// It returns an error if the database did not answer, or if the position does not belong to the source.
func (s *Source) InspectRows(ctx context.Context, at cursor.Position) ([]Finding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	e := rowExamination{examination: examination{config: s.config}, layout: l}
	err = s.readOnly(ctx, func(ctx context.Context, tx pgx.Tx) error {
		behind, err := e.behind(ctx, tx, at)
		if err != nil {
			return err
		}
		checks := []func(context.Context, pgx.Tx) error{e.minusInfinity, e.outOfStep, e.place, e.oneStamp}
		if behind == nil {
			checks = slices.Insert(checks, 1, e.future)
		} else {
			e.find(fault{Finding: *behind})
		}
		for _, check := range checks {
			if err := check(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("inspect the rows of %s: %w", l.name(), lasting(err))
	}
	return e.plain(), nil
}

// rowExamination compares rows with the needs of the fence.
type rowExamination struct {
	examination
	*layout
}

// minusInfinity finds rows that are before every time: no position holds them.
func (e *rowExamination) minusInfinity(ctx context.Context, tx pgx.Tx) error {
	if !e.ordersByTime() {
		return nil
	}
	at := quote(e.at)
	var found bool
	if err := tx.QueryRow(ctx, e.minusInfinitySQL(), pgx.QueryExecModeExec).Scan(&found); err != nil || !found {
		return err
	}
	e.warn(fmt.Sprintf("UPDATE %[1]s SET %[2]s = clock_timestamp() WHERE %[2]s = '-infinity'", e.sql(), at),
		"rows of %s have a %s of -infinity: they cannot be delivered, and a process that starts at the beginning stops at them", e.name(), at)
	return nil
}

func (e *rowExamination) minusInfinitySQL() string {
	return fmt.Sprintf("/* source.minus_infinity */ SELECT EXISTS (SELECT FROM %s AS t WHERE t.%s = '-infinity')", e.sql(), quote(e.at))
}

const placeSQL = `/* source.place */
SELECT
	coalesce((SELECT p.oid::regclass::text FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent WHERE i.inhrelid = c.oid AND p.relkind = 'p'), ''),
	c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid)
FROM pg_class c
WHERE c.oid = $1`

// place notes how rows may come into the table with stamps that were made elsewhere.
func (e *rowExamination) place(ctx context.Context, tx pgx.Tx) error {
	var above string
	var inherited bool
	if err := tx.QueryRow(ctx, placeSQL, pgx.QueryExecModeExec, e.oid).Scan(&above, &inherited); err != nil {
		return err
	}
	if above != "" {
		e.note(fmt.Sprintf("name %s in source.table, and the rows of this partition in source.where", above),
			"%s is a partition of %s: a row that an UPDATE moves into it keeps its stamp, and is not read if that is older than what was delivered", e.name(), above)
	}
	if inherited {
		e.note("let a table inherit in a transaction of its own, before it has rows",
			"other tables inherit from %s: rows that one of them has when it comes to inherit, or gets in the same transaction, "+
				"are not read if they are older than what was delivered", e.name())
	}
	return nil
}

// oneStamp notes rows that have no order among themselves: they share a stamp, and their ids do not grow.
func (e *rowExamination) oneStamp(context.Context, pgx.Tx) error {
	if !e.ordersByTime() || e.layout.stamp != stampAtStart || e.kind == kindAtInt {
		return nil
	}
	e.note("if their order matters, stamp each row by itself: a default of clock_timestamp(), or ids that grow",
		"all rows that one transaction inserts into %s have one %s, so they are delivered in the order of their ids, which are of type %s: unless those grow, "+
			"the order of the inserts within a transaction is lost", e.name(), quote(e.at), e.idType)
	return nil
}

func (e *rowExamination) note(fix, format string, args ...any) {
	e.find(fault{Finding: finding(Note, fix, format, args...)})
}

// clockTolerance is how far ahead of the clock a stamp has to be so that it is not a matter of rounding.
const clockTolerance = time.Second

// future finds a row that the database's clock has not reached. The clock has to be past the cursor here, so the row
// was not delivered. Another process may have delivered it, if this server was promoted and its clock is behind.
func (e *rowExamination) future(ctx context.Context, tx pgx.Tx) error {
	if !e.ordersByTime() {
		return nil
	}
	var newest string
	var ahead *int64 // NULL for -infinity
	var promoted bool
	err := tx.QueryRow(ctx, e.newestSQL(), pgx.QueryExecModeExec).Scan(&newest, &ahead, &promoted)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && (ahead == nil || *ahead <= (clockTolerance+e.rounding).Microseconds()) {
		return nil
	}
	if err != nil {
		return err
	}
	if promoted {
		e.warn("compare the server's clock with others, and set it right: it was a standby. Do not change stamps of rows that were delivered",
			"rows of %s have a %s of the future, the last one of %s: they wait until the clock of this server has passed it, which was promoted and may be behind",
			e.name(), quote(e.at), newest)
		return nil
	}
	e.warn(fmt.Sprintf("UPDATE %[1]s SET %[2]s = clock_timestamp() WHERE %[2]s > clock_timestamp() AND %[2]s < 'infinity'; -- if the server's clock is right, and no process has delivered them", e.sql(), quote(e.at)),
		"rows of %s have a %s of the future, the last one of %s: they wait until the database's clock has passed it, so it was not the database that stamped them",
		e.name(), quote(e.at), newest)
	return nil
}

func (e *rowExamination) newestSQL() string {
	at := "t." + quote(e.at)
	return fmt.Sprintf(`/* source.newest */
SELECT %[1]s::text, (%[2]s) - (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_last_xact_replay_timestamp() IS NOT NULL
FROM %[3]s AS t
WHERE %[1]s < 'infinity'
ORDER BY %[4]s DESC
LIMIT 1`, at, e.finiteMicros(), e.sql(), strings.Join(e.orderBy(e.config), " DESC, "))
}

// A stamp and an id that are both made as the row is inserted grow together, except for the moment between the two.
// The check reads stepSample rows.
const (
	stepSample    = 1000
	stepTolerance = time.Second
)

// outOfStep finds rows whose stamps contradict their ids by more than a moment: one of the two was not made as the
// row was inserted.
func (e *rowExamination) outOfStep(ctx context.Context, tx pgx.Tx) error {
	if e.counter == 0 || e.layout.stamp != stampAfterLock {
		return nil
	}
	var count int
	var id, before *int64
	var stamp *string
	if err := tx.QueryRow(ctx, e.outOfStepSQL(), pgx.QueryExecModeExec).Scan(&count, &id, &stamp, &before); err != nil || count == 0 {
		return err
	}
	e.warn("insert rows without "+quote(e.at)+", so that its default stamps them; or order by id, which needs no clock",
		"among the newest rows of %s, %s and id contradict each other %d times: id %d is of %s, and id %d of more than a second before it. An application sets "+
			"the one or the other, or the sequence was set back; a stamp that is older than what was delivered is passed over",
		e.name(), quote(e.at), count, *id, *stamp, *before)
	return nil
}

func (e *rowExamination) outOfStepSQL() string {
	at := "t." + quote(e.at)
	return fmt.Sprintf(`/* source.out_of_step */
WITH newest AS (
	SELECT t.%[1]s::bigint AS id, %[2]s AS at
	FROM %[3]s AS t
	WHERE %[2]s < 'infinity' AND %[2]s > '-infinity'
	ORDER BY %[4]s DESC
	LIMIT %[5]d
), compared AS (
	SELECT id, at, max(id) OVER (ORDER BY at RANGE BETWEEN UNBOUNDED PRECEDING AND interval '%[6]d microseconds' PRECEDING) AS before
	FROM newest
)
SELECT count(*), min(id), (array_agg(at::text ORDER BY id))[1], max(before)
FROM compared
WHERE id < before`, quote(e.config.Columns.ID), at, e.sql(), strings.Join(e.orderBy(e.config), " DESC, "), stepSample,
		(stepTolerance + 2*e.rounding).Microseconds())
}

// behind compares a position with the stamps that are made from now on: see overtaken.
func (e *rowExamination) behind(ctx context.Context, tx pgx.Tx, at cursor.Position) (*Finding, error) {
	if at == "" {
		return nil, nil
	}
	var sample sample
	if err := tx.QueryRow(ctx, e.markSQL(), pgx.QueryExecModeExec).Scan(&sample.mark, nil, nil, nil); err != nil {
		return nil, err
	}
	return e.overtaken(sample, at)
}

// overtaken returns the finding that rows stamped from now on sort before rows that were delivered; nil if they do
// not.
func (l *layout) overtaken(s sample, after cursor.Position) (*Finding, error) {
	if after == "" {
		return nil, nil
	}
	k, err := l.kind.parse(after)
	if err != nil {
		return nil, processor.Permanent(err)
	}
	if l.ordersByTime() {
		if s.mark > k.at {
			return nil, nil
		}
		return &Finding{Refuse, fmt.Sprintf("the database's clock (%s) is behind the cursor (%s): what is inserted now sorts before what was delivered and would never be read",
			time.UnixMicro(s.mark).UTC().Format(atLayout), time.UnixMicro(k.at).UTC().Format(atLayout)),
			"set the clock right, or wait until it has passed the cursor. Change no stamp of a row that was delivered. The process halts: `retry` looks then for what was inserted in between"}, nil
	}
	id, err := strconv.ParseInt(k.id, 10, 64)
	if err != nil || s.mark >= id {
		return nil, err
	}
	return &Finding{Refuse, fmt.Sprintf("the sequence of the ids stands at %d, before the cursor at %d: it was reset (TRUNCATE … RESTART IDENTITY, setval, a restore, or a crash of the server if it is unlogged), "+
		"and what is inserted now would never be read", max(s.mark, 0), id),
		fmt.Sprintf("`seek` to the start before anything else: that sends all that is in the table, under other dedup keys where these are of ids alone. Or, to pass over what was inserted since under ids up to that of the cursor: %s; then `retry`, if it is halted",
			visible.SQL(fmt.Sprintf("SELECT setval(%s, %d) FROM %s WHERE last_value < %[2]d", literal(l.sequenceName), id, l.sequenceName)))}, nil // not back: the ids may have come past it by then
}
