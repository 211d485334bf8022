package visible

import (
	"regexp"
	"strings"
)

var harmless = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// Shell writes a word of a proposed command in the form that a shell reads.
func Shell(word string) string {
	if harmless.MatchString(word) && !strings.HasPrefix(word, "-") {
		return word
	}
	return Quoted(word)
}

// Quoted is Shell with quotes in any case. It escapes hidden characters, line breaks too. If a name has such
// characters, the command finds nothing, and does no harm.
func Quoted(word string) string {
	return "'" + strings.ReplaceAll(Inline(word), "'", `'\''`) + "'"
}
