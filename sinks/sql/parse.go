package sql

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// parser cuts a source into statements and finds their arguments.
type parser struct {
	source     string
	current    *builder
	statements []statement
	open       []int // offsets of the parentheses that are not closed yet
	previous   token
	faults     []error
}

// parse returns the statements of a source, or all of its faults.
func parse(source string) ([]statement, error) {
	p := parser{source: source, current: newBuilder()}
	lexer := lexer{source: source}
	for lexer.pos < len(source) {
		t, err := lexer.next()
		if err != nil {
			p.fault(t.start, "what begins with %s %w", beginning(source[t.start:]), err)
			return nil, errors.Join(p.faults...)
		}
		if end := p.argument(t); end > 0 {
			t, lexer.pos = token{name, t.start, end}, end
		} else {
			p.token(t)
		}
		p.previous = t
	}
	p.end()
	if len(p.open) > 0 {
		p.fault(p.open[0], `the "(" is not closed`)
	}
	if len(p.statements) == 0 && len(p.faults) == 0 {
		p.fault(0, "there are only comments")
	}
	return p.statements, errors.Join(p.faults...)
}

// beginning returns at most two characters, without white space.
func beginning(text string) string {
	runes := []rune(text[:min(len(text), 2*utf8.UTFMax)])
	return strings.TrimSpace(string(runes[:min(len(runes), 2)]))
}

func (p *parser) fault(offset int, format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf(place(p.source, offset)+": "+format, args...))
}

func (p *parser) token(t token) {
	switch t.kind {
	case semicolon:
		if len(p.open) == 0 { // CREATE RULE … DO (…; …) has semicolons inside
			p.end()
			return
		}
	case opening:
		p.open = append(p.open, t.start)
	case closing:
		p.open = p.open[:max(0, len(p.open)-1)]
	case parameter:
		p.fault(t.start, "%s is no argument: the parts of a record are %s", p.source[t.start:t.end], argumentNames())
	}
	p.current.verbatim(p.source, t)
}

// end ends the current statement.
func (p *parser) end() {
	b := p.current
	p.current = newBuilder()
	if b.empty {
		return
	}
	if reason := refusal(b.words); reason != "" {
		p.fault(b.start, "%s %s: remove it", b.words[0], reason)
		return
	}
	p.statements = append(p.statements, b.statement())
}

// argument looks for @name at the end of an operator. It returns the end of the name, or 0 if the operator is only an
// operator.
func (p *parser) argument(t token) (end int) {
	if t.kind != operator || p.source[t.end-1] != '@' || t.end == len(p.source) || !isNameStart(p.source[t.end]) {
		return 0
	}
	lexer := lexer{source: p.source, pos: t.end}
	end = lexer.skip(t.end, isNamePart)
	text := p.source[t.end:end]
	index := findArgument(text)
	before := token{operator, t.start, t.end - 1}

	switch {
	case !p.isGlued(before):
		p.addArgument(before, index, text)
		return end
	case index >= 0:
		p.fault(before.end, "@%s can be read as the argument or as the end of an operator: put a space before @ or behind it", text)
		return end
	default:
		return 0
	}
}

// isGlued reports that a "@" after this operator belongs to the operator, or to the token before it.
func (p *parser) isGlued(before token) bool {
	if before.start == before.end {
		return p.previous.kind == name && p.previous.end == before.start
	}
	return !slices.Contains(plainOperators, p.source[before.start:before.end])
}

// plainOperators do not become another operator of PostgreSQL or its usual extensions when "@" follows. "<" does.
var plainOperators = []string{"=", "<>", "!=", "<=", ">=", ">", "+", "-", "*", "/", "%", "||", "->", "->>", "#>", "#>>", "=>"}

func (p *parser) addArgument(before token, index int, text string) {
	if index < 0 {
		p.fault(before.end, "there is no argument @%s, only %s; behind the operator @ put a space", text, argumentNames())
		return
	}
	if before.end > before.start {
		p.current.verbatim(p.source, before)
	}
	p.current.argument(index, before.end)
}

// refusal returns why a statement that begins with these words cannot be run for a record, or "".
func refusal(words []string) string {
	if len(words) == 0 {
		return ""
	}
	local := len(words) > 1 && (words[1] == "LOCAL" || words[1] == "CONSTRAINTS")
	switch words[0] {
	case "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE":
		return "would meddle with the transaction it runs in"
	case "SET":
		if !local {
			return "would outlive the transaction in a session that others use, unless it is SET LOCAL"
		}
	case "RESET", "DISCARD", "PREPARE", "EXECUTE", "DEALLOCATE", "LISTEN", "UNLISTEN", "LOAD":
		return "would change or need the session, which others use"
	case "COPY":
		return "has no place for arguments"
	}
	return ""
}
