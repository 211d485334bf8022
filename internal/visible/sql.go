package visible

import (
	"fmt"
	"regexp"
	"strings"
)

var quotation = regexp.MustCompile(`"(?:[^"]|"")*"|'(?:[^']|'')*'`)

// SQL returns a command in which the quoted names and literals with hidden characters are spelled U&"…" and U&'…',
// which means the same to PostgreSQL. So none of them ends a line: psql could take the next line for a command of its
// own. Line breaks between them stay.
func SQL(command string) string {
	if !strings.ContainsFunc(command, Hidden) {
		return command
	}
	return quotation.ReplaceAllStringFunc(command, func(quoted string) string {
		if !strings.ContainsFunc(quoted, Hidden) {
			return quoted
		}
		return escaped(quoted)
	})
}

// escaped spells a quoted name or literal with escapes.
func escaped(quoted string) string {
	var b strings.Builder
	b.WriteString("U&")
	for _, r := range quoted {
		switch {
		case Hidden(r):
			fmt.Fprintf(&b, `\+%06X`, r)
		case r == '\\':
			b.WriteString(`\\`)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
