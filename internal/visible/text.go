package visible

import (
	"fmt"
	"strings"
	"unicode"
)

// Hidden reports whether a character has an effect other than to be seen.
func Hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// Text returns a text for people, of which others wrote a part, with hidden characters escaped. Line breaks and tabs
// stay, since our own texts have them.
func Text(text string) string {
	return escape(text, func(r rune) bool { return Hidden(r) && r != '\n' && r != '\t' })
}

// Line returns a text that others wrote, as a part of a line: hidden characters, line breaks too, become spaces.
func Line(text string) string {
	visible := strings.Map(func(r rune) rune {
		if Hidden(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(visible), " ")
}

// Inline returns a text for people in one line: Text without line breaks and tabs.
func Inline(text string) string { return escape(text, Hidden) }

// Indented returns Text with each line but the first one indented, so that a line break in the text does not begin a
// line of its own.
func Indented(text string) string {
	return strings.ReplaceAll(Text(text), "\n", "\n    ")
}

func escape(text string, escaped func(rune) bool) string {
	var b strings.Builder
	for _, r := range text {
		if escaped(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
