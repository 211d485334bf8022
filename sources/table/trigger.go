package table

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

// trigger runs before each row is inserted, after the default was evaluated.
type trigger struct {
	Name   string
	Table  string
	Source string // of its function
}

// triggersSQL finds the triggers of every table that rows go into. One on a
// partition that stems from the table above it is found there.
const triggersSQL = "/* source.catalog.triggers */" + treeSQL + `
SELECT t.tgname::text, t.tgrelid::regclass::text, p.prosrc
FROM lineage
JOIN pg_trigger t ON t.tgrelid = lineage.oid
JOIN pg_proc p ON p.oid = t.tgfoid
WHERE t.tgtype & 7 = 7 -- FOR EACH ROW, BEFORE, INSERT
	AND NOT t.tgisinternal
	AND t.tgparentid = 0
	AND t.tgenabled IN ('O', 'A')
ORDER BY t.tgrelid, t.tgname
LIMIT 1000`

func readTriggers(ctx context.Context, tx pgx.Tx, oid uint32) ([]trigger, error) {
	return collect[trigger](ctx, tx, fmt.Sprintf(triggersSQL, oid))
}

// triggers warns of one that puts something else into the order column than the
// default would. clock_timestamp() is as good there: the table is locked by then.
func (e *examination) triggers(l *layout) {
	column := e.config.Columns.CreatedAt
	if e.config.Order == ID {
		column = e.config.Columns.ID
	}
	parts, _ := parseName(column)
	for _, t := range e.cat.triggers {
		value, ok := assigned(t.Source, parts[0])
		if !ok || e.config.Order == CreatedAt && afterLock.MatchString(strings.ToLower(value)) {
			continue
		}
		e.warn(fmt.Sprintf("DROP TRIGGER %s ON %s, or let its function leave the column alone", pgx.Identifier{t.Name}.Sanitize(), t.Table),
			"trigger %s of %s sets column %s to %s, whatever its default says: a value below what was delivered is passed over", t.Name, t.Table, parts[0], value)
	}
}

// assigned finds what a PL/pgSQL function assigns to a column of NEW. What it does
// by other means is not seen.
func assigned(source, column string) (value string, ok bool) {
	name := regexp.QuoteMeta(column)
	assignment := regexp.MustCompile(`(?i)(?:^|;|\b(?:begin|then|else|loop)\b)\s*new\s*\.\s*(?:` + name + `|"` + name + `")\s*:?=\s*([^;]+);`)
	m := assignment.FindStringSubmatch(comments.ReplaceAllString(source, " "))
	if m == nil {
		return "", false
	}
	return strings.Join(strings.Fields(m[1]), " "), true
}

var comments = regexp.MustCompile(`--[^\n]*|(?s:/\*.*?\*/)`)
