package fold

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Text folds a line of text at spaces, so that it is not wider than the width. Each further line begins with the
// indent. Text breaks no command in backquotes, and no SQL that begins the line or follows a colon: people paste these.
// So a line may be wider if its first part is. A width of 0 folds nothing. Line breaks in the text stay, and the line
// after one begins anew.
func Text(text string, width int, indent string) string {
	if width <= 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = foldLine(line, width, indent)
	}
	return strings.Join(lines, "\n")
}

// After folds a text after a head, which is not folded. Each further line begins under the first word of the text.
func After(head, text string, width int) string {
	column := ansi.StringWidth(head)
	if width > 0 {
		width = max(width-column, 1)
	}
	return head + strings.ReplaceAll(Text(text, width, ""), "\n", "\n"+strings.Repeat(" ", column))
}

func foldLine(line string, width int, indent string) string {
	if ansi.StringWidth(line) <= width {
		return line
	}
	var b strings.Builder
	begin := line[:len(line)-len(strings.TrimLeft(line, " "))]
	b.WriteString(begin)
	column, fresh := len(begin), true
	for _, part := range parts(line[len(begin):]) {
		size := ansi.StringWidth(part)
		switch {
		case fresh:
		case column+1+size <= width:
			b.WriteByte(' ')
			column++
		default:
			b.WriteString("\n" + indent)
			column = len(indent)
		}
		b.WriteString(part)
		column, fresh = column+size, false
	}
	return b.String()
}

// verbs begin the SQL that our texts propose.
var verbs = regexp.MustCompile(`^(ALTER|ANALYZE|COMMIT PREPARED|CREATE|DELETE FROM|DROP|GRANT|INSERT INTO|REASSIGN|REINDEX|REVOKE|ROLLBACK|SELECT|SET|TRUNCATE|UPDATE|VACUUM|WITH) `)

// SQL reports whether a text begins with SQL.
func SQL(text string) bool { return verbs.MatchString(text) }

// parts splits a line where it may be folded.
func parts(line string) []string {
	var all []string
	before := ":" // at the start of the line, as after a colon
	for line != "" {
		n := whole(line, before)
		part := line[:n]
		all = append(all, part)
		line = strings.TrimLeft(line[n:], " ")
		before = part
	}
	return all
}

// whole returns the length of the first part of a text: SQL, or what comes before the next space that is in no command
// in backquotes and in no quoted value.
func whole(text, before string) int {
	if SQL(text) && (strings.HasSuffix(before, ":") || strings.HasSuffix(before, ";")) {
		return statement(text)
	}
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == ' ':
			return i
		case text[i] == '`':
			i += command(text, i)
		case strings.HasPrefix(text[i:], "='"):
			i += 1 + strings.IndexByte(text[i+2:], '\'') + 1 // to the closing quote; if there is none, to the first one
		}
	}
	return len(text)
}

// command returns how far the closing backquote is from the one at i; 0 if that one opens no command. Errors may hold
// lone backquotes. So one that opens comes before a command and not after a word, and one that closes the reverse.
func command(text string, i int) int {
	if i > 0 && letter(text[i-1]) || i+1 == len(text) || text[i+1] == ' ' {
		return 0
	}
	for end := i + 2; end < len(text); end++ {
		if text[end] == '`' && text[end-1] != ' ' && (end+1 == len(text) || !letter(text[end+1])) {
			return end - i
		}
	}
	return 0
}

func letter(c byte) bool {
	return c >= utf8.RuneSelf || unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c))
}

// word returns the length of what comes before the next space.
func word(text string) int {
	if at := strings.IndexByte(text, ' '); at >= 0 {
		return at
	}
	return len(text)
}

// statement returns the length of the SQL at the start of a text: up to a semicolon, or to the end of its sentence.
func statement(text string) int {
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == ';':
			return i + 1 + word(text[i+1:])
		case (c == '.' || c == ',') && strings.HasPrefix(text[i+1:], " ") && ends(text[i+2:]):
			return i + 1
		}
	}
	return len(text)
}

// ends reports whether what follows a full stop or a comma is a sentence again, and not SQL.
func ends(rest string) bool {
	for _, next := range []string{"If ", "The ", "In ", "It ", "as ", "then ", "with the "} {
		if strings.HasPrefix(rest, next) {
			return true
		}
	}
	return false
}
