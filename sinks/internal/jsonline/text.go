package jsonline

import (
	"slices"
	"unicode/utf8"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// text is a type that a JSON string is made from.
type text interface{ ~string | ~[]byte }

const hex = "0123456789abcdef"

// appendText appends a JSON string as encoding/json spells it, without the escapes for HTML, and without the copies
// that encoding/json makes on the way.
func appendText[T text](line []byte, s T) []byte {
	line = append(line, '"')
	done := 0
	for i := 0; i < len(s); {
		if isPlain(s[i]) {
			i++
			continue
		}
		form, n := next(s[i:])
		if form == plain {
			i += n
			continue
		}
		line = append(line, s[done:i]...)
		switch form {
		case quoted:
			line = append(line, '\\', short(s[i]))
		case control:
			line = append(line, '\\', 'u', '0', '0', hex[s[i]>>4], hex[s[i]&0xF])
		case invalid:
			line = append(line, `\ufffd`...)
		case breaking:
			line = append(line, `\u202`...)
			line = append(line, hex[s[i+2]&0xF])
		}
		i += n
		done = i
	}
	line = append(line, s[done:]...)
	return append(line, '"')
}

// textLen returns how many bytes appendText appends.
func textLen[T text](s T) int {
	size := len(s) + len(`""`)
	for i := 0; i < len(s); {
		if isPlain(s[i]) {
			i++
			continue
		}
		form, n := next(s[i:])
		switch form {
		case quoted:
			size++
		case control, invalid, breaking:
			size += len(`\u0000`) - n
		}
		i += n
	}
	return size
}

// form is how a character is written in a string.
type form int

const (
	plain    form = iota
	quoted        // with a backslash before it, or before a letter that stands for it
	control       // by its number
	invalid       // not a character
	breaking      // U+2028 and U+2029, which end a line of JavaScript
)

// isPlain reports whether a byte is a character that is written unchanged.
func isPlain(c byte) bool { return c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' }

// next returns the form of the first character, and how many bytes it has.
func next[T text](s T) (form, int) {
	switch c := s[0]; {
	case c >= utf8.RuneSelf:
	case isPlain(c):
		return plain, 1
	case short(c) != 0:
		return quoted, 1
	default:
		return control, 1
	}
	head := s[:min(len(s), utf8.UTFMax)]
	switch c, n := utf8.DecodeRuneInString(string(head)); {
	case c == utf8.RuneError && n == 1:
		return invalid, 1
	case c == '\u2028' || c == '\u2029':
		return breaking, n
	default:
		return plain, n
	}
}

// short returns the character after the backslash; 0 if there is no such spelling.
func short(c byte) byte {
	switch c {
	case '"', '\\':
		return c
	case '\b':
		return 'b'
	case '\f':
		return 'f'
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	case '\t':
		return 't'
	}
	return 0
}

// Object returns an object of texts, sorted by name, in memory of its size.
func Object(texts map[string]string) []byte {
	return appendHeaders(make([]byte, 0, headersLen(texts)), texts)
}

// headersLen returns how many bytes appendHeaders appends.
func headersLen(headers map[string]string) int {
	size := len("{}")
	for name, value := range headers {
		size += textLen(name) + textLen(value) + len(":,")
	}
	return size - min(1, len(headers))
}

// appendHeaders appends an object, sorted by name.
func appendHeaders(line []byte, headers map[string]string) []byte {
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	line = append(line, '{')
	for i, name := range names {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(appendText(line, name), ':')
		line = appendText(line, headers[name])
	}
	return append(line, '}')
}

// appendCompact appends JSON without the white space between its tokens. The tokens stay as they are.
func appendCompact(line, valid []byte) []byte {
	eachToken(valid, func(run []byte) { line = append(line, run...) })
	return line
}

// eachToken passes on the text between runs of white space.
func eachToken(valid []byte, take func(run []byte)) {
	from, inside := 0, false
	for i := 0; i < len(valid); i++ {
		switch c := valid[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case !inside && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			take(valid[from:i])
			from = i + 1
		}
	}
	take(valid[from:])
}

// atMost returns a size that the line does not exceed, found without looking at its bytes.
func atMost(d processor.Delivery) int {
	texts := len(d.Process) + len(d.Origin) + len(d.Position) + 2*len(d.ID) + len(d.Table) + len(d.Key) + len(d.Type) + len(d.Payload)
	for name, value := range d.Headers {
		texts += len(name) + len(value) + 1
	}
	return 6*texts + 512
}
