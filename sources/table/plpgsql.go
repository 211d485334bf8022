package table

import (
	"regexp"
	"slices"
	"strings"
)

// token is a word, a string, a number or an operator of a PL/pgSQL function. Comments are not tokens.
type token struct {
	kind rune   // one of the constants below, or the character itself
	text string // a word as the server folds it, or an operator
	from int    // in the source
	to   int
}

// Kinds of tokens that are not a single character.
const (
	tokenWord rune = -1 - iota
	tokenString
	tokenNumber
	tokenOperator
)

func (t token) word(words ...string) bool {
	return t.kind == tokenWord && slices.Contains(words, t.text)
}

func (t token) operator(operators ...string) bool {
	return t.kind == tokenOperator && slices.Contains(operators, t.text)
}

var (
	blankText    = regexp.MustCompile(`^(?:\s+|--[^\n]*)`)
	wordText     = regexp.MustCompile(`^[A-Za-z_\x{80}-\x{10FFFF}][A-Za-z0-9_$\x{80}-\x{10FFFF}]*`)
	numberText   = regexp.MustCompile(`^[0-9]+`)
	quotedText   = regexp.MustCompile(`^"(?:[^"]|"")*"`)
	stringText   = regexp.MustCompile(`^'(?:[^']|'')*'`)
	escapedText  = regexp.MustCompile(`^[eE]'(?:[^'\\]|''|\\[\s\S])*'`)
	dollarText   = regexp.MustCompile(`^\$(?:[A-Za-z_\x{80}-\x{10FFFF}][A-Za-z0-9_\x{80}-\x{10FFFF}]*)?\$`)
	operatorText = regexp.MustCompile(`^(?::=|::|[-+*/<>=~!@#%^&|?` + "`" + `]+)`)
)

// tokenize splits a function into tokens, as the server does. It reports false for a function that it cannot be sure
// of.
func tokenize(source string) (tokens []token, ok bool) {
	for at := 0; at < len(source); {
		rest := source[at:]
		if blank := blankText.FindString(rest); blank != "" {
			at += len(blank)
			continue
		}
		if strings.HasPrefix(rest, "/*") {
			n := commentLength(rest)
			if n == 0 {
				return nil, false
			}
			at += n
			continue
		}
		t, n := nextToken(rest)
		if n == 0 {
			return nil, false
		}
		t.from, t.to = at, at+n
		tokens = append(tokens, t)
		at += n
	}
	return tokens, true
}

// nextToken returns the token at the beginning of a text, and its length; 0 if that is not certain.
func nextToken(rest string) (token, int) {
	if text := escapedText.FindString(rest); text != "" {
		return token{kind: tokenString}, len(text)
	}
	if unicode := strings.ToLower(rest[:min(3, len(rest))]); unicode == `u&"` || unicode == "u&'" {
		return token{}, 0
	}
	if text := wordText.FindString(rest); text != "" {
		return token{kind: tokenWord, text: strings.ToLower(text)}, len(text)
	}
	if text := quotedText.FindString(rest); text != "" {
		return token{kind: tokenWord, text: strings.ReplaceAll(text[1:len(text)-1], `""`, `"`)}, len(text)
	}
	if text := stringText.FindString(rest); text != "" {
		if strings.HasSuffix(text, `\'`) { // without standard_conforming_strings it goes on
			return token{}, 0
		}
		return token{kind: tokenString}, len(text)
	}
	if text := dollarText.FindString(rest); text != "" {
		end := strings.Index(rest[len(text):], text)
		if end < 0 {
			return token{}, 0
		}
		return token{kind: tokenString}, end + 2*len(text)
	}
	if text := numberText.FindString(rest); text != "" {
		return token{kind: tokenNumber}, len(text)
	}
	if text := operatorOf(rest); text != "" {
		return token{kind: tokenOperator, text: text}, len(text)
	}
	if strings.ContainsRune(`'"`, rune(rest[0])) {
		return token{}, 0
	}
	return token{kind: rune(rest[0])}, 1
}

// operatorOf returns the operator at the beginning of a text. It ends before a comment, and before the sign of a
// number.
func operatorOf(rest string) string {
	text := operatorText.FindString(rest)
	for _, comment := range []string{"--", "/*"} {
		if i := strings.Index(text, comment); i > 0 {
			text = text[:i]
		}
	}
	if !strings.ContainsAny(text, "~!@#%^&|`?") {
		for len(text) > 1 && strings.ContainsAny(text[len(text)-1:], "+-") {
			text = text[:len(text)-1]
		}
	}
	return text
}

// commentLength returns the length of the comment at the beginning of a text; comments nest. 0 if it has no end.
func commentLength(rest string) int {
	depth := 0
	for i := 0; i+1 < len(rest); i++ {
		switch rest[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
		}
		if depth == 0 {
			return i + 1
		}
	}
	return 0
}

// show prints tokens as they are in the source, on one line and without comments.
func show(source string, tokens []token) string {
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 && tokens[i-1].to < t.from {
			b.WriteByte(' ')
		}
		b.WriteString(strings.Join(strings.Fields(source[t.from:t.to]), " "))
	}
	return b.String()
}
