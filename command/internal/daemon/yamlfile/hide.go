package yamlfile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

const hiding = "***"

// hideAll hides every scalar of the file until it is read as something that is not secret: a scalar that is not read
// may be one. Scalars of references only, and the names of defined anchors, may be shown. So may keys, except for
// those that may be a value without its key, and those below a telling key. A secret that begins with * or ! and has
// no quotes looks like an alias or a tag.
func (f *File) hideAll() {
	f.hidden = map[*token.Token]bool{}
	for _, at := range f.tags {
		f.hidden[at] = true
	}
	if f.root != nil {
		ast.Walk(hider{f, false}, f.root)
	}
}

// reveal lets faults show a scalar if it looks like one value. A scalar that has swallowed a key and its value, for
// lack of a quote or a comma, may contain a secret.
func (f *File) reveal(node ast.Node) {
	if text, ok := literal(node); ok && single(text) {
		delete(f.hidden, node.GetToken())
	}
}

func single(text string) bool {
	return !strings.Contains(text, ": ") && !strings.Contains(text, "://") && !strings.Contains(text, "\n")
}

// revealKey lets faults show a key. A key without a value may be a value that lost its key.
func (f *File) revealKey(entry *ast.MappingValueNode) {
	if isShown(entry) {
		delete(f.hidden, entry.Key.GetToken())
	}
}

func isShown(entry *ast.MappingValueNode) bool {
	_, null := entry.Value.(*ast.NullNode)
	return !null && single(entry.Key.GetToken().Value)
}

type hider struct {
	file    *File
	telling bool // below a key that names a secret
}

// Visit is called by ast.Walk.
func (h hider) Visit(node ast.Node) ast.Visitor {
	switch n := node.(type) {
	case *ast.MappingValueNode:
		at := n.Key.GetToken()
		if h.telling || !isShown(n) {
			h.file.hidden[at] = true
		}
		ast.Walk(hider{h.file, h.telling || tellingName.MatchString(at.Value)}, n.Value)
		return nil
	case *ast.AnchorNode:
		ast.Walk(h, n.Value)
		return nil
	case *ast.AliasNode:
		if at := n.Value.GetToken(); h.file.anchors[at.Value] == nil {
			h.file.hidden[at] = true
		}
		return nil
	case *ast.NullNode:
		return nil
	case *ast.MappingNode, *ast.SequenceNode, *ast.TagNode:
		return h
	}
	if at := node.GetToken(); !onlyReferences(at.Value) {
		h.file.hidden[at] = true
	}
	return nil
}

// maxLine bounds the line that a fault shows, in bytes. Longer ones help no one, and are slow to search for secrets.
const maxLine = 4 << 10

// showSource gives a fault its line, with secrets replaced.
func (f *File) showSource(fault *Fault) {
	if fault.source != "" {
		return
	}
	if f.hidden == nil && f.line(fault.Line) != "" { // the file was not read far enough to know anything of the line
		fault.source, fault.caret = hiding, 0
		return
	}
	if len(f.line(fault.Line)) > maxLine {
		fault.source, fault.caret = hiding, 0
		return
	}
	line := []rune(f.line(fault.Line))
	fault.caret = fault.Column
	for _, at := range slices.Backward(f.hiddenOn(fault.Line)) {
		from := min(at.Position.Column-1, len(line))
		to := min(from+spelled(at, line[from:]), len(line))
		line = slices.Replace(line, from, to, []rune(hiding)...)
		if fault.caret > to {
			fault.caret += len(hiding) - (to - from)
		}
	}
	fault.source = string(line)
	if f.shows(fault.source, fault.Line) {
		fault.source, fault.caret = hiding, 0
	}
	f.showKey(fault, []rune(f.line(fault.Line)))
}

// showKey shows the key at the fault where the line hides it, and nothing else of the line, if the message has that key:
// so it is shown already.
func (f *File) showKey(fault *Fault, line []rune) {
	at := min(fault.Column-1, len(line))
	rest, found := strings.CutPrefix(string(line[at:]), fault.key)
	if fault.key == "" || !found || !strings.HasPrefix(strings.TrimSpace(rest), ":") {
		return
	}
	if shown := []rune(fault.source); fault.caret > 0 && strings.HasPrefix(string(shown[min(fault.caret-1, len(shown)):]), fault.key) {
		return
	}
	before := string(line[:at])
	if own := strings.TrimLeft(before, " \t"); own != "" {
		before = strings.TrimSuffix(before, own) + hiding + " "
	}
	fault.source, fault.caret = before+fault.key+":", len([]rune(before))+1
	if strings.TrimSpace(rest) != ":" {
		fault.source += " " + hiding
	}
}

