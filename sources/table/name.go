package table

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// maxNameBytes is how much of a name PostgreSQL keeps. It cuts the rest off silently, so a longer name might mean
// another table.
const maxNameBytes = 63

// parseName reads a possibly qualified name as SQL does: parts are separated by
// dots, folded to lower case, or taken literally between double quotes.
func parseName(text string) ([]string, error) {
	if text == "" {
		return nil, errors.New("the name is empty")
	}
	var parts []string
	for rest := text; ; {
		part, after, err := parsePart(rest)
		if err != nil {
			return nil, fmt.Errorf("name %s: %w", text, err)
		}
		if len(part) > maxNameBytes {
			return nil, fmt.Errorf("name %q has %d bytes, and PostgreSQL keeps only %d: use the name as the catalog has it", part, len(part), maxNameBytes)
		}
		parts = append(parts, part)
		if after == "" {
			break
		}
		rest = after[1:]
	}
	if len(parts) > 2 {
		return nil, fmt.Errorf("name %s has more than a schema and a name", text)
	}
	return parts, nil
}

// qualify writes a name with its schema. It adds no quotes where none are needed: messages show the name, and people
// copy it into their file.
func qualify(schema, name string) string {
	plain := schema + "." + name
	if parts, err := parseName(plain); err != nil || !slices.Equal(parts, []string{schema, name}) {
		return pgx.Identifier{schema, name}.Sanitize()
	}
	return plain
}

// parsePart reads one part, and returns the rest: "" or a text that begins with a dot.
func parsePart(text string) (part, after string, err error) {
	if strings.HasPrefix(text, `"`) {
		return parseQuoted(text)
	}
	part, after = text, ""
	if i := strings.IndexByte(text, '.'); i >= 0 {
		part, after = text[:i], text[i:]
	}
	if part == "" {
		return "", "", errors.New("a part is empty")
	}
	for _, r := range part {
		if r != '_' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r < 0x80 {
			return "", "", fmt.Errorf("%q needs double quotes around the part that it is in", r)
		}
	}
	return foldASCII(part), after, nil
}

func parseQuoted(text string) (part, after string, err error) {
	for i := 1; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		if i+1 < len(text) && text[i+1] == '"' {
			i++
			continue
		}
		part, after = strings.ReplaceAll(text[1:i], `""`, `"`), text[i+1:]
		if part == "" {
			return "", "", errors.New("a part is empty")
		}
		if after != "" && after[0] != '.' {
			return "", "", errors.New("a dot must follow a closing quote")
		}
		return part, after, nil
	}
	return "", "", errors.New("a double quote is not closed")
}

// foldASCII folds as PostgreSQL does in a multi-byte encoding: only A to Z.
func foldASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
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
