package operator

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
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Pruned is how far rows of a source's table are gone, in the order of its records.
type Pruned struct {
	// Table is the table that was asked about, with its schema.
	Table string
	// Through is the position of the last row that was removed.
	Through cursor.Position
	// Mode is that of the rule that removed the last rows, and Place where these rows are; "" if nowhere. If others were
	// removed before the last ones were marked, Mode has both, and Place is that of the others.
	Mode, Place string
	// Removed is how many rows were removed in all, by the server's estimate for a partition, and At when the last ones
	// were, by the database's clock.
	Removed int64
	At      time.Time
	// Apart: rows were removed that were noted in other orders alone, so that Through is not to be compared with positions
	// of the order that was asked about.
	Apart bool
}

// String describes what is gone, for people.
func (p Pruned) String() string {
	fate := "were removed"
	if p.Place != "" {
		fate = "are in " + visible.Line(p.Place)
	}
	return fmt.Sprintf("records of %s up to position %s %s (retention, mode %s)", visible.Line(p.Table), visible.Cut(string(p.Through)), fate, p.Mode)
}

// marks is the mode that leaves rows in the table.
const marks = "mark"

// Kept reports that all of the rows are in the table: they were marked, and none was removed before.
func (p Pruned) Kept() bool { return p.Mode == marks }

// Marks reports that the last rows were marked.
func (p Pruned) Marks() bool { return p.Kept() || strings.HasPrefix(p.Mode, marksAfter) }

// PrunedError refuses a seek to a place whose records are not all there any more, or may not be.
type PrunedError struct {
	Process string
	Pruned
}

func (e *PrunedError) Error() string {
	lacking := "them"
	switch {
	case e.Kept():
		lacking = "those of them that source.where leaves out"
	case e.Apart:
		lacking = "some of them"
	}
	if e.Apart {
		return fmt.Sprintf("%s, so this replay may lack %s: the positions of %s cannot be compared with that one. "+
			"To go there with what the table holds, add --pruned", e.Pruned, lacking, visible.Line(e.Process))
	}
	return fmt.Sprintf("%s, so this replay would lack %s. To send what is still there: "+
		"ordered-dispatcher seek %s --to-position %s -c FILE --reason …. To go back further with what the table holds, for example once the rows are put back, add --pruned",
		e.Pruned, lacking, visible.Shell(e.Process), visible.Shell(string(e.Through)))
}

// lastingSQL is the name under which cursor_pruned has a table (%s is its oid) that may be renamed or detached. It has the
// database as well: elsewhere, another table has the oid. No name of a table looks like it.
const lastingSQL = `'table ' || %s || ' of database ' || ` + tables.DatabaseSQL + ` || ' of system ' || ` + tables.SystemSQL

// modeSQL is the mode of a row after a removal, and placeSQL its place. Rows that were marked are in the table, so a mode
// that has removed others stays known beside it. ($4) and ($5) are those of the removal, and pruned is the row.
const (
	marksAfter = marks + " after "
	modeSQL    = `CASE
		WHEN $4 <> '` + marks + `' THEN $4
		WHEN pruned.mode = '` + marks + `' OR pruned.mode LIKE '` + marksAfter + `%' THEN pruned.mode
		ELSE '` + marksAfter + `' || pruned.mode END`
	placeSQL = `CASE WHEN $4 <> '` + marks + `' OR pruned.mode = '` + marks + `' THEN $5 ELSE pruned.place END`
)