// shows reports whether a line, as it is to be shown, contains a part of a hidden scalar that began in an earlier
// line, or that the parser places elsewhere.
func (f *File) shows(shown string, line int) bool {
	const part = 6
	parts := map[string]bool{}
	for i := range len(shown) - part + 1 {
		parts[shown[i:i+part]] = true
	}
	for at := range f.hidden {
		lines := strings.Count(strings.TrimRight(at.Origin, " \n"), "\n")
		if from := at.Position.Line; from < line && line <= from+lines {
			return true
		}
		if from := at.Position.Line; from-line > 2 || line-from > 2+lines {
			continue // a parser is never as wrong as that
		}
		for value := at.Value; len(value) >= part; value = value[1:] {
			if parts[value[:part]] {
				return true
			}
		}
	}
	return false
}

// hiddenOn returns the hidden scalars of a line from left to right.
func (f *File) hiddenOn(line int) []*token.Token {
	var on []*token.Token
	for at := range f.hidden {
		if at.Position.Line == line {
			on = append(on, at)
		}
	}
	slices.SortFunc(on, func(a, b *token.Token) int { return a.Position.Column - b.Position.Column })
	return on
}

// spelled returns how many characters of a line a scalar takes, from its own beginning, with quotes. The parser does
// not keep how it was escaped.
func spelled(at *token.Token, line []rune) int {
	if len(line) == 0 || at.Type != token.DoubleQuoteType && at.Type != token.SingleQuoteType {
		first, _, _ := strings.Cut(strings.TrimSpace(at.Origin), "\n")
		return len([]rune(first))
	}
	quote := line[0]
	if quote != '"' && quote != '\'' {
		return len(line)
	}
	for i := 1; i < len(line); i++ {
		switch {
		case line[i] == '\\' && quote == '"':
			i++
		case line[i] == quote && quote == '\'' && i+1 < len(line) && line[i+1] == quote:
			i++
		case line[i] == quote:
			return i + 1
		}
	}
	return len(line)
}

var (
	tellingKey = regexp.MustCompile(`(?i)^(.*?\b[\w-]*(?:secret|database|url|password|token|authorization|api-?key)["']?\s*:).*$`)
	// tellingName matches a key that names a secret: everything below it is hidden.
	tellingName = regexp.MustCompile(`(?i)(?:secret|database|url|password|token|authorization|api-?key)$`)
	words       = regexp.MustCompile(`[^\s{}\[\],"'#&*|>?:-]+(?::\s|:$)?`)
)

// quotation matches a quotation from the file in a message of the parser, if it is longer than a sign.
var quotation = regexp.MustCompile(`"(?:[^"\\]|\\.){3,}"`)

// hideByShape hides what may be secret in a line of a file that cannot be parsed: everything after a telling key, and
// every word that is not a key. It returns how many characters at the beginning kept their place.
func hideByShape(line string) (shown string, same int) {
	same = len([]rune(line))
	if m := tellingKey.FindStringSubmatch(line); m != nil {
		line, same = m[1]+" "+hiding, len([]rune(m[1]))+1
	}
	var b strings.Builder
	last := 0
	for _, m := range words.FindAllStringIndex(line, -1) {
		word := line[m[0]:m[1]]
		b.WriteString(line[last:m[0]])
		if last = m[1]; isKey(line[:m[0]], word) {
			b.WriteString(word)
		} else {
			b.WriteString(strings.Repeat("*", len([]rune(word))))
		}
	}
	b.WriteString(line[last:])
	return b.String(), same
}

// isKey reports whether a word is where a key can be.
func isKey(before, word string) bool {
	before = strings.TrimRight(before, " \t")
	begins := before == "" || strings.ContainsAny(before[len(before)-1:], "{,-?")
	return begins && strings.HasSuffix(strings.TrimSpace(word), ":")
}
