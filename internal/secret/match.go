package secret

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// layers is how often an escape may be escaped itself.
	layers = 2
	// stepsPerByte bounds the search. After that many steps for each byte of a text, the search gives up, and the
	// rest is not quoted.
	stepsPerByte = 200
	// minPart is how much of a needle must be at the end of a text to be found.
	minPart = 6
	// minCore is the shortest piece of base64 for which the search looks.
	minCore = 5
)

// base64Cores returns the parts that the base64 of a text always has, wherever the text is in a longer one: at each
// of three places, in each of two alphabets.
func base64Cores(text string) (all []string) {
	for offset := range 3 {
		padded := append(make([]byte, offset), text...)
		encoded := base64.RawStdEncoding.EncodeToString(padded)
		first := (offset*8 + 5) / 6 // the first letter that depends only on the text
		last := len(padded) * 8 / 6 // the first letter after those
		if core := encoded[first:last]; len(core) >= minCore {
			all = append(all, core, strings.NewReplacer("+", "-", "/", "_").Replace(core))
		}
	}
	return all
}

func hexOf(text string) string { return hex.EncodeToString([]byte(text)) }

// search is a text in which the package looks for needles.
type search struct {
	text  string
	end   int                  // a needle that reaches it counts as cut off
	known [layers + 1][][]unit // by layer and place
	steps int                  // the number that is left
}

// newSearch returns a search in a text, or in the beginning of a long one.
func newSearch(text string) *search {
	end := len(text)
	if end > maxText+margin {
		text, end = text[:maxText+margin], maxText+margin-slack
	}
	s := &search{text: text, end: end, steps: stepsPerByte*len(text) + stepsPerByte}
	for layer := range s.known {
		s.known[layer] = make([][]unit, len(text))
	}
	return s
}

// match returns where a needle ends that begins at i; 0 if none does.
func (s *search) match(n needle, i int) int {
	c := s.text[i]
	if c == n.text[0] || n.kind == inHex && lower(c) == n.text[0] {
		return s.from(n, i, 0)
	}
	if isEscape(c) && slices.ContainsFunc(s.units(i, layers), func(u unit) bool { return n.takes(u.value, 0) >= 0 }) {
		return s.from(n, i, 0)
	}
	return 0
}

// from matches the rest of a needle from j on.
func (s *search) from(n needle, i, j int) int {
	if j >= len(n.text) {
		return i
	}
	if i >= s.end && j >= minPart {
		return i // the end of the text cuts it off
	}
	if i >= len(s.text) {
		return 0
	}
	if s.steps--; s.steps < 0 {
		return 0
	}
	for _, c := range s.units(i, layers) {
		if k := n.takes(c.value, j); k >= 0 {
			if end := s.from(n, c.next, k); end > 0 {
				return end
			}
		}
	}
	return 0
}