// prunedSQL notes a removal under the name of the rule's table ($1), and under the lasting names of that table and of
// those that had the rows ($7), with the last positions ($3) of its orders ($2). The name alone comes along when the
// database is restored from a dump. A place is right only if every removal was noted in its order. So a name that has
// some gets no further order, and an order that no process reads in any more becomes a past one, which is no order. A past
// one whose rows were only marked changes once more, when others are removed.
var prunedSQL = `/* cursor.pruned_through */
WITH known (name) AS (
	SELECT $1::text
	UNION
	SELECT ` + fmt.Sprintf(lastingSQL, "t.oid") + `
	FROM unnest($7::text[]::oid[] || to_regclass($1)::oid) t (oid)
	WHERE t.oid IS NOT NULL
), past AS (
	UPDATE {schema}.cursor_pruned pruned
	SET
		kind = CASE WHEN kind LIKE '` + pastOrder + `%' THEN '' ELSE '` + pastOrder + `' END || kind,
		mode = ` + modeSQL + `,
		place = ` + placeSQL + `
	WHERE table_name IN (SELECT name FROM known)
		AND kind <> ALL ($2::text[])
		AND (kind NOT LIKE '` + pastOrder + `%' OR mode = '` + marks + `' AND $4 <> '` + marks + `')
)
INSERT INTO {schema}.cursor_pruned AS pruned (table_name, kind, through, mode, place, removed)
SELECT known.name, o.kind, o.through, $4::text, $5::text, $6::bigint
FROM known
CROSS JOIN unnest($2::text[], $3::text[]) o (kind, through)
WHERE NOT EXISTS (SELECT FROM {schema}.cursor_pruned p WHERE p.table_name = known.name)
	OR EXISTS (SELECT FROM {schema}.cursor_pruned p WHERE p.table_name = known.name AND p.kind = o.kind)
ON CONFLICT (table_name, kind) DO UPDATE SET
	through = greatest(pruned.through, excluded.through),
	mode = ` + modeSQL + `,
	place = ` + placeSQL + `,
	removed = pruned.removed + CASE WHEN excluded.through > pruned.through THEN excluded.removed ELSE 0 END,
	at = clock_timestamp()`

// pastOrder begins the kind of an order in which not all removals were noted.
const pastOrder = "past "

// kindOf returns the tag of a position. Positions of other tags cannot be compared with it.
func kindOf(p cursor.Position) string {
	kind, _, _ := strings.Cut(string(p), ":")
	return kind
}

const prunedByNameSQL = `/* cursor.pruned */
SELECT table_name, through, mode, place, removed, (extract(epoch FROM at) * 1000000)::bigint::text, false
FROM {schema}.cursor_pruned
WHERE table_name = $1 AND kind = $2
LIMIT 1`

// Pruned returns how far a rule has removed rows of the table that has a name now, if all of that is known in an order.
func (o *Operator) Pruned(ctx context.Context, table, order string) ([]Pruned, error) {
	return o.lookUpPruned(ctx, prunedByNameSQL, table, order)
}

// prunedAroundSQL finds the furthest place in an order ($2), among those of a table ($1), of the tables above and below
// it, and of those that it was. Of those that have none in that order it finds the latest removal. Rows that were only
// marked have a place of their own, which comes after. A name has quotes or not: see Decision.Table. It uses the indexes of pg_inherits.
var prunedAroundSQL = `/* cursor.pruned_around */
WITH RECURSIVE above (oid) AS (
	SELECT to_regclass($1)::oid
	UNION
	SELECT i.inhparent FROM pg_inherits i JOIN above ON i.inhrelid = above.oid
), below (oid) AS (
	SELECT to_regclass($1)::oid
	UNION
	SELECT i.inhrelid FROM pg_inherits i JOIN below ON i.inhparent = below.oid
), known (name) AS (
	SELECT $1::text
	UNION
	SELECT k.name
	FROM pg_class c
	JOIN pg_namespace n ON n.oid = c.relnamespace
	CROSS JOIN LATERAL (VALUES
		(n.nspname || '.' || c.relname),
		('"' || replace(n.nspname, '"', '""') || '"."' || replace(c.relname, '"', '""') || '"'),
		(` + fmt.Sprintf(lastingSQL, "c.oid") + `)
	) k (name)
	WHERE c.oid IN (SELECT oid FROM above UNION SELECT oid FROM below)
), noted AS (
	SELECT through, mode, place, removed, at, kind = $2 AS own, bool_or(kind = $2) OVER (PARTITION BY table_name) AS whole
	FROM {schema}.cursor_pruned
	WHERE table_name IN (SELECT name FROM known)
)
SELECT DISTINCT ON (own, mode = '` + marks + `') $1::text, through, mode, place, removed, (extract(epoch FROM at) * 1000000)::bigint::text, NOT own
FROM noted
WHERE own OR NOT whole
ORDER BY own DESC, mode = '` + marks + `', CASE WHEN own THEN through END DESC, at DESC
LIMIT 4`

// PrunedAround returns how far rows are gone that a process would read from a table in an order, as d has them. Rules of
// tables above and below it count, and what was removed while the table had another name, or was a partition.
func (o *Operator) PrunedAround(ctx context.Context, d cursor.Decision) ([]Pruned, error) {
	all, err := o.lookUpPruned(ctx, prunedAroundSQL, d.Table, d.Order)
	return gone(all, d), err
}

