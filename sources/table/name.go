package table

import (
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgname"
)

// parseName reads a name of the configuration, as the program does everywhere.
func parseName(text string) ([]string, error) { return pgname.Parse(text) }

// qualify writes a name with its schema. It adds no quotes where none are needed: messages show the name, and people
// copy it into their file.
func qualify(schema, name string) string {
	plain := schema + "." + name
	if parts, err := parseName(plain); err != nil || !slices.Equal(parts, []string{schema, name}) {
		return pgx.Identifier{schema, name}.Sanitize()
	}
	return plain
}

// ColumnName returns the name of a column as the catalog has it, from its name as in SQL.
func ColumnName(text string) (string, error) {
	parts, err := parseName(text)
	if err == nil && len(parts) != 1 {
		err = fmt.Errorf("column %q: a column has no qualifier", text)
	}
	if err != nil {
		return "", err
	}
	return parts[0], nil
}
