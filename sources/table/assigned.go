package table

import (
	"slices"
	"strings"
	"unicode"
)

// puts lists the values that a trigger's function puts into a column of NEW.
type puts struct {
	values []string // as the source has them
	unread []string // parts that may put in something that cannot be read
}

// assigned finds everything that a PL/pgSQL function may put into a column of NEW. A part that names NEW, and is not
// known only to read it, counts as unread. So does a returned row that is not NEW.
func assigned(source, column string) puts {
	tokens, ok := tokenize(source)
	if !ok {
		return puts{unread: []string{"its text"}}
	}
	f := function{source: source, tokens: tokens, column: column}
	for i := range tokens {
		f.look(i)
	}
	return f.puts
}

// function is a function that is read token by token.
type function struct {
	source string
	tokens []token
	column string
	start  int // of the statement that the token is in
	puts   puts
}

// at returns a token; past the end it returns a semicolon.
func (f *function) at(i int) token {
	if i < 0 || i >= len(f.tokens) {
		return token{kind: ';'}
	}
	return f.tokens[i]
}

// end returns the end of the statement that holds a token.
func (f *function) end(i int) int {
	for f.at(i).kind != ';' {
		i++
	}
	return i
}

func (f *function) unread(from, to int) {
	text := show(f.source, f.tokens[from:to])
	if !slices.Contains(f.puts.unread, text) {
		f.puts.unread = append(f.puts.unread, text)
	}
}

// look takes note of one token.
func (f *function) look(i int) {
	before := f.at(i - 1)
	if before.kind == ';' || before.operator(">>") || before.word("begin", "then", "else", "loop", "declare") {
		f.start = i
	}
	switch t := f.tokens[i]; {
	case t.word("return"):
		f.returns(i)
	case t.word("into") && !before.word("insert", "merge"):
		first := i + 1
		if f.at(first).word("strict") {
			first++
		}
		f.targets(first, func(from, to int) {
			f.puts.values = append(f.puts.values, show(f.source, f.tokens[from:to])+" (INTO)")
		})
	case t.word("for", "foreach"):
		f.targets(i+1, func(from, to int) { f.unread(i, to) })
	case i == f.start && t.kind == tokenWord:
		f.statement(i)
	}
}

// statement takes note of the beginning of a statement.
func (f *function) statement(i int) {
	to, part := f.name(i)
	switch {
	case part != 0 && f.at(to).operator(":=", "="):
		value := show(f.source, f.tokens[to+1:f.end(to)])
		if part == wholeRow {
			value += " (the whole row)"
		}
		f.puts.values = append(f.puts.values, value)
	case f.at(i).word("call", "get"):
		for j := i; j < f.end(i); j++ {
			if _, part := f.name(j); part != 0 {
				f.unread(i, f.end(i))
			}
		}
	}
}

// targets calls found for each name of a list that is NEW, or its column.
func (f *function) targets(i int, found func(from, to int)) {
	for {
		to, part := f.name(i)
		if part != 0 {
			found(i, to)
		}
		if to == i || f.at(to).kind != ',' {
			return
		}
		i = to + 1
	}
}

// The parts of NEW that a name may mean.
const (
	theColumn = 1 + iota
	wholeRow
)

// name returns where the name that begins at a token ends, and which part of NEW it is; 0 if it is none. The name of
// the block or of the function may come first.
func (f *function) name(i int) (to, part int) {
	var words []string
	for f.at(i).kind == tokenWord {
		words = append(words, f.at(i).text)
		i++
		if f.at(i).kind != '.' || f.at(i+1).kind != tokenWord {
			break
		}
		i++
	}
	row := slices.Index(words, "new")
	switch {
	case row < 0:
		return i, 0
	case row == len(words)-1:
		return i, wholeRow
	case words[row+1] == f.column:
		return i, theColumn
	default:
		return i, 0
	}
}

// unchanged are words from which an expression can only make NEW, OLD or NULL.
var unchanged = []string{"new", "old", "null", "coalesce", "case", "when", "then", "else", "end", "tg_op", "is", "not", "and", "or"}

// returns takes note of a RETURN: a row that is not NEW may hold anything.
func (f *function) returns(i int) {
	end := f.end(i)
	for j := i + 1; j < end; j++ {
		if t := f.at(j); t.kind == '.' || t.kind == tokenWord && !t.word(unchanged...) {
			f.unread(i, end)
			return
		}
	}
}

// updates finds the tables, without their schemas, whose column a PL/pgSQL function sets with UPDATE, as far as its
// text shows it. unread reports that the text may hold another such UPDATE where it cannot be read: in what EXECUTE
// runs, or in all of a text with a quote or a comment that does not end.
func updates(source, column string) (tables []string, unread bool) {
	tokens, ok := tokenize(source)
	f := function{source: source, tokens: tokens}
	executes, hidden, into := false, false, ""
	for i, t := range tokens {
		switch {
		case t.kind == ';':
			into = ""
		case t.word("into"):
			into = f.tableAt(i + 1) // of an INSERT or a MERGE, whose UPDATE names no table
		case t.word("execute"):
			executes = true
		case t.kind == tokenString:
			hidden = hidden || hidesUpdate(source[t.from:t.to], column)
		case t.word("update"):
			table := f.tableAt(i + 1)
			if table == "set" {
				table = into
			}
			if table != "" && f.sets(i+1, column) {
				tables = append(tables, table)
			}
		}
	}
	return slices.Compact(tables), executes && hidden || !ok && hidesUpdate(source, column)
}

// tableAt returns the name that begins at a token, without a schema.
func (f *function) tableAt(i int) string {
	for f.at(i).word("only") || f.at(i).kind == tokenWord && f.at(i+1).kind == '.' {
		i++
		if f.at(i).kind == '.' {
			i++
		}
	}
	return f.at(i).text
}

// sets reports whether the SET of the UPDATE before a token sets a column.
func (f *function) sets(i int, column string) bool {
	set := false
	for j := i; j < f.end(i) && !f.at(j).word("returning"); j++ {
		next := f.at(j + 1)
		switch {
		case f.at(j).word("set"):
			set = true
		case set && f.at(j).word(column) && f.at(j-1).kind != '.' && !f.at(j-1).operator("=") &&
			(next.operator("=") || next.kind == '=' || next.kind == ',' || next.kind == ')'):
			return true
		}
	}
	return false
}

// hidesUpdate reports whether a text may be an UPDATE that sets a column.
func hidesUpdate(text, column string) bool {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return len(words) > 1 && slices.Contains(words, "update") && slices.Contains(words, strings.ToLower(column))
}