// gone leaves out rows that the source of a decision reads all the same.
func gone(all []Pruned, d cursor.Decision) []Pruned {
	return slices.DeleteFunc(all, func(p Pruned) bool { return d.Whole && p.Kept() })
}

// droppedSQL looks for the lasting name of a table ($1 is its oid).
var droppedSQL = `/* cursor.dropped */
SELECT EXISTS (
	SELECT
	FROM {schema}.cursor_pruned
	WHERE table_name = ` + fmt.Sprintf(lastingSQL, "$1::text::oid") + ` AND mode = 'drop' AND at >= $2::text::timestamptz
)`

// Dropped reports whether a rule of retention has taken a partition since a time of the database. When it noted that, no
// process needed a row of the partition, and no row could come any more.
func (o *Operator) Dropped(ctx context.Context, oid uint32, since time.Time) (bool, error) {
	results, err := o.ask(ctx, o.db.Statement(droppedSQL, strconv.FormatUint(uint64(oid), 10), since.UTC().Format(time.RFC3339Nano)))
	if err != nil {
		return false, o.db.WithFix("read whether retention has dropped a partition", err)
	}
	return string(results[0].Rows[0][0]) == "t", nil
}

func (o *Operator) lookUpPruned(ctx context.Context, sql, table, order string) ([]Pruned, error) {
	results, err := o.ask(ctx, o.db.Statement(sql, table, order))
	if err != nil {
		return nil, o.db.WithFix("read how far rows of "+visible.Line(table)+" are gone", err)
	}
	return parsePruned(results[0].Rows)
}

func parsePruned(rows [][][]byte) (all []Pruned, err error) {
	for _, values := range rows {
		p := tables.Parser{Values: values}
		all = append(all, Pruned{Table: p.Text(0), Through: cursor.Position(p.Text(1)), Mode: p.Text(2), Place: p.Text(3), Removed: p.Int(4), At: p.Time(5), Apart: p.True(6)})
		if p.Err != nil {
			return nil, p.Err
		}
	}
	return all, nil
}

// lacks returns a *PrunedError if records after a position are gone, or may be. from is where the cursor is.
func lacks(process string, from, to cursor.Position, all []Pruned) error {
	forward := kindOf(from) == kindOf(to) && to >= from // nothing comes again
	for _, p := range all {
		if p.Apart && !forward || !p.Apart && to < p.Through {
			return &PrunedError{Process: process, Pruned: p}
		}
	}
	return nil
}

const lockSeekSQL = `/* cursor.lock_seek */ SELECT pg_advisory_xact_lock(` + seekKeySQL + `)`

// checkPruned refuses a seek to a place whose records are gone, unless the operator takes what is left. conn is in the
// transaction of the decision. The lock comes first, with a statement of its own: the question after it sees what was
// removed before, and no removal that goes by the old place of the cursor ends after it.
func (o *Operator) checkPruned(ctx context.Context, conn *pgx.Conn, process string, from, to cursor.Position, d cursor.Decision) error {
	all := []tables.Statement{o.db.Statement(lockSeekSQL)}
	if d.Table != "" {
		all = append(all, o.db.Statement(prunedAroundSQL, d.Table, d.Order))
	}
	results, err := tables.Flush(ctx, conn, all...)
	if tables.GaveUp(err) || errors.Is(err, cursor.ErrNoAnswer) {
		err = o.held(ctx, err, seekLock)
	}
	if err != nil {
		return fmt.Errorf("find out whether retention has removed rows after %s: %w", visible.Cut(string(to)), err)
	}
	if d.Table == "" || d.Pruned {
		return nil
	}
	around, err := parsePruned(results[1].Rows)
	if err != nil {
		return err
	}
	return lacks(process, from, to, gone(around, d))
}

// rehearsePruned is checkPruned without a lock.
func (o *Operator) rehearsePruned(ctx context.Context, process string, from, to cursor.Position, d cursor.Decision) error {
	if d.Table == "" || d.Pruned {
		return nil
	}
	all, err := o.PrunedAround(ctx, d)
	if err != nil {
		return err
	}
	return lacks(process, from, to, all)
}
