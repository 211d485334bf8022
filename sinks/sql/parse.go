package sql

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// statement is one SQL command with $n in the place of @name. One name is one parameter: then the server gives all
// its uses one type instead of guessing each.
type statement struct {
	source string // as it is configured
	sql    string
	params []int // params[i] is the index in arguments of $(i+1)
}

// parse returns the statements of a configuration, or all faults that can be found without a server.
func parse(sources []string) ([]statement, error) {
	indices := pgx.NamedArgs{}
	for i, a := range arguments {
		indices[a.name] = i
	}
	statements := make([]statement, len(sources))
	var faults []error
	for i, source := range sources {
		found := faultsOf(i+1, source)
		faults = append(faults, found...)
		if len(found) > 0 {
			continue
		}
		sql, values := rewrite(source, indices)
		statements[i] = statement{source: source, sql: sql}
		for _, index := range values {
			statements[i].params = append(statements[i].params, index.(int))
		}
	}
	return statements, errors.Join(faults...)
}

// rewrite puts $n in the place of @name wherever pgx finds an argument. That is outside of strings, quoted identifiers
// and comments. It returns the value of each $n.
func rewrite(source string, args pgx.NamedArgs) (sql string, values []any) {
	sql, values, _ = args.RewriteQuery(context.Background(), nil, source, nil) // it only reads the text, and never fails
	return sql, values
}

func faultsOf(number int, source string) (faults []error) {
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("statement %d"+format, append([]any{number}, args...)...))
	}
	switch {
	case strings.Contains(source, "\x00"):
		fault(" holds a NUL byte, which ends it for the server: remove it")
	case !utf8.ValidString(source): // pgx reads no further
		fault(" is not in UTF-8: correct it")
	case command(source) == "":
		fault(" is empty: write what is to be done with a record, such as INSERT INTO … VALUES (@id, @payload)")
	}
	if len(faults) > 0 {
		return faults
	}
	if escapeString.MatchString(source) && continued.MatchString(source) { // pgx would end the string in its first line
		fault(" has an E'…' string, and a string that goes on in another line: write each string in one piece")
	}
	if words := words(source); refusal(words) != "" {
		fault(": %s %s: remove it", words[0], refusal(words))
	}
	begun, ended := len(source)-len(command(source)), false
	for _, m := range marks(source) {
		switch text := source[m.start:m.end]; {
		case text == ";" && m.start > begun && !ended:
			if ended = true; command(source[m.end:]) != "" {
				fault(" holds several commands: make it a list, one statement an item")
			}
		case text[0] == '$':
			fault(": %s: %s is not an argument: the parts of a record are %s", place(source, m.start), text, argumentNames())
		case text[0] == '@' && glued(source, m):
			fault(": %s: put a space before %s and after it: beside a letter or a digit it would become a part of that name", place(source, m.start), text)
		case text[0] == '@' && findArgument(text[1:]) < 0:
			fault(": %s: there is no argument %s, only %s; after the operator @ put a space", place(source, m.start), text, argumentNames())
		}
	}
	return faults
}

var (
	escapeString = regexp.MustCompile(`(?i)(?:^|[^\w$\x{80}-\x{10FFFF}])e'`)
	// continued is one string literal in two lines, in which PostgreSQL also takes comments.
	continued = regexp.MustCompile(`'[ \t\f\v]*(?:--[^\r\n]*)?[\r\n](?:\s|--[^\r\n]*[\r\n])*'`)

	nameEnd    = regexp.MustCompile(`[\w$\x{80}-\x{10FFFF}]$`)
	nameGoesOn = regexp.MustCompile(`^[$\x{80}-\x{10FFFF}]`)
)

// glued reports whether an argument stands directly beside an identifier or a number. $1 would become a part of it.
func glued(source string, m mark) bool {
	return nameEnd.MatchString(source[:m.start]) || nameGoesOn.MatchString(source[m.end:])
}

// mark is source[start:end].
type mark struct{ start, end int }

// tokens matches what may be a mark. It also matches what may contain "$1" without meaning it: identifiers and "$$".
var tokens = regexp.MustCompile(`[a-zA-Z_\x{80}-\x{10FFFF}][\w$\x{80}-\x{10FFFF}]*|\$\$|@[a-zA-Z_]\w*|\$[0-9]+|;`)

// marks returns every @name, $1 and ";" that is not in a string, a quoted identifier or a comment. It puts an argument
// in the place of each that it sees, and pgx finds those that are arguments.
func marks(source string) (all []mark) {
	seen := pgx.NamedArgs{}
	var probe strings.Builder
	last := 0
	for i, m := range tokens.FindAllStringIndex(source, -1) {
		if text := source[m[0]:m[1]]; text == "$$" || !strings.ContainsAny(text[:1], "@$;") {
			continue
		}
		name := "_" + strconv.Itoa(i)
		seen[name] = mark{m[0], m[1]}
		probe.WriteString(source[last:m[0]] + "@" + name + " ")
		last = m[1]
	}
	_, found := rewrite(probe.String()+source[last:], seen)
	for _, value := range found {
		if m, ok := value.(mark); ok {
			all = append(all, m)
		}
	}
	return all
}

var (
	blank       = regexp.MustCompile(`^(?:[;\s\v]|--[^\r\n]*)*`)
	commentMark = regexp.MustCompile(`/\*|\*/`)
	firstWord   = regexp.MustCompile(`^\w*`)
)

// command returns a text from its first command on: without the white space, semicolons and comments before it.
func command(source string) string {
	depth := 0 // comments nest
	for {
		if depth == 0 {
			source = source[len(blank.FindString(source)):]
		}
		if depth == 0 && !strings.HasPrefix(source, "/*") {
			return source
		}
		m := commentMark.FindStringIndex(source)
		switch {
		case m == nil:
			return ""
		case source[m[0]] == '/':
			depth++
		default:
			depth--
		}
		source = source[m[1]:]
	}
}

// words returns the first two words of a statement, in upper case.
func words(source string) (words [2]string) {
	for i := range words {
		source = command(source)
		word := firstWord.FindString(source)
		words[i], source = strings.ToUpper(word), source[len(word):]
	}
	return words
}

// refusal returns why a statement that begins with these words cannot be run for a record, or "".
func refusal(words [2]string) string {
	switch words[0] {
	case "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE":
		return "would interfere with the transaction it runs in"
	case "SET":
		if words[1] != "LOCAL" && words[1] != "CONSTRAINTS" {
			return "would outlive the transaction in a session that others use, unless it is SET LOCAL"
		}
	case "RESET", "DISCARD", "PREPARE", "EXECUTE", "DEALLOCATE", "LISTEN", "UNLISTEN", "LOAD":
		return "would change or need the session, which others use"
	case "COPY":
		return "has no place for arguments"
	}
	return ""
}

var (
	namePattern    = regexp.MustCompile(`^@\w+`)
	ordinalPattern = regexp.MustCompile(`^\$[0-9]+`)
)

// from returns the place in the source that a byte of sql comes from. The two differ only at arguments.
func (s statement) from(at int) int {
	from := 0
	for to := 0; to < min(at, len(s.sql)); {
		if s.source[from] == s.sql[to] {
			from++
			to++
			continue
		}
		from += len(namePattern.FindString(s.source[from:]))
		to += len(ordinalPattern.FindString(s.sql[to:]))
	}
	return from
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
