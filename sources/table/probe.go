package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errRefused rolls back the examination's transaction, which the server has given up. The finding explains why.
var errRefused = errors.New("the server refuses to read the table")

// probe has the server plan the read, and checks everything that the catalog does not show.
func (e *examination) probe(ctx context.Context, tx pgx.Tx, l *layout) error {
	plan, err := e.planned(ctx, tx, l)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && !transient(pgErr) {
		e.refuse(e.probeFix(pgErr), "the server refuses to read %s: %s (SQLSTATE %s)", l.name(), pgErr.Message, pgErr.Code)
		return errRefused
	}
	if err != nil {
		return err
	}
	if plan.sorts() {
		e.unordered(l)
		return nil // the checks below would read the whole table
	}
	if l.ordersByTime() {
		return e.infinity(ctx, tx, l)
	}
	return e.ahead(ctx, tx, l)
}

func (e *examination) probeFix(err *pgconn.PgError) string {
	switch {
	case err.Code == "42501":
		return "run, as the owner, what `ordered-dispatcher grants` prints for role " + e.cat.role
	case e.config.Where != "":
		return "fix source.where; names outside pg_catalog need their schema"
	default:
		return "see the server's message"
	}
}

// plan is a node in the output of EXPLAIN.
type plan struct {
	Node  string `json:"Node Type"`
	Index string `json:"Index Name"`
	Plans []plan
}

// within reports whether the plan scans only these indexes.
func (p plan) within(indexes []string) bool {
	if strings.HasSuffix(p.Node, "Scan") && !slices.Contains(indexes, p.Index) {
		return false
	}
	return !slices.ContainsFunc(p.Plans, func(p plan) bool { return !p.within(indexes) })
}

const partialSQL = "/* source.partial */" + treeSQL + `
SELECT c.relname::text
FROM tree
JOIN pg_index i ON i.indrelid = tree.oid
JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indpred IS NOT NULL AND i.indisvalid
LIMIT 100000`

// planned plans the read, and finds out whether a partial index spares it the rows that Config.Where leaves out.
func (e *examination) planned(ctx context.Context, tx pgx.Tx, l *layout) (plan, error) {
	if e.config.Where != "" {
		rows, err := tx.Query(ctx, fmt.Sprintf(partialSQL, l.oid), pgx.QueryExecModeExec)
		if err != nil {
			return plan{}, err
		}
		partial, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return plan{}, err
		}
		if len(partial) > 0 {
			l.partial = true
			p, err := e.explain(ctx, tx, l)
			if err != nil || !p.sorts() && p.scans() && p.within(partial) {
				return p, err
			}
			l.partial = false
		}
	}
	return e.explain(ctx, tx, l)
}

// sorts reports whether the server has to sort the rows to put them in order.
func (p plan) sorts() bool {
	return strings.HasSuffix(p.Node, "Sort") && p.scans() || slices.ContainsFunc(p.Plans, plan.sorts)
}

// scans reports whether there is a table to read: a partitioned table without partitions has none.
func (p plan) scans() bool {
	return strings.HasSuffix(p.Node, "Scan") || slices.ContainsFunc(p.Plans, plan.scans)
}

// explain plans the read after some position.
func (e *examination) explain(ctx context.Context, tx pgx.Tx, l *layout) (plan, error) {
	id := "0"
	if l.kind == kindAtUUID {
		id = l.kind.lowestID()
	}
	if e.config.Where != "" { // checked alone, since it must not use the parameters of a read
		alone := fmt.Sprintf("/* source.where */ EXPLAIN SELECT FROM %s AS t WHERE true AND (\n%s\n)", l.sql(), e.config.Where)
		if result := tx.Conn().PgConn().ExecParams(ctx, alone, nil, nil, nil, nil).Read(); result.Err != nil {
			return plan{}, result.Err
		}
	}
	sql := "/* source.explain */ EXPLAIN (FORMAT JSON) " + l.readSQL(e.config, false)
	result := tx.Conn().PgConn().ExecParams(ctx, sql, append(l.arguments(key{id: id}), []byte("1")), nil, nil, nil).Read()
	if result.Err != nil {
		return plan{}, result.Err
	}
	var plans []struct{ Plan plan }
	if err := json.Unmarshal(result.Rows[0][0], &plans); err != nil {
		return plan{}, fmt.Errorf("read the plan: %w", err)
	}
	return plans[0].Plan, nil
}

// infinity finds the rows that are after every time.
func (e *examination) infinity(ctx context.Context, tx pgx.Tx, l *layout) error {
	at := quote(l.at)
	sql := fmt.Sprintf("/* source.infinity */ SELECT EXISTS (SELECT FROM %s AS t WHERE t.%s = 'infinity')", l.sql(), at)
	var found bool
	if err := tx.QueryRow(ctx, sql, pgx.QueryExecModeExec).Scan(&found); err != nil || !found {
		return err
	}
	e.warn(fmt.Sprintf("UPDATE %[1]s SET %[2]s = clock_timestamp() WHERE %[2]s = 'infinity'", l.sql(), at),
		"rows of %s have a %s of infinity: they are never delivered", l.name(), at)
	return nil
}

// ahead finds rows whose ids their sequence has not reached yet.
func (e *examination) ahead(ctx context.Context, tx pgx.Tx, l *layout) error {
	id := quote(e.config.Columns.ID)
	sql := fmt.Sprintf(`/* source.ahead */
SELECT t.%[1]s::bigint, %[4]s, %[2]d::regclass::text
FROM %[3]s AS t
ORDER BY t.%[1]s DESC
LIMIT 1`, id, l.sequence, l.sql(), l.lastID())
	var highest, last int64
	var name string
	err := tx.QueryRow(ctx, sql, pgx.QueryExecModeExec).Scan(&highest, &last, &name)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && highest <= last {
		return nil
	}
	if err != nil {
		return err
	}
	e.warn(fmt.Sprintf("SELECT setval(%s, %d)", literal(name), highest),
		"column %s of %s reaches %d, and its sequence %s stands at %d: rows past it wait until it has passed them", id, l.name(), highest, name, last)
	return nil
}

// transient distinguishes errors that will pass from those that a finding should name. 08P01 is a where clause with a
// parameter.
func transient(err *pgconn.PgError) bool {
	return err.Code != "08P01" && !slices.Contains([]string{"0A", "22", "28", "3D", "3F", "42"}, err.Code[:2])
}
