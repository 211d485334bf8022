package visible

import "strings"

// Literal writes a text as a literal of a proposed command. A text with hidden characters becomes U&'…', which means
// the same to PostgreSQL and stays in its line: psql takes a line that begins with a backslash for a command of its
// own. Any other text with a backslash means the same wherever standard_conforming_strings is on.
func Literal(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if !strings.ContainsFunc(text, Hidden) {
		return quoted
	}
	return escaped(quoted)
}
