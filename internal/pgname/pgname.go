package pgname

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxBytes is how much of a name PostgreSQL keeps. It cuts the rest off silently, so a longer name might mean another
// table.
const MaxBytes = 63

// Parse reads a name, possibly with a schema, as SQL does: parts are separated by dots, folded to lower case, or taken
// literally between double quotes. It returns one or two parts, as the catalog has them.
func Parse(text string) ([]string, error) {
	if text == "" {
		return nil, errors.New("the name is empty")
	}
	var parts []string
	for rest := text; ; {
		part, after, err := parsePart(rest)
		if err != nil {
			return nil, fmt.Errorf("name %s: %w", text, err)
		}
		if err := Check(part); err != nil {
			return nil, err
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

// Check returns the reason why no object of the catalog can have the name part.
func Check(part string) error {
	switch {
	case part == "":
		return errEmpty
	case !utf8.ValidString(part):
		return fmt.Errorf("name %q is not UTF-8", part)
	case strings.ContainsRune(part, 0):
		return fmt.Errorf("name %q has a NUL, which PostgreSQL refuses", part)
	case len(part) > MaxBytes:
		return fmt.Errorf("name %q has %d bytes, and PostgreSQL keeps only %d: use the name as the catalog has it", part, len(part), MaxBytes)
	default:
		return nil
	}
}

var errEmpty = errors.New("a part is empty")

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
		return "", "", errEmpty
	}
	for _, r := range part {
		if r != '_' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r < 0x80 {
			return "", "", fmt.Errorf("%q needs double quotes around the part that it is in", r)
		}
	}
	return Fold(part), after, nil
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
			return "", "", errEmpty
		}
		if after != "" && after[0] != '.' {
			return "", "", errors.New("a dot must follow a closing quote")
		}
		return part, after, nil
	}
	return "", "", errors.New("a double quote is not closed")
}

// Fold folds as PostgreSQL does in a multi-byte encoding: only A to Z.
func Fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
