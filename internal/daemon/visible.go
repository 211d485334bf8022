package daemon

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Visible is a text for people, of which others wrote a part: what would move a terminal's cursor, or turn the direction
// in which it is read, is escaped. Line breaks and tabs stay, since our own texts have them.
func Visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r != '\n' && r != '\t' && hidden(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// hidden reports whether a character does something else than to be seen.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

var harmless = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// shell is a word of a command that is proposed, as a shell takes it.
func shell(word string) string {
	if harmless.MatchString(word) && !strings.HasPrefix(word, "-") {
		return word
	}
	return SingleQuoted(word)
}

// SingleQuoted is shell with quotes in any case.
func SingleQuoted(word string) string {
	return "'" + strings.ReplaceAll(Visible(word), "'", `'\''`) + "'"
}
