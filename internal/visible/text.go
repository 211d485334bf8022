package visible

import (
	"fmt"
	"strings"
	"unicode"
)

// Hidden reports whether a character does something else than to be seen.
func Hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// Text is a text for people, of which others wrote a part: hidden characters are
// escaped. Line breaks and tabs stay, since our own texts have them.
func Text(text string) string {
	return escape(text, func(r rune) bool { return Hidden(r) && r != '\n' && r != '\t' })
}

// Line is a text that others wrote, as a part of a line: hidden characters, line
// breaks too, become spaces.
func Line(text string) string {
	visible := strings.Map(func(r rune) rune {
		if Hidden(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(visible), " ")
}

// Inline is a text for people that has one line: Text without line breaks and tabs.
func Inline(text string) string { return escape(text, Hidden) }

// Indented is Text with each line but the first one moved to the right, so that no
// line break within begins a line of its own.
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
