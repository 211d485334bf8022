package sql

import (
	"errors"
	"strings"
)

// kind is the meaning of a token to this package. PostgreSQL distinguishes more kinds.
type kind int

const (
	space     kind = iota
	comment        // -- and /* */
	quoted         // '…', E'…', $tag$…$tag$
	name           // identifiers, quoted or not, keywords and numbers
	operator       // a run of operator characters
	semicolon      // ;
	opening        // (
	closing        // )
	parameter      // $1
	other          // anything else, one byte
)

// token is source[start:end].
type token struct {
	kind       kind
	start, end int
}

// lexer cuts SQL into tokens as PostgreSQL's own lexer does, src/backend/parser/scan.l, with
// standard_conforming_strings on. The tokens put together are the source.
type lexer struct {
	source string
	pos    int
}

var errUnterminated = errors.New("is not ended")

// next returns the token at pos and moves past it.
func (l *lexer) next() (token, error) {
	start := l.pos
	kind, end, err := l.scan()
	l.pos = end
	return token{kind, start, end}, err
}

func (l *lexer) scan() (kind, int, error) {
	rest := l.source[l.pos:]
	switch c := rest[0]; {
	case isSpace(c):
		return space, l.skip(l.pos, isSpace), nil
	case strings.HasPrefix(rest, "--"):
		return comment, l.skip(l.pos, func(c byte) bool { return c != '\n' && c != '\r' }), nil
	case strings.HasPrefix(rest, "/*"):
		return l.blockComment()
	case c == '\'':
		return l.quote(quoted, l.pos, '\'')
	case c == '"':
		return l.quote(name, l.pos, '"')
	case c == '$':
		return l.dollar()
	case (c == 'e' || c == 'E') && strings.HasPrefix(rest[1:], "'"):
		return l.escapeString()
	case isNameStart(c):
		return name, l.skip(l.pos, isNamePart), nil
	case isDigit(c):
		return name, l.skip(l.pos, isDigit), nil
	case isOperator(c):
		return operator, l.operatorEnd(), nil
	default:
		return punctuation(c), l.pos + 1, nil
	}
}

func punctuation(c byte) kind {
	switch c {
	case ';':
		return semicolon
	case '(':
		return opening
	case ')':
		return closing
	default:
		return other
	}
}

// skip returns the end of the run of bytes, from pos on, that part accepts.
func (l *lexer) skip(pos int, part func(byte) bool) int {
	for pos < len(l.source) && part(l.source[pos]) {
		pos++
	}
	return pos
}

// blockComment finds the end of a comment; comments nest.
func (l *lexer) blockComment() (kind, int, error) {
	depth := 0
	for pos := l.pos; pos < len(l.source); {
		switch rest := l.source[pos:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			pos += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			pos += 2
			if depth == 0 {
				return comment, pos, nil
			}
		default:
			pos++
		}
	}
	return comment, len(l.source), errUnterminated
}

// quote finds the end of a token that begins with the mark at pos. A doubled mark stands for one inside. It needs no
// special care, since it reads as an end and a new beginning.
func (l *lexer) quote(kind kind, pos int, mark byte) (kind, int, error) {
	end := strings.IndexByte(l.source[pos+1:], mark)
	if end < 0 {
		return kind, len(l.source), errUnterminated
	}
	return kind, pos + 1 + end + 1, nil
}

// escapeString finds the end of E'…'. In it a backslash keeps a quote from ending it. It continues after a line
// break: E'a' ⏎ 'b\'c' is one string.
func (l *lexer) escapeString() (kind, int, error) {
	for pos := l.pos + len("E'"); pos < len(l.source); pos++ {
		switch l.source[pos] {
		case '\\':
			pos++
		case '\'':
			if strings.HasPrefix(l.source[pos+1:], "'") {
				pos++
			} else if next, ok := l.continuation(pos + 1); ok {
				pos = next
			} else {
				return quoted, pos + 1, nil
			}
		}
	}
	return quoted, len(l.source), errUnterminated
}

// continuation returns the quote that continues the string which has ended at pos, if there is one. Between them may
// only be white space and comments, with a line break among them.
func (l *lexer) continuation(pos int) (int, bool) {
	broken := false
	for pos < len(l.source) {
		switch c := l.source[pos]; {
		case isSpace(c):
			broken = broken || c == '\n' || c == '\r'
			pos++
		case strings.HasPrefix(l.source[pos:], "--"):
			pos = l.skip(pos, func(c byte) bool { return c != '\n' && c != '\r' })
		default:
			return pos, broken && c == '\''
		}
	}
	return pos, false
}

// dollar scans a token that begins with "$": a parameter, a string in dollar quotes, or neither.
func (l *lexer) dollar() (kind, int, error) {
	rest := l.source[l.pos+1:]
	if rest != "" && isDigit(rest[0]) {
		return parameter, l.skip(l.pos+1, isDigit), nil
	}
	tagEnd := l.pos + 1
	if rest != "" && isNameStart(rest[0]) {
		tagEnd = l.skip(tagEnd, func(c byte) bool { return isNamePart(c) && c != '$' })
	}
	if tagEnd == len(l.source) || l.source[tagEnd] != '$' {
		return other, l.pos + 1, nil
	}
	mark := l.source[l.pos : tagEnd+1]
	end := strings.Index(l.source[tagEnd+1:], mark)
	if end < 0 {
		return quoted, len(l.source), errUnterminated
	}
	return quoted, tagEnd + 1 + end + len(mark), nil
}

// operatorEnd returns the end of an operator; a comment ends it. Some operators cannot end in "+" or "-", which does
// not matter here.
func (l *lexer) operatorEnd() int {
	end := l.skip(l.pos, isOperator)
	for i := l.pos + 1; i < end; i++ {
		if rest := l.source[i:end]; strings.HasPrefix(rest, "--") || strings.HasPrefix(rest, "/*") {
			return i
		}
	}
	return end
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isNamePart(c byte) bool { return isNameStart(c) || isDigit(c) || c == '$' }

func isOperator(c byte) bool { return strings.IndexByte("~!@#^&|`?+-*/%<>=", c) >= 0 }
