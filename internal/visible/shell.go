package visible

import (
	"regexp"
	"strings"
)

var harmless = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// Shell is a word of a command that is proposed, as a shell takes it.
func Shell(word string) string {
	if harmless.MatchString(word) && !strings.HasPrefix(word, "-") {
		return word
	}
	return Quoted(word)
}

// Quoted is Shell with quotes in any case. Hidden characters are escaped, line breaks
// too: of a name that has them the command finds nothing, and does no harm.
func Quoted(word string) string {
	return "'" + strings.ReplaceAll(Inline(word), "'", `'\''`) + "'"
}
