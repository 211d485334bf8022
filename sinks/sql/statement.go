package sql

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// statement is one SQL command with $n in the place of @name.
type statement struct {
	sql    string
	params []int // params[i] is the index in arguments of $(i+1)
	pieces []piece
}

// piece means that from at on, sql comes from source[from:].
type piece struct{ at, from int }

// from returns the place in the source that a byte of sql comes from.
func (s statement) from(at int) int {
	i := sort.Search(len(s.pieces), func(i int) bool { return s.pieces[i].at > at }) - 1
	return s.pieces[i].from + at - s.pieces[i].at
}

// legend explains which argument each parameter is, since the server's messages name $1.
func (s statement) legend() string {
	names := make([]string, len(s.params))
	for i, a := range s.params {
		names[i] = fmt.Sprintf("$%d is @%s", i+1, arguments[a].name)
	}
	return strings.Join(names, ", ")
}

// place writes a position in the source for people: in characters, from 1.
func place(source string, offset int) string {
	before := source[:min(offset, len(source))]
	lineStart := strings.LastIndexByte(before, '\n') + 1
	return fmt.Sprintf("line %d, column %d", strings.Count(before, "\n")+1, utf8.RuneCountInString(before[lineStart:])+1)
}

// builder puts one statement together, token by token.
type builder struct {
	sql    strings.Builder
	params []int
	pieces []piece
	words  []string // the first two names, in upper case
	start  int      // offset of its first token in the source, if it has one
	empty  bool     // except for white space and comments
}

func newBuilder() *builder { return &builder{empty: true} }

// verbatim appends a token as it is.
func (b *builder) verbatim(source string, t token) {
	if t.kind == space && b.sql.Len() == 0 {
		return
	}
	if t.kind != space && t.kind != comment {
		if b.empty {
			b.start = t.start
		}
		b.empty = false
	}
	if t.kind == name && len(b.words) < 2 {
		b.words = append(b.words, strings.ToUpper(source[t.start:t.end]))
	}
	b.append(source[t.start:t.end], t.start)
}

// argument appends a parameter. One name is one parameter: then the server gives all its uses one type instead of
// guessing each.
func (b *builder) argument(index, from int) {
	b.empty = false
	n := slices.Index(b.params, index)
	if n < 0 {
		n = len(b.params)
		b.params = append(b.params, index)
	}
	b.append(fmt.Sprintf("$%d", n+1), from)
}

func (b *builder) append(text string, from int) {
	b.pieces = append(b.pieces, piece{b.sql.Len(), from})
	b.sql.WriteString(text)
}

func (b *builder) statement() statement {
	return statement{strings.TrimRight(b.sql.String(), " \t\n\v\f\r"), b.params, b.pieces}
}
