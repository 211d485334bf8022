package table

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// trigger runs when rows are inserted.
type trigger struct {
	Name     string
	Table    string
	Source   string // of its function
	Language string
	After    bool // the row was inserted; otherwise before each row, after the default was evaluated
}

// triggersSQL finds the triggers of every table that rows go into. A trigger on a partition that comes from the table
// above it is found on that table.
const triggersSQL = "/* source.catalog.triggers */" + treeSQL + `
SELECT t.tgname::text, t.tgrelid::regclass::text, p.prosrc, l.lanname::text, t.tgtype & 2 = 0
FROM lineage
JOIN pg_trigger t ON t.tgrelid = lineage.oid
JOIN pg_proc p ON p.oid = t.tgfoid
JOIN pg_language l ON l.oid = p.prolang
WHERE (t.tgtype & 7 = 7 OR t.tgtype & 70 = 4) -- INSERT: BEFORE and FOR EACH ROW, or AFTER
	AND NOT t.tgisinternal
	AND t.tgparentid = 0
	AND t.tgenabled IN ('O', 'A')
ORDER BY t.tgrelid, t.tgname
LIMIT 1000`

func readTriggers(ctx context.Context, tx pgx.Tx, oid uint32) ([]trigger, error) {
	return collect[trigger](ctx, tx, fmt.Sprintf(triggersSQL, oid))
}

// triggers warns of a trigger that puts something else into the order column than the default would.
// clock_timestamp() is as good in a trigger: the table is locked by then. For the start of a transaction, the source
// takes the fence that such a default takes.
func (e *examination) triggers(l *layout) {
	column := e.config.Columns.CreatedAt
	if e.config.Order == ID {
		column = e.config.Columns.ID
	}
	parts, _ := parseName(column)
	for _, t := range e.cat.triggers {
		if t.Language != "plpgsql" {
			continue
		}
		if t.After {
			e.restamps(t, parts[0])
			continue
		}
		var wrong []string
		puts := assigned(t.Source, parts[0])
		if len(puts.unread) > 0 {
			e.warn(dropTrigger(t), "the value that trigger %s of %s puts into column %s is not known: %s. A value below what was delivered is passed over",
				t.Name, t.Table, parts[0], strings.Join(puts.unread, ", and "))
		}
		for _, value := range puts.values {
			if e.config.Order == CreatedAt && e.zoneOfTrigger(l, t, value) {
				continue
			}
			made := readDefault(&value, l.atType).stamp
			if e.config.Order == CreatedAt && made == stampAfterLock {
				continue
			}
			wrong = append(wrong, value)
			if e.config.Order == CreatedAt && made == stampAtStart && l.stamp == stampAfterLock {
				e.startedByTrigger(l, t, value)
			}
		}
		if len(wrong) == 0 {
			continue
		}
		e.warn(dropTrigger(t),
			"trigger %s of %s sets column %s to %s, over its default: a value below what was delivered is passed over",
			t.Name, t.Table, parts[0], strings.Join(wrong, ", or "))
	}
}

// restamps warns of a trigger that changes the order column of rows that are already inserted.
func (e *examination) restamps(t trigger, column string) {
	targets, unread := updates(t.Source, column)
	for _, target := range targets {
		for _, whole := range []string{t.Table, e.config.Table} {
			if parts, _ := parseName(whole); len(parts) > 0 && parts[len(parts)-1] == target {
				e.warn(dropTrigger(t), "trigger %s of %s updates column %s of rows that are inserted already: a row that gets a value below what was delivered is passed over",
					t.Name, t.Table, column)
				return
			}
		}
	}
	if unread {
		e.warn(dropTrigger(t), "whether trigger %s of %s updates column %s of rows that are inserted already is not known, since a part of its function cannot be read: "+
			"a row that gets a value below what was delivered is passed over", t.Name, t.Table, column)
	}
}

func dropTrigger(t trigger) string {
	return fmt.Sprintf("DROP TRIGGER %s ON %s, or let its function leave the column alone", pgx.Identifier{t.Name}.Sanitize(), t.Table)
}

func (e *examination) startedByTrigger(l *layout, t trigger, value string) {
	l.stamp = stampAtStart
	if !e.cat.seesAll {
		e.refuseUnseen(fmt.Sprintf("trigger %s of %s stamps rows with %s", t.Name, t.Table, value), dropTrigger(t))
	}
}
