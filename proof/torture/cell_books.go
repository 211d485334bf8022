package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// books are what the servers of a cell held, each when it was replaced.
type books struct {
	rows    map[string]*history.CellRow // by key
	reigns  []history.Reign
	audited map[string]bool // rows of the audit, by their random ids
}

func newBooks() *books {
	return &books{rows: map[string]*history.CellRow{}, audited: map[string]bool{}}
}

// all are the rows, in the order of their keys.
func (b *books) all() []history.CellRow {
	var all []history.CellRow
	for _, key := range slices.Sorted(maps.Keys(b.rows)) {
		all = append(all, *b.rows[key])
	}
	return all
}

const reignsSQL = `/* torture.reigns */
SELECT id::text, process_name, epoch
FROM app.reign
ORDER BY process_name, epoch
LIMIT 10000000`

// audit notes what a server holds. An entry of the audit is that server's in which it is found first: those after it have it
// as a copy.
func (b *books) audit(ctx context.Context, server *pglocal.Server, number int) error {
	d := &database{server: server}
	err := d.insist(ctx, func(conn *pgx.Conn) error {
		for _, s := range cellSources() {
			if err := b.auditTable(ctx, conn, s, number); err != nil {
				return err
			}
		}
		return b.auditReigns(ctx, conn, number)
	})
	if err != nil {
		return fmt.Errorf("read what server %d of the cell held: %w", number, err)
	}
	return nil
}

func (b *books) auditTable(ctx context.Context, conn *pgx.Conn, s source, number int) error {
	some, err := readRows(ctx, conn, s)
	for _, row := range some {
		known := b.rows[row.Key]
		if known == nil {
			known = &history.CellRow{Table: row.Table, Key: row.Key, Hash: row.Hash}
			b.rows[row.Key] = known
		}
		known.Position = row.Position
		if !slices.Contains(known.Servers, number) {
			known.Servers = append(known.Servers, number)
		}
	}
	return err
}

func (b *books) auditReigns(ctx context.Context, conn *pgx.Conn, number int) error {
	var id string
	r := history.Reign{Server: number}
	rows, _ := conn.Query(ctx, reignsSQL)
	_, err := pgx.ForEachRow(rows, []any{&id, &r.Process, &r.Epoch}, func() error {
		if !b.audited[id] {
			b.audited[id], b.reigns = true, append(b.reigns, r)
		}
		return nil
	})
	return err
}
