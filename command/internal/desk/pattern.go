package desk

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// maxPattern bounds a pattern.
const maxPattern = 300

// pattern is an error without what differs between two errors of one cause: numbers, ids and quoted texts. A word with a
// digit is an id, unless it is a name such as utf8, or a code of HTTP or SQL: two codes are two causes.
func pattern(text string) string {
	var b strings.Builder
	for at := 0; at < len(text) && b.Len() <= maxPattern; {
		end := at + wordLen(text[at:])
		switch quoted := quotedLen(text[at:]); {
		case quoted > 0:
			end = at + quoted
			b.WriteString("…")
		case end == at:
			_, size := utf8.DecodeRuneInString(text[at:])
			end = at + size
			b.WriteString(text[at:end])
		case strings.ContainsFunc(text[at:end], unicode.IsNumber) && !knownName.MatchString(text[at:end]) && !isCode(text, at, end):
			b.WriteString("#")
		default:
			b.WriteString(text[at:end])
		}
		at = end
	}
	return visible.Start(b.String(), maxPattern)
}

// quotedLen is the length of the quoted text, or of the hidden secret, that a text begins with; 0 if there is none.
func quotedLen(text string) int {
	if strings.HasPrefix(text, "[…]") {
		return len("[…]")
	}
	if strings.IndexByte("\"'`", text[0]) < 0 {
		return 0
	}
	inside := strings.IndexByte(text[1:], text[0])
	if inside < 0 {
		return 0
	}
	return inside + 2
}

// wordLen is the length of the word that a text begins with; 0 if there is none. A hyphen within a word is part of it.
func wordLen(text string) int {
	end := 0
	for at, r := range text {
		switch {
		case unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_':
			end = at + utf8.RuneLen(r)
		case r != '-' || end == 0 || end < at: // a hyphen between two others, or before the word, is not part of it
			return end
		}
	}
	return end
}

var (
	// knownName is a short word with one digit, or a longer name of an encoding, a type or an algorithm.
	knownName = regexp.MustCompile(`^(?i)(?:[a-z]{1,4}-?[0-9]|x509|oauth2|ed25519|(?:utf|base|sha|aes|hs|rs|es|ps|u?int|float)-?(?:8|16|32|64|128|192|224|256|384|512))$`)

	status       = regexp.MustCompile(`^[1-5][0-9]{2}$`)
	beforeStatus = regexp.MustCompile(`(?i)(?:answered|status|code|http(?:/[0-9.]{1,3})?)\W{1,3}$`)

	sqlState       = regexp.MustCompile(`^[0-9A-Z]{5}$`)
	beforeSQLState = regexp.MustCompile(`SQLSTATE\W{1,2}$`)

	version       = regexp.MustCompile(`^[0-9]$`)
	beforeVersion = regexp.MustCompile(`HTTP/(?:[0-9]\.)?$`)
)

// isCode reports whether the word between at and end is a status of HTTP, its version, or an SQLSTATE.
func isCode(text string, at, end int) bool {
	word, before := text[at:end], text[max(0, at-20):at]
	if status.MatchString(word) && (beforeStatus.MatchString(before) || strings.HasSuffix(before, "(") && strings.HasPrefix(text[end:], ")")) {
		return true
	}
	return sqlState.MatchString(word) && beforeSQLState.MatchString(before) || version.MatchString(word) && beforeVersion.MatchString(before)
}
