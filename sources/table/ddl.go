package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// DDL returns the DDL that makes the table one for which Inspect finds nothing, for its owner to run: statement by
// statement, in this order, each in a transaction of its own. It changes nothing itself. It returns no statement for a
// table that is ready.
//
// A column that is missing is added. Defaults, NOT NULL and indexes are those that Inspect proposes. The findings are
// what these statements do not end, such as a trigger that sets the time, and notes on other ways. There are findings
// alone if the table cannot be a source as it is, such as a view. DDL leaves out what only the role of a worker needs:
// see Inspect and Needs. It returns an error if the database did not answer.
func (s *Source) DDL(ctx context.Context) (statements []string, findings []Finding, err error) {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = s.inTx(ctx, options, func(ctx context.Context, tx pgx.Tx) error {
		located := s.located()
		cat, sequences, err := readCatalog(ctx, tx, located)
		if errors.Is(err, errNoTable) {
			findings = []Finding{missingTable(ctx, tx, located)}
			return nil
		}
		if err != nil {
			return err
		}
		if findings, err = s.settle(ctx, tx, cat, ""); err != nil || len(findings) > 0 {
			return err
		}
		cat.ofAnyRole()
		for i := range sequences {
			sequences[i].Readable = true
		}
		statements, findings, err = ddl(ctx, tx, examination{config: s.config, cat: cat, sequences: sequences})
		return err
	})
	if errors.Is(err, errRefused) {
		err = nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find the DDL for table %s: %w", s.config.Table, err)
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	return statements, findings, nil
}

// ddl examines the catalog, changes it in memory as the statements will change it, and examines it again, until
// nothing is left that depends on another change. Each change ends a fault, and makes no fault that a change ended.
func ddl(ctx context.Context, tx pgx.Tx, e examination) (statements []string, findings []Finding, err error) {
	l := e.run()
	for {
		i := slices.IndexFunc(e.findings, func(f fault) bool { return f.apply != nil })
		if i < 0 {
			break
		}
		f := e.findings[i]
		f.apply()
		statements = append(statements, f.statements...)
		if f.instead != "" {
			findings = append(findings, finding(Note, f.instead, "the first statements add a column, since %s; there are other ways", f.Problem))
		}
		e = examination{config: e.config, cat: e.cat, sequences: e.sequences}
		l = e.run()
	}
	switch {
	case len(e.misfits) > 0:
		return nil, e.misfits, nil
	case e.cat.grown:
		e.unordered(l) // a column that is not there yet has no index
		err = e.oldOnes(ctx, tx, l)
	default:
		err = e.probe(ctx, tx, l)
	}
	for _, f := range e.findings {
		if len(f.statements) == 0 {
			findings = append(findings, f.Finding)
		}
		statements = append(statements, f.statements...)
	}
	return statements, findings, err
}

const rowsThereSQL = "/* source.ddl.rows_there */" + treeSQL + `
SELECT coalesce(sum(pg_relation_size(oid)), 0) > 0 FROM tree`

// oldOnes warns of rows that get one time with the new column. A table that never had a row has no bytes: to know that
// needs no right to read it.
func (e *examination) oldOnes(ctx context.Context, tx pgx.Tx, l *layout) error {
	unordered := e.unorderedOld()
	if unordered == "" {
		return nil
	}
	var there bool
	err := tx.QueryRow(ctx, fmt.Sprintf(rowsThereSQL, e.cat.oid), pgx.QueryExecModeExec).Scan(&there)
	if err == nil && there {
		e.warn(e.orderOld(l), "%s", unordered)
	}
	return err
}

// ofAnyRole leaves out of the catalog what depends on the role that asks.
func (cat *catalog) ofAnyRole() {
	cat.super, cat.hidesRows = false, false
	cat.seesAll, cat.inherits, cat.tracks, cat.versions = true, true, true, true
	cat.client = "UTF8"
	for name, c := range cat.columns {
		c.Readable = true
		cat.columns[name] = c
	}
}

// addable adds to a fault, that a column of the position is missing, the DDL that adds it.
func (e *examination) addable(l *layout, f *fault, role, column string) {
	switch role {
	case "id":
		f.statements = []string{visible.SQL(e.addID(column))}
		f.instead = f.Fix
		f.apply = func() {
			e.grow(column, "bigint", true)
			e.sequences = []sequence{{Cache: 1, Increment: 1, Readable: true}}
		}
	case "created_at":
		f.statements = []string{visible.SQL(e.addStamp(column))}
		f.instead = strings.Join(e.otherWays(l), "; or ")
		f.apply = func() {
			e.grow(column, "timestamp with time zone", false)
			e.defaulted(&layout{atType: "timestamptz"}, member{Above: true})
		}
	}
}

// grow adds a column to the catalog.
func (e *examination) grow(name, kind string, assigned bool) {
	e.cat.grown = true
	e.cat.columns[name] = column{Name: name, Type: kind, Typmod: -1, NotNull: true, Readable: true, Assigned: assigned}
}

// addID returns the SQL that adds a column of ids. It writes the table anew, under a lock. PostgreSQL adds no identity to
// a table with others below it.
func (e *examination) addID(column string) string {
	kind := "bigint GENERATED ALWAYS AS IDENTITY"
	if len(e.cat.members) > 1 || e.cat.relkind == "p" {
		kind = "bigserial"
	}
	return fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", e.cat.root, quoted(column), kind)
}

// addStamp returns the SQL that adds the column of the order. now() is the same for all rows, so PostgreSQL keeps it
// once, and does not write the table anew under the lock. Rows that are inserted later get their own time.
func (e *examination) addStamp(column string) string {
	return fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s timestamptz NOT NULL DEFAULT now(), ALTER COLUMN %[2]s SET DEFAULT clock_timestamp()", e.cat.root, quoted(column))
}
