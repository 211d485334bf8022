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

// errRefused rolls the examination's transaction back, which the server has
// given up: the finding says why.
var errRefused = errors.New("the server refuses to read the table")

// probe has the server plan the read, and looks at what the catalog does not tell.
func (e *examination) probe(ctx context.Context, tx pgx.Tx, l *layout) error {
	plan, err := e.explain(ctx, tx, l)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && !transient(pgErr) {
		e.refuse(e.probeCure(pgErr), "the server refuses to read %s: %s (SQLSTATE %s)", l.name(), pgErr.Message, pgErr.Code)
		return errRefused
	}
	if err != nil {
		return err
	}
	if plan.sorts() {
		order := strings.ReplaceAll(strings.Join(l.orderBy(e.config), ", "), "t.", "")
		e.warn(fmt.Sprintf("CREATE INDEX%s ON %s (%s)%s", e.concurrently(), l.sql(), order, e.heirs()),
			"no index of %s gives the order (%s): every read sorts what stands behind the cursor", l.name(), order)
		return nil // what follows would read the whole table
	}
	if l.ordersByTime() {
		return e.infinity(ctx, tx, l)
	}
	return e.ahead(ctx, tx, l)
}

func (e *examination) probeCure(err *pgconn.PgError) string {
	switch {
	case err.Code == "42501":
		return "run, as the owner, what `ordered-dispatcher grants` prints for role " + e.cat.role
	case e.config.Where != "":
		return "mend source.where; names outside pg_catalog need their schema"
	default:
		return "see the server's message"
	}
}

// concurrently is left out where PostgreSQL does not know it.
func (e *examination) concurrently() string {
	if e.cat.relkind == "p" {
		return ""
	}
	return " CONCURRENTLY"
}

// heirs reminds of the tables that do not get the indexes of the one they
// inherit from.
func (e *examination) heirs() string {
	inherits := func(m member) bool { return !m.Partition && !m.Above }
	if e.cat.relkind == "p" || len(e.cat.members) == 1 || !slices.ContainsFunc(e.cat.members, inherits) {
		return ""
	}
	return ", and the same on each table that inherits from it"
}

// plan is a node of what EXPLAIN prints.
type plan struct {
	Node  string `json:"Node Type"`
	Plans []plan
}

// sorts reports whether the rows come in order only after sorting.
func (p plan) sorts() bool {
	return strings.HasSuffix(p.Node, "Sort") && p.scans() || slices.ContainsFunc(p.Plans, plan.sorts)
}

// scans reports whether there is a table to read: one without a partition has none.
func (p plan) scans() bool {
	return strings.HasSuffix(p.Node, "Scan") || slices.ContainsFunc(p.Plans, plan.scans)
}

// explain plans the read behind some position.
func (e *examination) explain(ctx context.Context, tx pgx.Tx, l *layout) (plan, error) {
	id := "0"
	if l.kind == kindAtUUID {
		id = l.kind.lowestID()
	}
	if e.config.Where != "" { // alone, since the parameters of a read are none of its
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

// infinity finds the rows that stand behind every time.
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

// ahead finds rows that their sequence has not come to yet.
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

// transient tells errors that will pass from those that a finding should name.
// 08P01 is a where clause with a parameter.
func transient(err *pgconn.PgError) bool {
	return err.Code != "08P01" && !slices.Contains([]string{"0A", "22", "28", "3D", "3F", "42"}, err.Code[:2])
}

// unique checks that no two rows have the same position. An index of all
// partitions holds their keys as well, so that it cannot say so of two rows in
// two partitions.
func (e *examination) unique(l *layout) {
	if !l.ordersByTime() || l.at == "" {
		return
	}
	at, _ := parseName(l.at)
	id, _ := parseName(e.config.Columns.ID)
	position := []string{at[0], id[0]}
	allowed := slices.Concat(position, e.cat.partitionKeys)
	within := func(i index) bool {
		return !slices.ContainsFunc(i.Columns, func(c string) bool { return !slices.Contains(allowed, c) })
	}
	if !slices.ContainsFunc(e.cat.indexes, within) {
		columns := []string{pgx.Identifier(id).Sanitize()}
		for _, key := range e.cat.partitionKeys {
			if key != id[0] {
				columns = append(columns, pgx.Identifier{key}.Sanitize())
			}
		}
		e.warn(fmt.Sprintf("CREATE UNIQUE INDEX%s ON %s (%s)", e.concurrently(), l.sql(), strings.Join(columns, ", ")),
			"nothing keeps (%s) of %s unique: of two rows with the same values, the second would be passed over", strings.Join(position, ", "), l.name())
	}
}