// takes returns where the needle goes on after a value; -1 if it does not.
func (n needle) takes(value string, j int) int {
	rest := n.text[j:]
	switch {
	case strings.HasPrefix(rest, value):
		return j + len(value)
	case n.kind == inHex && len(value) == 1 && lower(value[0]) == rest[0]:
		return j + 1
	case n.kind != plain && j > 0 && strings.Trim(value, " \t\r\n:") == "":
		return j // a line break
	default:
		return -1
	}
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// unit is one way to read the beginning of a text.
type unit struct {
	value string
	next  int
}

func isEscape(c byte) bool { return c == '%' || c == '\\' || c == '&' || c == '+' }

// units returns all ways to read the text at i, for that many layers of escapes.
func (s *search) units(i, layer int) []unit {
	layer = max(0, layer)
	if s.known[layer][i] == nil {
		s.known[layer][i] = s.spell(i, layer)
	}
	return s.known[layer][i]
}

func (s *search) spell(i, layer int) []unit {
	all := []unit{{s.text[i : i+1], i + 1}}
	if layer == 0 || !isEscape(s.text[i]) {
		return all
	}
	for _, lead := range s.units(i, layer-1) {
		var u unit
		switch lead.value {
		case "%":
			u = s.hexUnit(lead.next, layer-1)
		case "\\":
			u = s.backslash(lead.next, layer-1)
		case "&":
			u = s.entity(lead.next, layer-1)
		case "+":
			u = unit{" ", lead.next}
		}
		for _, u := range []unit{u, lead} {
			if u.next > 0 && !slices.Contains(all, u) { // duplicates would double the work each time
				all = append(all, u)
			}
		}
	}
	return all
}

// read returns n letters of an escape, which may be escaped themselves.
func (s *search) read(i, n, layer int) (string, int) {
	var b strings.Builder
	for range n {
		if i >= len(s.text) {
			return "", 0
		}
		all := s.units(i, layer)
		u := all[len(all)-1]
		b.WriteString(u.value)
		i = u.next
	}
	return b.String(), i
}

// hexUnit reads a byte of two hexadecimal digits.
func (s *search) hexUnit(i, layer int) unit { return s.byteUnit(i, 2, 16, layer) }

// byteUnit reads a byte of that many digits to a base.
func (s *search) byteUnit(i, digits, base, layer int) unit {
	code, next := s.read(i, digits, layer)
	n, err := strconv.ParseUint(code, base, 8)
	if next == 0 || err != nil {
		return unit{}
	}
	return unit{string([]byte{byte(n)}), next}
}

// backslash reads the escape after a backslash in JSON and similar languages.
func (s *search) backslash(i, layer int) unit {
	letter, next := s.read(i, 1, layer)
	if next == 0 {
		return unit{}
	}
	switch letter {
	case "u":
		if u := s.braced(next, layer); u.next > 0 {
			return u
		}
		return s.unicodeUnit(next, layer)
	case "x":
		return s.hexUnit(next, layer)
	}
	if u := s.byteUnit(i, 3, 8, layer); u.next > 0 {
		return u
	}
	if at := strings.Index("nrtbfav0", letter); at >= 0 {
		return unit{"\n\r\t\b\f\a\v\x00"[at : at+1], next}
	}
	return unit{letter, next}
}

// braced reads a character of up to six digits in braces.
func (s *search) braced(i, layer int) unit {
	letter, next := s.read(i, 1, layer)
	if letter != "{" {
		return unit{}
	}
	var digits string
	for len(digits) <= 6 {
		if letter, next = s.read(next, 1, layer); next == 0 || letter == "}" {
			break
		}
		digits += letter
	}
	n, err := strconv.ParseUint(digits, 16, 21)
	if letter != "}" || err != nil {
		return unit{}
	}
	return unit{string(rune(n)), next}
}

// unicodeUnit reads a character of four digits, or of twice four.
func (s *search) unicodeUnit(i, layer int) unit {
	code := func(i int) (rune, int) {
		digits, next := s.read(i, 4, layer)
		n, err := strconv.ParseUint(digits, 16, 32)
		if next == 0 || err != nil {
			return 0, 0
		}
		return rune(n), next
	}
	r, next := code(i)
	if next == 0 {
		return unit{}
	}
	if utf16.IsSurrogate(r) {
		lead, at := s.read(next, 2, 0)
		if lead != `\u` {
			lead, at = s.read(next, 2, layer)
		}
		second, end := code(at)
		if lead != `\u` || end == 0 {
			return unit{}
		}
		r, next = utf16.DecodeRune(r, second), end
	}
	return unit{string(utf8.AppendRune(nil, r)), next}
}

// maxEntity bounds the name of an entity of HTML.
const maxEntity = 12

// entity reads a character of HTML after its &.
func (s *search) entity(i, layer int) unit {
	name := "&"
	for range maxEntity {
		letter, next := s.read(i, 1, layer)
		if next == 0 {
			return unit{}
		}
		name, i = name+letter, next
		if letter != ";" {
			continue
		}
		if value := html.UnescapeString(name); value != name {
			return unit{value, i}
		}
		return unit{}
	}
	return unit{}
}
