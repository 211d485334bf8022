package visible

import (
	"fmt"
	"regexp"
	"strings"
)

var quotedName = regexp.MustCompile(`"(?:[^"]|"")*"`)

// SQL is a command with quoted names, of which those with hidden characters are
// spelled U&"…", which means the same to PostgreSQL.
func SQL(command string) string {
	if !strings.ContainsFunc(command, Hidden) {
		return command
	}
	return quotedName.ReplaceAllStringFunc(command, func(name string) string {
		if !strings.ContainsFunc(name, Hidden) {
			return name
		}
		var b strings.Builder
		b.WriteString("U&")
		for _, r := range name {
			switch {
			case Hidden(r):
				fmt.Fprintf(&b, `\%04X`, r)
			case r == '\\':
				b.WriteString(`\\`)
			default:
				b.WriteRune(r)
			}
		}
		return b.String()
	})
}
